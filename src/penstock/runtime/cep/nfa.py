"""The common part of both automata: the state of a key, its paths, and the evaluation of conditions.

A *run* is a partial match: its current state, and the last node of its path. A *node* is an event that a run took, with
a link to the previous node. Forked runs share their nodes, so the cost of an event does not depend on the length of the
path. Nodes that no run reaches are removed when the number of nodes has doubled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.core.cep import IterativeCondition
from penstock.runtime.cep.decisions import Decisions, Outcome, Question
from penstock.runtime.cep.state import Automaton, StateType
from penstock.runtime.state.chunked_map import ChunkedMap

__all__ = ["NEVER", "NFA", "NO_NODE", "NFAState", "Node", "Path"]

NO_NODE = -1
NEVER = 1 << 63  # later than any timestamp

Node = tuple[int, int, int, int, Any]
"""(previous node, TAKE transition, number of the event, its timestamp, the event)"""
Path = list[Node]

_SWEEP_FROM = 12  # nodes: fewer are not worth a sweep, more are written with the key in every batch


class NFAState:
    """The partial matches of one key. The kind of automaton determines the layout of `runs` and `completed`."""

    __slots__ = ("changed", "completed", "next_number", "nodes", "runs", "swept")

    def __init__(
        self,
        runs: Any,
        completed: list[Any],
        nodes: dict[int, Node] | ChunkedMap | None,
        numbers: tuple[int, int],
    ) -> None:
        self.runs = runs
        self.completed = completed
        self.nodes: Any = {} if nodes is None else nodes
        self.next_number, self.swept = numbers
        self.changed = False


class ConditionContext(IterativeCondition.Context):
    """The `ctx` of iterative conditions."""

    __slots__ = ("_clock", "_nfa", "_taken", "node", "state", "timestamp_")

    def __init__(self, nfa: NFA, clock: Callable[[], int]) -> None:
        self._nfa = nfa
        self._clock = clock
        self._taken: dict[str, list[Any]] | None = None
        self.state: NFAState
        self.node = NO_NODE
        self.timestamp_ = 0

    def turn_to(self, node: int) -> None:
        """Select the run for which a condition is evaluated."""
        self.node = node
        self._taken = None

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Return the events that the run has taken. Its path is read only once."""
        if self._taken is None:
            self._taken = {}
            names = self._nfa.decisions.names
            for _, transition, _, _, event in self._nfa.path(self.state, self.node):
                self._taken.setdefault(names[transition], []).append(event)
        return self._taken.get(name, [])[:]

    def timestamp(self) -> int:
        """The timestamp of the current event."""
        return self.timestamp_

    def current_processing_time(self) -> int:
        """The processing time in ms."""
        return self._clock()


class NFA(ABC):
    """Runs an automaton. It receives events and time, and passes matches and timeouts to its listeners."""

    def __init__(
        self,
        automaton: Automaton,
        clock: Callable[[], int],
        on_match: Callable[[Path, int, str], None],
        on_timeout: Callable[[Path, int, str], None] | None,
        *,
        advances_before_every_event: bool = False,
    ) -> None:
        """`advances_before_every_event`: check limits before each event, not once per timestamp."""
        self.automaton = automaton
        self.advances_before_every_event = advances_before_every_event
        self.decisions = Decisions(automaton)
        self.window = automaton.window_time
        self.limits = automaton.window_times
        self._pending = {n for n, state in enumerate(automaton.states) if state.type is StateType.PENDING}
        self._on_match = on_match
        self._on_timeout = on_timeout
        self._context = ConditionContext(self, clock)
        self.asked: Question | None = None
        """The condition that was evaluated last, to name it if it fails."""

    # -- abstract methods ---------------------------------------------------------------------------------------

    @abstractmethod
    def restore(self, runs: Any) -> tuple[Any, list[Any]]:
        """Return (runs, completed) for stored runs. None is a key without any."""

    @abstractmethod
    def store(self, state: NFAState) -> Any:
        """Return the stored form of a key's state, or None if it is empty."""

    @abstractmethod
    def process(self, state: NFAState, timestamps: list[int], values: list[Any]) -> int | None:
        """Process events of one key in order. Return the position of the first one that began a run, if any."""

    @abstractmethod
    def advance_time(self, state: NFAState, timestamp: int) -> None:
        """Drop runs whose limit has passed: no event before the timestamp will come."""

    @abstractmethod
    def earliest_start(self, state: NFAState) -> int | None:
        """Return the timestamp of the first event of the oldest run."""

    @abstractmethod
    def last_nodes(self, state: NFAState) -> Iterable[int]:
        """Return the last nodes of all runs and waiting matches."""

    @abstractmethod
    def count_runs(self, state: NFAState) -> int:
        """Return the number of partial matches."""

    # -- conditions ---------------------------------------------------------------------------------------------

    def decide_for_run(
        self, state: NFAState, root: Question | Outcome, node: int, timestamp: int, value: Any, truth: dict[int, bool]
    ) -> Outcome:
        """Return the outcome for one run that depends on its events. `truth` has the results of simple conditions."""
        context = self._context
        context.state, context.timestamp_ = state, timestamp
        context.turn_to(node)
        at = root
        while at.__class__ is Question:
            assert isinstance(at, Question)
            self.asked = at
            if at.iterative:
                held = bool(at.call(value, context))
            else:
                known = truth.get(at.condition)
                held = bool(at.call(value)) if known is None else known
                truth[at.condition] = held
            at = (at.yes if held else at.no) or at.answer(held=held)
        assert isinstance(at, Outcome)
        return at

    # -- paths --------------------------------------------------------------------------------------------------

    def path(self, state: NFAState, node: int) -> Path:
        """Return the nodes from the first to the given one."""
        nodes = state.nodes
        get = nodes.peek if isinstance(nodes, ChunkedMap) else nodes.__getitem__
        found: Path = []
        while node != NO_NODE:
            one = get(node)
            found.append(one)
            node = one[0]
        found.reverse()
        return found

    def sweep(self, state: NFAState) -> None:
        """Remove nodes that no run reaches, if there are twice as many nodes as after the last sweep."""
        nodes = state.nodes
        if len(nodes) <= 2 * state.swept + _SWEEP_FROM:
            return
        get = nodes.peek if isinstance(nodes, ChunkedMap) else nodes.__getitem__
        live: dict[int, Node] = {}
        for last in self.last_nodes(state):
            node = last
            while node != NO_NODE and node not in live:
                one = live[node] = get(node)
                node = one[0]
        if isinstance(nodes, ChunkedMap):
            for node in [node for node in nodes if node not in live]:
                del nodes[node]
        else:
            state.nodes = {node: live[node] for node in sorted(live)}
        state.swept = len(live)
