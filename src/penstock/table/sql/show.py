"""SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.core.table.types import DataType, DataTypes
from penstock.runtime.table.functions.comparison import like_pattern
from penstock.table.catalog_manager import TableEntry, ViewEntry
from penstock.table.plan.tables import TableSchemaPlan
from penstock.table.schema import Schema, UnresolvedColumn
from penstock.table.sql.words import Words
from penstock.table.table_result import TableResult, content, text_content
from penstock.util.exceptions import ValidationException

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment


def _show(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("SHOW")
    user = words.accept("USER")
    current = words.accept("CURRENT")
    full = words.accept("FULL")
    if words.accept("CREATE"):
        return _show_create(words, t_env)
    what = words.next().upper()
    if current:
        name = t_env.get_current_catalog() if what == "CATALOG" else t_env.get_current_database()
        return content([f"current {what.lower()} name"], [DataTypes.STRING()], [(name,)])
    if what == "COLUMNS":
        return _show_columns(words, t_env)
    if what == "PARTITIONS":
        describe_table(t_env, words.path())
        return content(["partition name"], [DataTypes.STRING()], [])
    lists: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "CATALOGS": ("catalog name", t_env.list_catalogs),
        "DATABASES": ("database name", t_env.list_databases),
        "TABLES": ("table name", t_env.list_tables),
        "VIEWS": ("view name", t_env.list_views),
        "FUNCTIONS": ("function name", t_env.list_user_defined_functions if user else t_env.list_functions),
        "MODULES": ("module name", lambda: ["core"]),
        "JARS": ("jars", list),
        "MODELS": ("model name", list),
    }
    if what not in lists:
        raise words.error(f"SHOW {what} is unknown")
    title, names = lists[what]
    found = _in_database(words, t_env, names) if what in ("TABLES", "VIEWS") else names()
    rows: list[tuple[object, ...]] = [(name,) for name in _liked(words, found)]
    if what == "MODULES" and full:
        return content(["module name", "used"], [DataTypes.STRING(), DataTypes.BOOLEAN()], [("core", True)])
    words.end()
    return content([title], [DataTypes.STRING()], rows)


def _in_database(words: Words, t_env: TableEnvironment, names: Callable[[], list[str]]) -> list[str]:
    if not (words.accept("FROM") or words.accept("IN")):
        return names()
    path = words.path()
    catalogs = t_env.catalogs
    before = catalogs.current_catalog, catalogs.current_database
    try:
        catalogs.use_database(path[-1], path[0] if len(path) == 2 else None)
        return names()
    finally:
        catalogs.current_catalog, catalogs.current_database = before


def _liked(words: Words, names: list[str]) -> list[str]:
    negated = words.accept("NOT")
    if not (words.accept("LIKE") or words.accept("ILIKE")):
        return names
    pattern = re.compile(like_pattern(words.string()))
    return [name for name in names if (pattern.fullmatch(name) is not None) != negated]


def _describe(words: Words, t_env: TableEnvironment) -> TableResult:
    words.next()
    if words.accept("CATALOG"):
        return _describe_catalog(words, t_env)
    words.accept("EXTENDED")
    path = words.path()
    words.end()
    return describe_table(t_env, path)


def _describe_catalog(words: Words, t_env: TableEnvironment) -> TableResult:
    words.accept("EXTENDED")
    name = words.path()[0]
    words.end()
    if name not in t_env.catalogs.catalogs:
        raise ValidationException(f"Cannot obtain metadata information from Catalog {name}: it does not exist.")
    text = DataTypes.STRING()
    rows: list[tuple[object, ...]] = [("name", name), ("type", "generic_in_memory"), ("comment", None)]
    return content(["info name", "info value"], [text, text], rows)


def describe_table(t_env: TableEnvironment, path: tuple[str, ...]) -> TableResult:
    """Return the columns with types, keys, extras and watermarks."""
    entry = t_env.catalogs.find(path)
    if entry is None:
        full = ".".join(t_env.catalogs.qualify(path))
        raise ValidationException(f"Tables or views with the identifier '{full}' doesn't exist")
    titles = ["name", "type", "null", "key", "extras", "watermark"]
    text = DataTypes.STRING()
    types: list[DataType] = [text, text, DataTypes.BOOLEAN(), text, text, text]
    if isinstance(entry, ViewEntry):
        rows = [
            (field.name, _type_text(field.describe()), field.type.is_nullable, None, None, None)
            for field in entry.relation.fields
        ]
        return content(titles, types, rows)
    plan = t_env.resolver().schema(entry.schema)
    described = _rows(plan, entry.schema)
    comments = [column.comment for column in entry.schema.columns]
    if any(comments):
        titles, types = [*titles, "comment"], [*types, text]
        described = [(*row, comment) for row, comment in zip(described, comments, strict=True)]
    return content(titles, types, described)


def _type_text(text: str) -> str:
    return text.removesuffix(" NOT NULL")


def _rows(plan: TableSchemaPlan, schema: Schema) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    key = f"PRI({', '.join(plan.primary_key)})" if plan.primary_key else None
    for column, declared, field in zip(plan.columns, schema.columns, plan.fields, strict=True):
        watermark = None
        if schema.watermark is not None and schema.watermark.column == column.name:
            watermark = _expression_text(schema.watermark.expression, schema)
        rows.append(
            (
                column.name,
                _type_text(field.describe()),
                column.type.is_nullable,
                key if column.name in plan.primary_key else None,
                _extras(declared, schema),
                watermark,
            )
        )
    return rows


def _extras(column: UnresolvedColumn, schema: Schema) -> str | None:
    if column.expression is not None:
        return f"AS {_expression_text(column.expression, schema)}"
    if column.is_metadata:
        source = f" FROM '{column.metadata_key}'" if column.metadata_key else ""
        return f"METADATA{source}{' VIRTUAL' if column.is_virtual else ''}"
    return None


def _expression_text(expression: object, schema: Schema) -> str:
    """An expression as SQL, with the names of columns in backticks."""
    from penstock.table.expression import describe
    from penstock.table.plan import ast

    if isinstance(expression, ast.Node):
        return describe(expression)
    names = {column.name for column in schema.columns}

    def quoted(found: re.Match[str]) -> str:
        return f"`{found.group()}`" if found.group() in names else found.group()

    return re.sub(r"'[^']*'|`[^`]*`|\w+", quoted, str(expression))


_LONG_NAMES = {"STRING": "VARCHAR(2147483647)", "BYTES": "VARBINARY(2147483647)"}


def _long_type(type_: object) -> str:
    """A type as CREATE TABLE shows it, without short names."""

    def long(found: re.Match[str]) -> str:
        if found["zoned"] is not None:
            return f"TIMESTAMP({found['zoned']}) WITH LOCAL TIME ZONE"
        return _LONG_NAMES.get(found.group(), found.group())

    return re.sub(r"`[^`]*`|TIMESTAMP_LTZ\((?P<zoned>\d)\)|\b(?:STRING|BYTES)\b", long, str(type_))


def _show_columns(words: Words, t_env: TableEnvironment) -> TableResult:
    if not (words.accept("FROM") or words.accept("IN")):
        raise words.error("FROM or IN expected")
    path = words.path()
    described = describe_table(t_env, path)
    with described.collect() as rows:
        found = {row[0]: tuple(row) for row in rows}
    names = _liked(words, list(found))
    schema = described.get_resolved_schema()
    return content(
        schema.get_column_names(), schema.get_column_data_types(), [row for name, row in found.items() if name in names]
    )


def _show_create(words: Words, t_env: TableEnvironment) -> TableResult:
    what = words.next().upper()
    path = words.path()
    if what == "CATALOG":
        return text_content(_create_catalog_text(path[0], t_env))
    entry = t_env.catalogs.find(path)
    full = ".".join(f"`{part}`" for part in t_env.catalogs.qualify(path))
    if entry is None or entry.kind != what:
        raise ValidationException(
            f"Could not execute SHOW CREATE {what}. {what.title()} with identifier {full} does not exist."
        )
    if t_env.catalogs.qualify(path) in t_env.catalogs.temporary:
        what = f"TEMPORARY {what}"
    if isinstance(entry, ViewEntry):
        columns = ",\n".join(f"  `{name}`" for name in entry.relation.names)
        text = f"CREATE {what} {full} (\n{columns}\n)\nAS {entry.query or '...'}\n"
    else:
        text = create_table_text(full, entry, what)
    return text_content(text)


def _create_catalog_text(name: str, t_env: TableEnvironment) -> str:
    if name not in t_env.catalogs.catalogs:
        raise ValidationException(f"Could not execute SHOW CREATE CATALOG. Catalog with name {name} does not exist.")
    return f"CREATE CATALOG `{name}`\nWITH (\n  'type' = 'generic_in_memory'\n)\n"


def create_table_text(name: str, entry: TableEntry, what: str = "TABLE") -> str:
    """Return the CREATE TABLE statement of a table."""
    lines = []
    for column in entry.schema.columns:
        text = f"`{column.name}`" + ("" if column.type is None else f" {_long_type(column.type)}")
        extras = _extras(column, entry.schema)
        comment = "" if column.comment is None else f" COMMENT '{column.comment}'"
        lines.append(text + (f" {extras}" if extras else "") + comment)
    if entry.schema.watermark is not None:
        watermark = entry.schema.watermark
        lines.append(f"WATERMARK FOR `{watermark.column}` AS {_expression_text(watermark.expression, entry.schema)}")
    if entry.schema.primary_key:
        keys = entry.schema.primary_key
        quoted = ", ".join(f"`{key}`" for key in keys)
        lines.append(f"CONSTRAINT `PK_{'_'.join(keys)}` PRIMARY KEY ({quoted}) NOT ENFORCED")
    body = ",\n".join(f"  {line}" for line in lines)
    text = f"CREATE {what} {name} (\n{body}\n)"
    if entry.comment:
        text += f"\nCOMMENT '{entry.comment}'"
    if entry.partition_keys:
        text += f"\nPARTITIONED BY ({', '.join(f'`{key}`' for key in entry.partition_keys)})"
    options = ",\n".join(f"  '{key}' = '{value}'" for key, value in entry.options.items())
    return f"{text}\nWITH (\n{options}\n)\n" if options else text + "\n"


def _explain(words: Words, t_env: TableEnvironment) -> TableResult:
    from penstock.table.sql.statements import explain_statement

    words.expect("EXPLAIN")
    words.accept("PLAN", "FOR")
    while words.peek().upper() in ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", ","):
        words.next()
    return text_content(explain_statement(words.rest(), t_env))


STATEMENTS: dict[str, Callable[[Words, TableEnvironment], TableResult]] = {
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
}
