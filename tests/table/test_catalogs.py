"""Catalogs as objects, and joins of the Table API (T70, T71, T121)."""

import pytest

from penstock.table import DataTypes, Schema
from penstock.table.catalog import CatalogBaseTable, CatalogDatabase, ObjectPath
from penstock.table.expressions import col
from penstock.util.exceptions import CatalogException, ValidationException


@pytest.fixture
def catalog(t_env):
    return t_env.get_catalog("default_catalog")


def test_t121_a_catalog_shows_what_statements_make(t_env, catalog):
    t_env.execute_sql("CREATE TABLE t (id INT) COMMENT 'numbers' WITH ('connector' = 'print')")
    t_env.execute_sql("CREATE VIEW v AS SELECT 1 AS n")
    assert catalog.list_tables("default_database") == ["t", "v"]
    assert catalog.list_views("default_database") == ["v"]
    table = catalog.get_table(ObjectPath("default_database", "t"))
    assert table.get_options() == {"connector": "print"}
    assert table.get_comment() == "numbers"
    assert t_env.get_catalog("nowhere") is None


def test_t121_statements_see_what_a_catalog_makes(t_env, catalog):
    catalog.create_database("shop", CatalogDatabase.create_instance({"k": "v"}, "a shop"), ignore_if_exists=False)
    assert catalog.get_database("shop").get_comment() == "a shop"
    schema = Schema.new_builder().column("id", DataTypes.INT()).build()
    path = ObjectPath.from_string("shop.orders")
    catalog.create_table(path, CatalogBaseTable.create_table(schema, options={"connector": "blackhole"}), False)
    catalog.rename_table(path, "sales", ignore_if_not_exists=False)
    t_env.execute_sql("INSERT INTO shop.sales VALUES (1)").wait()
    with pytest.raises(CatalogException, match="not empty"):
        catalog.drop_database("shop", ignore_if_exists=False)
    catalog.drop_table(ObjectPath("shop", "sales"), ignore_if_not_exists=False)
    catalog.drop_database("shop", ignore_if_exists=False)
    assert not catalog.database_exists("shop")
    with pytest.raises(CatalogException, match="does not exist"):
        catalog.get_table(path)


def test_t70_joins_of_the_table_api(sql):
    left = sql.t_env.from_elements([(1, "a"), (2, "b")], ["id", "l"])
    right = sql.t_env.from_elements([(2, "x"), (3, "y")], ["rid", "r"])
    condition = col("id") == col("rid")
    shown = [col("l"), col("r")]
    assert sql.final(left.join(right, condition).select(*shown)) == [("b", "x")]
    assert sql.final(left.left_outer_join(right, condition).select(*shown)) == [("a", None), ("b", "x")]
    assert sql.final(left.right_outer_join(right, condition).select(*shown)) == [("b", "x"), (None, "y")]
    assert sql.final(left.full_outer_join(right, condition).select(*shown)) == [("a", None), ("b", "x"), (None, "y")]
    with pytest.raises(ValidationException, match="ambiguous names"):
        left.join(left, condition)
