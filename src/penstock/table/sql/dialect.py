"""Flink's SQL for sqlglot: names keep their case, backticks quote, functions keep their names and arguments.

sqlglot converts functions it knows to special nodes, with their meaning in other systems. Here, each function becomes
an `Anonymous` node with the name as written. Forms with keywords inside (CAST, EXTRACT, ...) get a name that begins
with a dollar sign.
"""

# ruff: noqa: RUF012 - sqlglot's way to define a dialect
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.common.errors import UnsupportedFeatureError
from penstock.table.sql.match_syntax import parse_match_recognize
from penstock.util.exceptions import SqlParserException

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

_CLOCKS = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP")


@cache
def flink_dialect() -> Dialect:
    """Return the dialect, or raise an error that says what to do if sqlglot is missing or cannot be extended."""
    try:
        import sqlglot
    except ImportError:
        raise UnsupportedFeatureError("SQL needs the package sqlglot: pip install 'penstock[sql]'") from None
    try:
        dialect = _define()
        sqlglot.parse_one("SELECT 1", dialect=dialect)
    except TypeError as error:
        raise UnsupportedFeatureError(
            f"the compiled form of sqlglot cannot be extended ({error}): pip uninstall sqlglotc"
        ) from error
    return dialect


def parse(text: str) -> Any:
    """Parse one statement."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    dialect = flink_dialect()
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    except SqlglotError as error:
        raise SqlParserException(f"SQL parse failed. {_message(error)}") from None
    except IndexError:  # nothing follows the word SELECT
        raise SqlParserException("SQL parse failed. The statement ends too early") from None
    except RecursionError:
        raise SqlParserException("SQL parse failed. The statement is nested too deeply") from None
    if len(trees) != 1:
        what = "there is no statement" if not trees else "there is more than one statement"
        raise SqlParserException(f"SQL parse failed. {what}: give exactly one")
    return trees[0]


def _message(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error).split("\n", maxsplit=1)[0]
    one = details[0]
    return f"{one['description']} at line {one['line']}, column {one['col']}, near '{one['highlight']}'"


def _define() -> Dialect:  # noqa: C901 - definitions, one after the other
    from sqlglot import exp, parser, tokens
    from sqlglot.dialects.dialect import Dialect as BaseDialect
    from sqlglot.dialects.dialect import NormalizationStrategy
    from sqlglot.tokenizer_core import TokenType

    def call(name: str, *arguments: Any) -> exp.Anonymous:
        return exp.Anonymous(this=name, expressions=[one for one in arguments if one is not None])

    def clock(name: str) -> Callable[[Any], Any]:
        def parse_clock(self: Any) -> Any:
            if self._match(TokenType.L_PAREN):
                self._parse_number()
                self._match_r_paren()
            return call(name)

        return parse_clock

    def text_of_type(self: Any) -> Any:
        """Return the text of a type up to the closing parenthesis, which is not consumed."""
        start, depth = self._curr, 0
        while self._curr and self._curr.token_type != TokenType.SENTINEL:
            if self._curr.token_type == TokenType.L_PAREN:
                depth += 1
            elif self._curr.token_type == TokenType.R_PAREN:
                if not depth:
                    break
                depth -= 1
            self._advance()
        return exp.Literal.string(self._find_sql(start, self._prev))

    def cast(name: str) -> Callable[[Any], Any]:
        def parse_cast(self: Any) -> Any:
            operand = self._parse_disjunction()
            if not self._match(TokenType.ALIAS):
                self.raise_error("AS expected in CAST")
            return call(name, operand, text_of_type(self))

        return parse_cast

    def extract(self: Any) -> Any:
        unit = self._parse_var(any_token=True)
        if not self._match(TokenType.FROM):
            self.raise_error("FROM expected in EXTRACT")
        return call("$EXTRACT", exp.Literal.string(unit.name.upper()), self._parse_bitwise())

    def rounded(name: str) -> Callable[[Any], Any]:
        def parse_rounded(self: Any) -> Any:
            operand = self._parse_disjunction()
            if self._match_text_seq("TO"):
                unit = self._parse_var(any_token=True)
                return call(f"${name} TO", exp.Literal.string(unit.name.upper()), operand)
            return call(name, operand)

        return parse_rounded

    def position(self: Any) -> Any:
        needle = self._parse_bitwise()
        if self._match(TokenType.IN):
            return call("POSITION", needle, self._parse_bitwise())
        self._match(TokenType.COMMA)
        return call("POSITION", needle, self._parse_bitwise())

    def substring(self: Any) -> Any:
        arguments = self._parse_csv(self._parse_bitwise)
        if self._match(TokenType.FROM):
            arguments.append(self._parse_bitwise())
        if self._match(TokenType.FOR):
            arguments.append(self._parse_bitwise())
        return call("SUBSTRING", *arguments)

    def trim(self: Any) -> Any:
        where = "BOTH"
        for word in ("BOTH", "LEADING", "TRAILING"):
            if self._match_text_seq(word):
                where = word
        first = None if self._match(TokenType.FROM) else self._parse_bitwise()
        if first is None:
            return call("$TRIM", exp.Literal.string(where), self._parse_bitwise())
        if self._match(TokenType.FROM):
            return call("$TRIM", exp.Literal.string(where), self._parse_bitwise(), first)
        if self._match(TokenType.COMMA):
            return call("$TRIM", exp.Literal.string(where), first, self._parse_bitwise())
        return call("$TRIM", exp.Literal.string(where), first)

    def overlay(self: Any) -> Any:
        arguments = self._parse_csv(self._parse_bitwise)
        for word in ("PLACING", "FROM", "FOR"):
            if self._match_text_seq(word):
                arguments.append(self._parse_bitwise())
        return call("OVERLAY", *arguments)

    def with_unit(name: str) -> Callable[[Any], Any]:
        """Return the parser of TIMESTAMPADD(unit, n, t) and TIMESTAMPDIFF(unit, a, b)."""

        def parse_with_unit(self: Any) -> Any:
            unit = self._parse_var(any_token=True)
            arguments = []
            while self._match(TokenType.COMMA):
                arguments.append(self._parse_disjunction())
            return call(f"${name}", exp.Literal.string(unit.name.upper()), *arguments)

        return parse_with_unit

    def ends_name(token: Any) -> bool:
        """Whether a token ends an expression, so that the word before it is an expression."""
        return (
            token is None or token.token_type in (TokenType.COMMA, TokenType.R_PAREN) or token.text.upper() == "VALUE"
        )

    def json_clauses(name: str) -> Callable[[Any], Any]:
        """Return the parser of arguments and clauses such as NULL ON EMPTY, which are kept as text."""

        def parse_json(self: Any) -> Any:
            arguments: list[Any] = []
            while not self._match(TokenType.R_PAREN, advance=False):
                if name.startswith("JSON_OBJECT") and self._curr.text.upper() == "KEY" and not ends_name(self._next):
                    self._advance()
                elif (
                    not arguments and self._curr.text.upper() in ("NULL", "ABSENT") and self._next.text.upper() == "ON"
                ):
                    break
                arguments.append(self._parse_lambda())
                if self._match(TokenType.COLON) or self._match_text_seq("VALUE"):
                    arguments.append(self._parse_disjunction())
                if not self._match(TokenType.COMMA):
                    break
            clause = text_of_type(self) if not self._match(TokenType.R_PAREN, advance=False) else exp.Literal.string("")
            return call(f"${name}", clause, *arguments)

        return parse_json

    class FlinkTokenizer(tokens.Tokenizer):
        IDENTIFIERS = ["`"]
        QUOTES = ["'"]
        STRING_ESCAPES = ["'"]
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]
        UNICODE_STRINGS = [("U&'", "'"), ("u&'", "'")]
        COMMENTS = ["--", ("/*", "*/")]
        KEYWORDS = {
            key: value
            for key, value in tokens.Tokenizer.KEYWORDS.items()
            # Words that have a meaning only in other systems.
            if key
            not in (
                *("INTO", "KILL", "ANALYZE", "CACHE", "UNCACHE", "TOP", "XML", "SESSION"),
                *("~", "::", "@>", "<@", "?", "/*+"),
            )
        }
        KEYWORDS["INTO"] = TokenType.INTO
        KEYWORDS["MATCH_RECOGNIZE"] = TokenType.MATCH_RECOGNIZE
        VAR_SINGLE_TOKENS = {"$"}

    class FlinkParser(parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        STRICT_CAST = True
        FUNCTION_PARSERS = {
            "CAST": cast("$CAST"),
            "TRY_CAST": cast("$TRY_CAST"),
            "EXTRACT": extract,
            "FLOOR": rounded("FLOOR"),
            "CEIL": rounded("CEIL"),
            "CEILING": rounded("CEIL"),
            "POSITION": position,
            "SUBSTRING": substring,
            "TRIM": trim,
            "OVERLAY": overlay,
            "TIMESTAMPADD": with_unit("TIMESTAMPADD"),
            "TIMESTAMPDIFF": with_unit("TIMESTAMPDIFF"),
            **{
                name: json_clauses(name)
                for name in (
                    "JSON_VALUE",
                    "JSON_QUERY",
                    "JSON_EXISTS",
                    "JSON_OBJECT",
                    "JSON_ARRAY",
                    "JSON_OBJECTAGG",
                    "JSON_ARRAYAGG",
                )
            },
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS = {
            "CASE": lambda self: self._parse_case(),
            **{name: clock(name) for name in _CLOCKS},
        }

        def _parse_lambda(self, alias: bool = False) -> Any:
            """Parse arguments of functions, including a whole table as for window functions."""
            index = self._index
            name = None
            if self._next.token_type == TokenType.FARROW:
                name = self._parse_id_var()
                self._match(TokenType.FARROW)
            if self._match(TokenType.TABLE):
                wrapped = self._match(TokenType.L_PAREN)
                table = self._parse_select() if wrapped else self._parse_table_parts()
                if wrapped:
                    self._match_r_paren()
                parts = [self._parse_disjunction()] if self._match(TokenType.PARTITION_BY) else []
                found = exp.Anonymous(this="$TABLE", expressions=[table, *parts])
                return found if name is None else exp.Kwarg(this=name, expression=found)
            if name is not None:
                return self.expression(exp.Kwarg(this=name, expression=self._parse_disjunction()))
            self._retreat(index)
            return super()._parse_lambda(alias=alias)

        def _parse_table(self, *arguments: Any, **options: Any) -> Any:
            """Parse TABLE(f(...)) in FROM."""
            if self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN:
                self._advance(2)
                function = self._parse_function(anonymous=True, any_token=True)
                if function is None:
                    self.raise_error("a table function expected in TABLE(...)")
                self._match_r_paren()
                table = self.expression(exp.Table(this=function))
                alias = self._parse_table_alias()
                if alias:
                    table.set("alias", alias)
                return table
            return super()._parse_table(*arguments, **options)

        def _parse_match_recognize(self) -> Any:
            """Parse MATCH_RECOGNIZE with Flink's WITHIN after the pattern."""
            return parse_match_recognize(self) if self._match(TokenType.MATCH_RECOGNIZE) else None

        def _parse_lateral(self) -> Any:
            """Parse LATERAL TABLE(f(x)) AS t(a, b) for all function names."""
            index = self._index
            if self._match(TokenType.LATERAL) and self._match(TokenType.TABLE) and self._match(TokenType.L_PAREN):
                function = self._parse_function(anonymous=True, any_token=True)
                self._match_r_paren()
                alias = self._parse_table_alias()
                return self.expression(exp.Lateral(this=function, alias=alias))
            self._retreat(index)
            return super()._parse_lateral()

    class Flink(BaseDialect):
        NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
        NULL_ORDERING = "nulls_are_small"
        INDEX_OFFSET = 0
        Tokenizer = FlinkTokenizer
        Parser = FlinkParser

    return Flink()
