"""A tokenizer for statements with a fixed grammar, such as CREATE, ALTER and SHOW."""

from __future__ import annotations

import re

from penstock.core.table.types import DataType
from penstock.table.type_text import TypeParser, unquote
from penstock.util.exceptions import SqlParserException

_TOKEN = re.compile(
    r"""(?:\s|--[^\n]*(?:\n|$)|/\*(?!\+).*?\*/)*            # blanks and comments
        (`(?:[^`]|``)*` | '(?:[^']|'')*' | "[^"]*" | \d+(?:\.\d+)? | [A-Za-z_$][\w$]* | /\*\+ | [<>=!|]{2} | \S)""",
    re.VERBOSE | re.DOTALL,
)


class Words:
    """Reads a statement word by word.

    >>> words = Words("DROP TABLE IF EXISTS `a b`.c")
    >>> words.accept("DROP", "TABLE"), words.accept("IF", "EXISTS"), words.path()
    (True, True, ('a b', 'c'))
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip().rstrip(";").rstrip()
        self.position = 0

    def peek(self) -> str:
        """Return the next word, or an empty string at the end."""
        found = _TOKEN.match(self.text, self.position)
        return "" if found is None else found.group(1)

    def next(self) -> str:
        """Take the next word."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            raise self.error("the statement is incomplete")
        self.position = found.end()
        return found.group(1)

    @property
    def at_end(self) -> bool:
        """Whether the statement is at its end."""
        return not self.peek()

    def accept(self, *words: str) -> bool:
        """Take words if they come next, in this order, ignoring case."""
        start = self.position
        for word in words:
            if self.peek().upper() != word:
                self.position = start
                return False
            self.next()
        return True

    def expect(self, *words: str) -> None:
        """Take words, or raise an error if they do not come next."""
        for word in words:
            if not self.accept(word):
                raise self.error(f"'{word}' expected")

    def end(self) -> None:
        """Raise an error unless the statement is at its end."""
        if not self.at_end:
            raise self.error("unexpected text")

    def name(self) -> str:
        """Take an identifier."""
        word = self.next()
        if not re.match(r"[`A-Za-z_]", word):
            raise self.error("a name expected", word)
        return unquote(word)

    def path(self) -> tuple[str, ...]:
        """Take identifiers separated by dots."""
        parts = [self.name()]
        while self.accept("."):
            parts.append(self.name())
        return tuple(parts)

    def string(self) -> str:
        """Take a text in quotes."""
        word = self.next()
        if not word.startswith("'"):
            raise self.error("a text in single quotes expected", word)
        return word[1:-1].replace("''", "'")

    def names(self) -> list[str]:
        """Take names in parentheses."""
        self.expect("(")
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        self.expect(")")
        return found

    def options(self) -> dict[str, str]:
        """``('key' = 'value', ...)``"""
        found: dict[str, str] = {}
        self.expect("(")
        while not self.accept(")"):
            if found:
                self.expect(",")
            key = self.string()
            self.expect("=")
            found[key] = self.string()
        return found

    def keys(self) -> list[str]:
        """``('key', ...)``"""
        found: list[str] = []
        self.expect("(")
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.string())
        return found

    def type(self) -> DataType:
        """Take a type."""
        parser = TypeParser(self.text, self.position)
        found = parser.type()
        self.position = parser.position
        return found

    def expression(self, *stops: str) -> str:
        """Take the text of an expression up to a comma, a closing parenthesis or one of some words."""
        start, depth = self.position, 0
        while not self.at_end:
            word = self.peek()
            if not depth and (word in (",", ")") or word.upper() in stops):
                break
            depth += (word in "([") - (word in ")]")
            self.next()
        text = self.text[start : self.position].strip()
        if not text:
            raise self.error("an expression expected")
        return text

    def rest(self) -> str:
        """Take the remaining text."""
        text = self.text[self.position :].strip()
        self.position = len(self.text)
        return text

    def error(self, what: str, word: str | None = None) -> SqlParserException:
        """Return a SqlParserException with the position."""
        near = self.peek() if word is None else word
        before = self.text[: self.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return SqlParserException(
            f"SQL parse failed. {what} at line {line}, column {column}" + (f", near '{near}'" if near else "")
        )
