"""Catalogs as objects: functions, partitions, statistics; modules, pandas, set operations of the Table API."""

import pandas as pd
import pytest

from penstock.common import Configuration
from penstock.table import DataTypes, EnvironmentSettings, FunctionContext, Module, ScalarFunction, Schema
from penstock.table.catalog import (
    CatalogBaseTable,
    CatalogColumnStatistics,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    ObjectPath,
    UniqueConstraint,
)
from penstock.table.expressions import col
from penstock.table.table_schema import TableSchema
from penstock.table.udf import udf
from penstock.util.exceptions import CatalogException, ValidationException

PATH = ObjectPath("default_database", "visits")


@pytest.fixture
def catalog(t_env):
    t_env.create_catalog("c", CatalogDescriptor.of("c", Configuration()))
    t_env.use_catalog("c")
    found = t_env.get_catalog("c")
    found.create_database("default_database", CatalogDatabase.create_instance({}), True)
    schema = Schema.new_builder().column("day", "STRING").column("n", "INT").build()
    found.create_table(PATH, CatalogBaseTable.create_table(schema, ["day"], {"connector": "blackhole"}), False)
    return found


def test_t121_partitions_of_a_table(catalog):
    spec = CatalogPartitionSpec({"day": "2024-01-01"})
    catalog.create_partition(PATH, spec, CatalogPartition.create_instance({"k": "v"}, "first"), False)
    assert catalog.partition_exists(PATH, spec)
    assert catalog.list_partitions(PATH) == [spec]
    assert catalog.get_partition(PATH, spec).get_properties() == {"k": "v"}
    with pytest.raises(CatalogException, match="does not match partition keys"):
        catalog.create_partition(PATH, CatalogPartitionSpec({"n": "1"}), CatalogPartition(), False)
    catalog.drop_partition(PATH, spec, False)
    with pytest.raises(CatalogException, match="does not exist"):
        catalog.get_partition(PATH, spec)


def test_t121_statistics_of_a_table(catalog):
    assert catalog.get_table_statistics(PATH).get_row_count() == -1
    catalog.alter_table_statistics(PATH, CatalogTableStatistics(row_count=7), False)
    catalog.alter_table_column_statistics(PATH, CatalogColumnStatistics({"n": "x"}), False)
    assert catalog.get_table_statistics(PATH).get_row_count() == 7
    assert catalog.get_table_column_statistics(PATH).get_column_statistics_data() == {"n": "x"}
    missing = ObjectPath("default_database", "nope")
    catalog.alter_table_statistics(missing, CatalogTableStatistics(1), True)
    with pytest.raises(CatalogException):
        catalog.alter_table_statistics(missing, CatalogTableStatistics(1), False)


def test_t121_functions_of_a_catalog(catalog, t_env):
    path = ObjectPath("default", "shout")
    catalog.create_function(path, CatalogFunction.create_instance("tests.table.user_functions.shout"), False)
    assert catalog.get_function(path).get_class_name() == "tests.table.user_functions.shout"
    assert t_env.drop_function("shout")
    assert not catalog.function_exists(path)


def test_t121_a_catalog_is_registered_under_a_name(catalog, t_env):
    t_env.register_catalog("d", catalog)
    assert "d" in t_env.list_catalogs()
    with pytest.raises(CatalogException, match="already exists"):
        t_env.register_catalog("d", catalog)


def test_there_is_one_module(t_env):
    assert t_env.list_modules() == ["core"]
    t_env.use_modules("core")
    with pytest.raises(ValidationException):
        t_env.load_module("mine", Module())


def test_a_primary_key_is_a_constraint():
    key = UniqueConstraint.primary_key("k", ["a"])
    assert key.get_type() is UniqueConstraint.ConstraintType.PRIMARY_KEY
    assert not key.is_enforced()


def test_from_pandas_takes_types_from_columns(sql, t_env):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    t_env.create_temporary_view("t", t_env.from_pandas(frame))
    assert sql.rows("SELECT a + 1, b FROM t") == [(2, "x"), (3, None)]
    named = t_env.from_pandas(frame, ["c", "d"])
    assert named.get_resolved_schema().get_column_names() == ["c", "d"]
    typed = t_env.from_pandas(frame, [DataTypes.INT(), DataTypes.STRING()])
    assert typed.get_resolved_schema().get_column_data_types()[0] == DataTypes.INT()


class WhereAmI(ScalarFunction):
    def open(self, function_context: FunctionContext):
        self.place = (
            function_context.get_index_of_this_subtask(),
            function_context.get_number_of_parallel_subtasks(),
            function_context.get_attempt_number(),
        )

    def eval(self):
        return str(self.place)


def test_t102_functions_know_their_task(sql):
    sql.t_env.create_temporary_system_function("place", udf(WhereAmI(), result_type="STRING"))
    assert sql.rows("SELECT place()") == [("(0, 1, 0)",)]


def test_t131_set_operations_of_the_table_api_are_refused_in_streaming_mode(t_env):
    table = t_env.from_elements([(1,)], ["a"])
    for method in (table.union, table.intersect, table.minus, table.intersect_all, table.minus_all):
        with pytest.raises(ValidationException, match="not supported in streaming mode"):
            method(table)


def test_t131_set_operations_of_the_table_api_work_in_batch_mode(batch):
    left = batch.t_env.from_elements([(1,), (1,), (2,)], ["a"])
    right = batch.t_env.from_elements([(1,), (3,)], ["a"])
    assert sorted(batch.rows(left.union(right))) == [(1,), (2,), (3,)]
    assert batch.rows(left.intersect(right)) == [(1,)]
    assert batch.rows(left.minus(right)) == [(2,)]
    assert sorted(batch.rows(left.minus_all(right))) == [(1,), (2,)]


@pytest.mark.parametrize(("mode", "streaming"), [("batch", False), ("STREAMING", True)])
def test_the_mode_of_an_environment_may_come_from_its_configuration(mode, streaming):
    options = Configuration().set_string("execution.runtime-mode", mode)
    assert EnvironmentSettings.new_instance().with_configuration(options).build().is_streaming_mode() is streaming


def test_equal_schemas_of_tables_have_equal_hashes_and_rows_that_are_not_null():
    one, two = (TableSchema(["a", "b"], [DataTypes.INT(), DataTypes.STRING()]) for _ in range(2))
    assert (one, hash(one)) == (two, hash(two))
    assert str(one.to_row_data_type()) == "ROW<`a` INT, `b` STRING> NOT NULL"
    assert one.to_row_data_type().names == ["a", "b"]


def test_columns_of_a_data_frame_have_the_width_of_the_tables_numbers_unless_they_contain_null(batch):
    types = [DataTypes.TINYINT(), DataTypes.INT(), DataTypes.FLOAT(), DataTypes.SMALLINT(), DataTypes.STRING()]
    row = DataTypes.ROW([DataTypes.FIELD(name, type_) for name, type_ in zip("abcde", types, strict=True)])
    frame = batch.t_env.from_elements([(1, 2, 0.5, 3, "x"), (4, 5, 0.5, None, None)], row).to_pandas()
    assert [str(frame[name].dtype) for name in "abcd"] == ["int8", "int32", "float32", "float64"]
    assert frame["a"].tolist() == [1, 4]
    empty = batch.t_env.from_elements([(1,)], ["a"]).where(col("a") > 1).to_pandas()
    assert (len(empty), str(empty["a"].dtype)) == (0, "int64")
