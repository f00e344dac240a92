"""The planner: rules on the logical plan, changelog inference, then transformations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.transformation import (
    OneInputTransformation,
    PartitionTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)
from penstock.runtime.exchange.partitioner import GlobalPartitioner
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.table.async_calls import AsyncCalls
from penstock.runtime.table.expressions import EvaluationContext
from penstock.runtime.table.operators.watermark_assigner import Cuts
from penstock.runtime.table.partitioner import ColumnHashPartitioner
from penstock.table.plan.exec.registry import translation_of
from penstock.table.plan.nodes.base import Changelog, Rel, UpsertKeys
from penstock.table.plan.prune import prune_columns
from penstock.table.plan.rules import optimize
from penstock.table.plan.sharing import Sharing
from penstock.table.plan.watermarks import wanted_cuts
from penstock.util.exceptions import TableException


@dataclass(slots=True)
class PlannerSettings:
    """The settings that a translation depends on."""

    time_zone: str = "UTC"
    batch: bool = False
    mini_batch: bool = False
    state_ttl: int = 0
    watermark_interval: int = 200
    options: dict[str, str] = field(default_factory=dict)
    database: str = "default_database"
    async_calls: AsyncCalls = field(default_factory=AsyncCalls)

    def evaluation(self) -> EvaluationContext:
        """Create an evaluation context. Each operator gets its own."""
        return EvaluationContext(time_zone=self.time_zone, database=self.database, async_calls=self.async_calls)


class Planner:
    """Translates relations. A relation that is used twice is translated once."""

    def __init__(self, env: StreamExecutionEnvironment, settings: PlannerSettings) -> None:
        self.env = env
        self.settings = settings
        self._translated: dict[tuple[int, bool, Cuts], Transformation] = {}
        self._sharing = Sharing()
        self.cuts = Cuts.EXACT
        """The positions at which the current plan needs watermarks among its rows."""
        self._kept: list[Rel] = []  # ids are unique only among living objects
        self._changelogs: dict[int, Changelog] = {}
        self._keys: dict[int, UpsertKeys] = {}

    def optimize(self, rel: Rel) -> Rel:
        """Return the optimized plan."""
        return self._sharing.share(prune_columns(optimize(rel, batch=self.settings.batch)))

    def translate_root(self, rel: Rel, *, update_before: bool) -> Transformation:
        """Return the transformation of a relation that only a sink reads."""
        self.cuts = wanted_cuts(rel)
        try:
            return self.translate(rel, update_before=update_before)
        finally:
            self.cuts = Cuts.EXACT

    # -- properties of nodes ------------------------------------------------------------------------------------

    def changelog(self, rel: Rel) -> Changelog:
        """Return the row kinds of a relation. In batch mode, all rows are inserts."""
        if self.settings.batch:
            return Changelog()
        known = self._changelogs.get(id(rel))
        if known is None:
            known = self._changelogs[id(rel)] = rel.changelog([self.changelog(one) for one in rel.inputs])
            self._kept.append(rel)
        return known

    def upsert_keys(self, rel: Rel) -> UpsertKeys:
        """Return the columns under which a relation's rows are updated."""
        known = self._keys.get(id(rel))
        if known is None:
            known = self._keys[id(rel)] = rel.upsert_keys([self.upsert_keys(one) for one in rel.inputs])
            self._kept.append(rel)
        return known

    # -- translation --------------------------------------------------------------------------------------------

    def translate(self, rel: Rel, *, update_before: bool) -> Transformation:
        """Return the transformation of a relation. `update_before` is whether its reader needs `-U`."""
        update_before = update_before and self.changelog(rel).updates
        key = (id(rel), update_before, self.cuts)
        known = self._translated.get(key)
        if known is None:
            translate = translation_of(type(rel))
            if translate is None:
                raise TableException(f"{rel.describe()} cannot be run yet")
            known = self._translated[key] = translate(self, rel, update_before)
            self._kept.append(rel)
        return known

    def inputs(self, rel: Rel, update_before: bool) -> list[Transformation]:
        """Return the transformations of a node's inputs, with the `-U` rows that the node needs."""
        needed = rel.needs_update_before(update_before, [self.changelog(one) for one in rel.inputs])
        return [self.translate(one, update_before=need) for one, need in zip(rel.inputs, needed, strict=True)]

    # -- building blocks ----------------------------------------------------------------------------------------

    def one_input(
        self,
        source: Transformation,
        operator: StreamOperator,
        name: str,
        description: str | None = None,
        *,
        parallelism: int | None = -1,
    ) -> Transformation:
        """Add an operator after a transformation. The default parallelism is that of the transformation."""
        return OneInputTransformation(
            name=name,
            description=description,
            input=source,
            operator=operator,
            parallelism=parallelism_of(source) if parallelism == -1 else parallelism,
        )

    def two_inputs(
        self,
        first: Transformation,
        second: Transformation,
        operator: StreamOperator,
        name: str,
        *,
        single: bool = False,
    ) -> Transformation:
        """Add an operator with two inputs that are already partitioned."""
        return TwoInputTransformation(
            name=name, input1=first, input2=second, operator=operator, parallelism=1 if single else None
        )

    def exchange(self, source: Transformation, keys: Sequence[int]) -> tuple[Transformation, int | None]:
        """Partition rows by key and return the parallelism. Without keys, all rows go to one task."""
        if not keys:
            return PartitionTransformation(name="Exchange", input=source, partitioner=GlobalPartitioner()), 1
        partitioner = ColumnHashPartitioner(keys)
        return PartitionTransformation(name="Exchange", input=source, partitioner=partitioner), None

    def state_ttl(self, hint: int | None = None) -> int:
        """Return how long unwritten state is kept, in milliseconds; 0 means forever (T126)."""
        if self.settings.batch:
            return 0
        return self.settings.state_ttl if hint is None else hint

    def context(self, **changes: Any) -> EvaluationContext:
        """Return the evaluation context of one operator."""
        return replace(self.settings.evaluation(), **changes)


def parallelism_of(transformation: Transformation) -> int | None:
    """Return the parallelism of the operator after virtual transformations; None is the environment's."""
    while isinstance(transformation, PartitionTransformation):
        transformation = transformation.input
    if isinstance(transformation, UnionTransformation):
        found = {parallelism_of(one) for one in transformation.streams}
        return found.pop() if len(found) == 1 else None
    return 1 if transformation.force_non_parallel else transformation.parallelism
