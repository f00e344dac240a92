"""CREATE, DROP, ALTER, USE, SET, RESET (T120, T121)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.common.types import Row
from penstock.core.table.types import DataTypes
from penstock.table.catalog_manager import Database, InMemoryCatalog, TableEntry, ViewEntry
from penstock.table.catalog_objects import imported
from penstock.table.plan import build
from penstock.table.schema import Schema, UnresolvedColumn, UnresolvedWatermark
from penstock.table.sql.words import Words
from penstock.table.table_result import TableResult, content, success
from penstock.util.exceptions import CatalogException, ValidationException

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment


def _create(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("CREATE")
    or_replace = words.accept("OR", "REPLACE")
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE"):
        return _create_table(words, t_env, temporary=temporary)
    if words.accept("VIEW"):
        return _create_view(words, t_env, temporary=temporary, or_replace=or_replace)
    if words.accept("SYSTEM", "FUNCTION") or words.accept("FUNCTION"):
        return _create_function(words, t_env, temporary=temporary)
    if words.accept("DATABASE"):
        return _create_database(words, t_env)
    if words.accept("CATALOG"):
        name = words.name()
        if name in t_env.catalogs.catalogs:
            raise CatalogException(f"Catalog {name} already exists.")
        options = words.options() if words.accept("WITH") else {}
        database = options.get("default-database", "default")
        t_env.catalogs.catalogs[name] = InMemoryCatalog({database: Database()}, database, options)
        return success()
    raise words.error("TABLE, VIEW, FUNCTION, DATABASE or CATALOG expected")


# -- tables -----------------------------------------------------------------------------------------------------------


def _create_table(words: Words, t_env: TableEnvironment, *, temporary: bool) -> TableResult:
    if_not_exists = words.accept("IF", "NOT", "EXISTS")
    path = words.path()
    schema = _table_schema(words) if words.peek() == "(" else Schema()
    comment = words.string() if words.accept("COMMENT") else None
    if words.accept("DISTRIBUTED"):
        words.expression("PARTITIONED", "WITH", "LIKE", "AS", "COMMENT")
    partition_keys = tuple(words.names()) if words.accept("PARTITIONED", "BY") else ()
    options = words.options() if words.accept("WITH") else {}
    entry = TableEntry(schema, options, partition_keys, comment)
    if words.accept("LIKE"):
        entry = _like(words, t_env, entry)
    query = words.rest() if words.accept("AS") else None
    words.end()
    if query is None:
        t_env.resolver().schema(entry.schema)  # check types and expressions now, the connector later
        t_env.catalogs.create(path, entry, temporary=temporary, ignore_if_exists=if_not_exists)
        return success()
    return _create_as_select(t_env, path, entry, query, temporary=temporary, if_not_exists=if_not_exists)


def _create_as_select(
    t_env: TableEnvironment,
    path: tuple[str, ...],
    entry: TableEntry,
    query: str,
    *,
    temporary: bool,
    if_not_exists: bool,
) -> TableResult:
    from penstock.table.sql.statements import parse_query

    relation = parse_query(query, t_env)
    columns = tuple(UnresolvedColumn(field.name, field.type) for field in relation.fields)
    schema = replace(entry.schema, columns=(*entry.schema.columns, *columns))
    made = t_env.catalogs.create(
        path, replace(entry, schema=schema), temporary=temporary, ignore_if_exists=if_not_exists
    )
    if not made:
        return success()
    return t_env.execute_inserts([t_env.insert_into(relation, path)])


def _table_schema(words: Words) -> Schema:
    """``(column type, column AS expression, WATERMARK FOR ..., PRIMARY KEY (...) NOT ENFORCED)``"""
    columns: list[UnresolvedColumn] = []
    watermark: UnresolvedWatermark | None = None
    key: tuple[str, ...] | None = None
    words.expect("(")
    while not words.accept(")"):
        if columns or watermark or key:
            words.expect(",")
        if words.accept("WATERMARK", "FOR"):
            column = ".".join(words.path())
            words.expect("AS")
            watermark = UnresolvedWatermark(column, words.expression())
        elif words.peek().upper() in ("PRIMARY", "CONSTRAINT"):
            key = _primary_key(words)
        else:
            column_, inline_key = _column(words)
            columns.append(column_)
            key = (column_.name,) if inline_key else key
    return Schema(tuple(columns), watermark, key)


def _primary_key(words: Words) -> tuple[str, ...]:
    if words.accept("CONSTRAINT"):
        words.name()
    words.expect("PRIMARY", "KEY")
    names = tuple(words.names())
    _not_enforced(words)
    return names


def _not_enforced(words: Words) -> None:
    if words.accept("NOT", "ENFORCED"):
        return
    words.accept("ENFORCED")
    raise ValidationException(
        "ENFORCED mode for PRIMARY KEY constraint is not supported: Penstock does not own the data, so it cannot "
        "enforce the key. Write NOT ENFORCED"
    )


def _column(words: Words) -> tuple[UnresolvedColumn, bool]:
    """Parse a column. Return it, and whether it is the primary key."""
    name = words.name()
    if words.accept("AS"):
        column = UnresolvedColumn(name, expression=words.expression("COMMENT"))
    else:
        type_ = words.type()
        column = UnresolvedColumn(name, type_)
        if words.accept("METADATA"):
            key = words.string() if words.accept("FROM") else None
            column = replace(column, is_metadata=True, metadata_key=key, is_virtual=words.accept("VIRTUAL"))
    is_key = False
    if words.accept("CONSTRAINT"):
        words.name()
    if words.accept("PRIMARY", "KEY"):
        _not_enforced(words)
        is_key = True
    if words.accept("COMMENT"):
        column = replace(column, comment=words.string())
    return column, is_key


def _like(words: Words, t_env: TableEnvironment, entry: TableEntry) -> TableEntry:
    """Parse LIKE other (INCLUDING ... EXCLUDING ...): copy the other table, except for what this one defines."""
    path = words.path()
    found = t_env.catalogs.find(path)
    if not isinstance(found, TableEntry):
        raise ValidationException(f"Source table '{'.'.join(path)}' of the LIKE clause not found in the catalog")
    excluded: set[str] = set()
    if words.accept("("):
        while not words.accept(")"):
            action = words.next().upper()
            what = words.next().upper()
            if action == "EXCLUDING":
                excluded |= (
                    {what} if what != "ALL" else {"OPTIONS", "CONSTRAINTS", "GENERATED", "METADATA", "WATERMARKS"}
                )
    base = found.schema
    columns = [
        column
        for column in base.columns
        if not (column.expression is not None and "GENERATED" in excluded)
        and not (column.is_metadata and "METADATA" in excluded)
        and not any(own.name == column.name for own in entry.schema.columns)
    ]
    schema = Schema(
        (*columns, *entry.schema.columns),
        entry.schema.watermark or (None if "WATERMARKS" in excluded else base.watermark),
        entry.schema.primary_key or (None if "CONSTRAINTS" in excluded else base.primary_key),
    )
    options = entry.options if "OPTIONS" in excluded else {**found.options, **entry.options}
    return replace(entry, schema=schema, options=options, partition_keys=entry.partition_keys or found.partition_keys)


# -- views, functions, databases --------------------------------------------------------------------------------------


def _create_view(words: Words, t_env: TableEnvironment, *, temporary: bool, or_replace: bool) -> TableResult:
    from penstock.table.sql.statements import parse_query

    if_not_exists = words.accept("IF", "NOT", "EXISTS")
    path = words.path()
    names = words.names() if words.peek() == "(" else None
    comment = words.string() if words.accept("COMMENT") else None
    words.expect("AS")
    query = words.rest()
    relation = parse_query(query, t_env)
    if names is not None:
        if len(names) != len(relation.fields):
            raise ValidationException("VIEW definition and input fields not match")
        relation = build.rename(relation, names)
    entry = ViewEntry(relation, query, comment)
    if or_replace and t_env.catalogs.find(path) is not None:
        t_env.catalogs.replace(path, entry)
        return success()
    t_env.catalogs.create(path, entry, temporary=temporary, ignore_if_exists=if_not_exists)
    return success()


def _create_function(words: Words, t_env: TableEnvironment, *, temporary: bool) -> TableResult:
    """Execute ``CREATE FUNCTION f AS 'module.name' LANGUAGE PYTHON``."""
    if_not_exists = words.accept("IF", "NOT", "EXISTS")
    path = words.path()
    words.expect("AS")
    target = words.string()
    language = words.name().upper() if words.accept("LANGUAGE") else "PYTHON"
    words.end()
    if language != "PYTHON":
        raise ValidationException(f"functions must be written in Python, not in {language}: use LANGUAGE PYTHON")
    if t_env.catalogs.find_function(path[-1]) is not None:
        if if_not_exists:
            return success()
        raise ValidationException(f"Could not register function '{path[-1]}': it already exists")
    t_env.create_temporary_function(".".join(path), imported(target))
    return success()


def _create_database(words: Words, t_env: TableEnvironment) -> TableResult:
    if_not_exists = words.accept("IF", "NOT", "EXISTS")
    path = words.path()
    comment = words.string() if words.accept("COMMENT") else None
    options = words.options() if words.accept("WITH") else {}
    words.end()
    catalog = t_env.catalogs.catalogs[path[0] if len(path) == 2 else t_env.catalogs.current_catalog]
    if path[-1] in catalog.databases:
        if if_not_exists:
            return success()
        raise ValidationException(f"Database {path[-1]} already exists in catalog.")
    catalog.databases[path[-1]] = Database(comment=comment, options=options)
    return success()


# -- DROP -------------------------------------------------------------------------------------------------------------


def _drop(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("DROP")
    temporary = True if words.accept("TEMPORARY") else None
    system = words.accept("SYSTEM")
    what = words.next().upper()
    if_exists = words.accept("IF", "EXISTS")
    path = words.path()
    catalogs = t_env.catalogs
    if what in ("TABLE", "VIEW"):
        words.end()
        catalogs.drop(path, what, temporary=temporary, if_exists=if_exists)
    elif what == "FUNCTION":
        name = ".".join(path)
        gone = t_env.drop_temporary_system_function(name) if system else t_env.drop_temporary_function(name)
        if not gone and not if_exists:
            raise ValidationException(f"Function '{name}' does not exist.")
    elif what == "DATABASE":
        _drop_database(words, t_env, path, if_exists=if_exists)
    elif what == "CATALOG":
        if catalogs.catalogs.pop(path[0], None) is None and not if_exists:
            raise CatalogException(f"A catalog with name [{path[0]}] does not exist.")
    else:
        raise words.error("TABLE, VIEW, FUNCTION, DATABASE or CATALOG expected", what)
    return success()


def _drop_database(words: Words, t_env: TableEnvironment, path: tuple[str, ...], *, if_exists: bool) -> None:
    cascade = words.accept("CASCADE")
    words.accept("RESTRICT")
    catalogs = t_env.catalogs
    catalog = catalogs.catalogs[path[0] if len(path) == 2 else catalogs.current_catalog]
    database = catalog.databases.get(path[-1])
    if database is None:
        if if_exists:
            return
        raise ValidationException(f"Database {path[-1]} does not exist in catalog.")
    if database.entries and not cascade:
        raise ValidationException(f"Database {path[-1]} is not empty.")
    if path[-1] == catalogs.current_database:
        raise ValidationException("Cannot drop a database which is currently in use.")
    del catalog.databases[path[-1]]


# -- ALTER ------------------------------------------------------------------------------------------------------------


def _alter(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("ALTER")
    if words.accept("VIEW"):
        return _alter_view(words, t_env)
    if words.accept("DATABASE"):
        path = words.path()
        words.expect("SET")
        catalog = path[0] if len(path) == 2 else t_env.catalogs.current_catalog
        t_env.catalogs.database(catalog, path[-1]).options.update(words.options())
        return success()
    words.expect("TABLE")
    if_exists = words.accept("IF", "EXISTS")
    path = words.path()
    entry = t_env.catalogs.find(path)
    if entry is None and if_exists:
        return success()
    if not isinstance(entry, TableEntry):
        raise ValidationException(f"Table `{'.'.join(t_env.catalogs.qualify(path))}` doesn't exist.")
    if words.accept("RENAME"):
        return _rename(words, t_env, path, entry)
    changed = _altered(words, entry)
    words.end()
    t_env.resolver().schema(changed.schema)
    t_env.catalogs.replace(path, changed)
    return success()


def _alter_view(words: Words, t_env: TableEnvironment) -> TableResult:
    from penstock.table.sql.statements import parse_query

    path = words.path()
    if words.accept("RENAME", "TO"):
        t_env.catalogs.rename(path, words.path())
        return success()
    words.expect("AS")
    query = words.rest()
    t_env.catalogs.replace(path, ViewEntry(parse_query(query, t_env), query))
    return success()


def _rename(words: Words, t_env: TableEnvironment, path: tuple[str, ...], entry: TableEntry) -> TableResult:
    if words.accept("TO"):
        t_env.catalogs.rename(path, words.path())
        return success()
    old = words.name()
    words.expect("TO")
    new = words.name()
    names = [column.name for column in entry.schema.columns]
    if old not in names:
        raise ValidationException(f"The column `{old}` does not exist in the table.")
    if new in names:
        raise ValidationException(f"The column `{new}` already existed in the table.")
    columns = tuple(replace(column, name=new) if column.name == old else column for column in entry.schema.columns)
    key = entry.schema.primary_key
    key = None if key is None else tuple(new if name == old else name for name in key)
    schema = replace(entry.schema, columns=columns, primary_key=key)
    t_env.catalogs.replace(path, replace(entry, schema=schema))
    return success()


def _altered(words: Words, entry: TableEntry) -> TableEntry:
    schema = entry.schema
    if words.accept("SET"):
        return replace(entry, options={**entry.options, **words.options()})
    if words.accept("RESET"):
        dropped = set(words.keys())
        return replace(entry, options={key: value for key, value in entry.options.items() if key not in dropped})
    if words.accept("ADD"):
        return replace(entry, schema=_changed(words, schema, must_exist=False))
    if words.accept("MODIFY"):
        return replace(entry, schema=_changed(words, schema, must_exist=True))
    words.expect("DROP")
    if words.accept("PRIMARY", "KEY"):
        return replace(entry, schema=replace(schema, primary_key=None))
    if words.accept("CONSTRAINT"):
        words.name()
        return replace(entry, schema=replace(schema, primary_key=None))
    if words.accept("WATERMARK"):
        return replace(entry, schema=replace(schema, watermark=None))
    dropped_columns = words.names() if words.peek() == "(" else [words.name()]
    known = [column.name for column in schema.columns]
    for name in dropped_columns:
        if name not in known:
            raise ValidationException(f"The column `{name}` does not exist in the table.")
        if name in (schema.primary_key or ()):
            raise ValidationException(f"The column `{name}` is used as the primary key.")
    columns = tuple(column for column in schema.columns if column.name not in dropped_columns)
    return replace(entry, schema=replace(schema, columns=columns))


def _changed(words: Words, schema: Schema, *, must_exist: bool) -> Schema:
    """Execute ADD or MODIFY of columns, a watermark or a primary key."""
    wrapped = words.accept("(")
    while True:
        if words.accept("WATERMARK", "FOR"):
            column = words.name()
            words.expect("AS")
            schema = replace(schema, watermark=UnresolvedWatermark(column, words.expression()))
        elif words.peek().upper() in ("PRIMARY", "CONSTRAINT"):
            schema = replace(schema, primary_key=_primary_key(words))
        else:
            schema = _changed_column(words, schema, must_exist=must_exist)
        if not wrapped:
            return schema
        if words.accept(")"):
            return schema
        words.expect(",")


def _changed_column(words: Words, schema: Schema, *, must_exist: bool) -> Schema:
    column, is_key = _column(words)
    columns = list(schema.columns)
    names = [one.name for one in columns]
    if (column.name in names) != must_exist:
        state = "does not exist in" if must_exist else "already exists in"
        raise ValidationException(f"The column `{column.name}` {state} the table.")
    place = len(columns)
    if must_exist:
        place = names.index(column.name)
        del columns[place]
    if words.accept("FIRST"):
        place = 0
    elif words.accept("AFTER"):
        after = words.name()
        place = [one.name for one in columns].index(after) + 1
    columns.insert(place, column)
    key = (column.name,) if is_key else schema.primary_key
    return replace(schema, columns=tuple(columns), primary_key=key)


# -- USE, SET, RESET --------------------------------------------------------------------------------------------------


def _use(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("USE")
    if words.accept("CATALOG"):
        t_env.use_catalog(words.name())
    elif words.accept("MODULES"):
        words.rest()
    else:
        path = words.path()
        t_env.catalogs.use_database(path[-1], path[0] if len(path) == 2 else None)
    words.end()
    return success()


def _set(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("SET")
    if words.at_end:
        rows = sorted(t_env.get_config().to_map().items())
        return content(["key", "value"], [DataTypes.STRING(), DataTypes.STRING()], rows)
    key = words.string()
    words.expect("=")
    t_env.get_config().set(key, words.string())
    words.end()
    return success()


def _reset(words: Words, t_env: TableEnvironment) -> TableResult:
    words.expect("RESET")
    t_env.get_config().reset(None if words.at_end else words.string())
    words.end()
    return success([Row("OK")])


STATEMENTS: dict[str, Callable[[Words, TableEnvironment], TableResult]] = {
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "USE": _use,
    "SET": _set,
    "RESET": _reset,
}
