"""Draws a pattern: its states in a row, with an arrow for every transition."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from penstock.runtime.cep.operator import CepOperator
from penstock.runtime.cep.state import ENDING_STATE_NAME, Automaton, State, StateTransitionAction, StateType

__all__ = ["PatternPicture", "automaton_of", "draw"]

_TAKE, _IGNORE, _PROCEED = StateTransitionAction.TAKE, StateTransitionAction.IGNORE, StateTransitionAction.PROCEED
_COLOURS = {
    StateType.START: ("#e0f2fe", "#0284c7"),
    StateType.NORMAL: ("#f8fafc", "#64748b"),
    StateType.PENDING: ("#fef9c3", "#ca8a04"),
    StateType.STOP: ("#fee2e2", "#dc2626"),
    StateType.FINAL: ("#dcfce7", "#16a34a"),
}
_GAP = 110  # between two boxes
_HEIGHT = 40  # of a box
_MARGIN = 20
_LETTER = 8.0  # width
_FIRST_ARC = 56  # how far the lowest arc rises above the boxes: loops stay below it
_NEXT_ARC = 20
_LOOP = 46  # the height of a loop and its label
_ON_LINES = 'font-size="11" stroke="#ffffff" stroke-width="3" paint-order="stroke"'


@dataclass(frozen=True)
class _Box:
    left: float
    width: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True)
class PatternPicture:
    """The shapes of a picture, and its size."""

    width: float
    height: float
    label: str
    shapes: str

    def svg(self, place: str = "") -> str:
        """Return the picture as SVG. `place` is its position within another picture."""
        return "\n".join([_header(self.width, self.height, self.label, place), self.shapes, "</svg>", ""])


def automaton_of(operator: Any) -> Automaton | None:
    """Return the automaton of a CEP operator, or None for other operators."""
    return operator.automaton if isinstance(operator, CepOperator) else None


def draw(automaton: Automaton) -> PatternPicture:
    """Draw the states of an automaton from its start to its end."""
    order = _from_start_to_end(automaton)
    boxes: dict[int, _Box] = {}
    left = float(_MARGIN)
    for number in order:
        boxes[number] = _Box(left, max(60.0, 20 + _LETTER * len(_title(automaton.states[number]))))
        left = boxes[number].right + _GAP
    place = {number: column for column, number in enumerate(order)}
    links = automaton.links
    edges = {
        (place[source], place[edge.target], edge.action): _label(automaton, source, edge.target, edge.action, links)
        for source in order
        for edge in automaton.states[source].transitions
    }
    above = sum(target not in {source, source + 1} and action is _TAKE for source, target, action in edges)
    below = sum(target != source and action is not _TAKE for source, target, action in edges)
    loops = {action is _TAKE for source, target, action in edges if source == target}
    top = _MARGIN + 44 + _room(above, loops=True in loops)
    height = top + _HEIGHT + _room(below, loops=False in loops) + _MARGIN
    row = [boxes[number] for number in order]
    parts = [_text(_MARGIN, _MARGIN + 8, automaton.description, "start", 'font-size="13" font-weight="bold"')]
    risen = {True: 0, False: 0}
    for (source, target, action), label in sorted(edges.items(), key=lambda item: abs(item[0][1] - item[0][0])):
        taken = action is _TAKE
        if source == target:
            parts += _loop(row[source], top, label, action)
        elif taken and target == source + 1:
            parts += _straight(row[source], row[target], top, label)
        else:
            parts += _arc(row[source], row[target], top, label, action, _FIRST_ARC + _NEXT_ARC * risen[taken])
            risen[taken] += 1
    parts.sort(key=lambda part: part.startswith("<text"))  # no line crosses a label
    for number, box in zip(order, row, strict=True):
        parts += _state(automaton.states[number], box, top)
    width = max(row[-1].right, _MARGIN + _LETTER * len(automaton.description)) + _MARGIN
    return PatternPicture(width, height, f"The states of {automaton.description}", "\n".join(parts))


def _room(arcs: int, *, loops: bool) -> int:
    """Return the space that arrows need above or below the boxes."""
    if arcs:
        return _FIRST_ARC + _NEXT_ARC * arcs
    return _LOOP if loops else 0


def _from_start_to_end(automaton: Automaton) -> list[int]:
    """Return the reachable states, each after its predecessors as far as loops allow."""
    seen = {automaton.start}
    finished: list[int] = []
    path = [(automaton.start, iter(automaton.states[automaton.start].transitions))]
    while path:
        number, edges = path[-1]
        edge = next(edges, None)
        if edge is None:
            finished.append(number)
            path.pop()
        elif edge.target not in seen:
            seen.add(edge.target)
            path.append((edge.target, iter(automaton.states[edge.target].transitions)))
    return finished[::-1]


def _label(automaton: Automaton, source: int, target: int, action: StateTransitionAction, links: dict[str, str]) -> str:
    """Return the contiguity if an arrow takes an event and leads to a later pattern, otherwise the action."""
    before, behind = automaton.states[source].pattern_name, automaton.states[target].pattern_name
    names = list(links)
    if action is _TAKE and behind in links and before in links and names.index(behind) > names.index(before):
        return links[behind]
    return action.value


def _title(state: State) -> str:
    return "match" if state.name == ENDING_STATE_NAME else state.name


# -- shapes -----------------------------------------------------------------------------------------------------------


def _header(width: float, height: float, label: str, place: str) -> str:
    tip = '<path d="M0,0 L8,4 L0,8 z" fill="#475569"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {place}width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="{escape(label)}">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f"{tip}</marker></defs>\n"
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
    )


def _state(state: State, box: _Box, top: float) -> list[str]:
    fill, stroke = _COLOURS[state.type]
    shape = f'x="{box.left:.0f}" y="{top:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="6"'
    return [
        f'<rect {shape} fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>',
        _text(box.middle, top + _HEIGHT / 2 + 5, _title(state), "middle", 'font-size="14"'),
    ]


def _straight(source: _Box, target: _Box, top: float, label: str) -> list[str]:
    y = top + _HEIGHT / 2
    path = f"M{source.right:.0f},{y:.0f} L{target.left:.0f},{y:.0f}"
    return [_line(path, _TAKE), _text((source.right + target.left) / 2, y - 6, label)]


def _loop(box: _Box, top: float, label: str, action: StateTransitionAction) -> list[str]:
    """Draw a loop: above the box if the event is taken, otherwise below it."""
    edge, away = (top, -1) if action is _TAKE else (top + _HEIGHT, 1)
    far = edge + 34 * away
    path = f"M{box.middle - 12:.0f},{edge:.0f} C{box.middle - 22:.0f},{far:.0f} {box.middle + 22:.0f},{far:.0f} "
    path += f"{box.middle + 12:.0f},{edge:.0f}"
    return [_line(path, action), _text(box.middle, far + (8 if action is not _TAKE else 0), label)]


def _arc(source: _Box, target: _Box, top: float, label: str, action: StateTransitionAction, rise: float) -> list[str]:
    """Draw an arc around the boxes between two states: above them if the event is taken, otherwise below them."""
    edge, away = (top, -1) if action is _TAKE else (top + _HEIGHT, 1)
    inwards = 18 if target.left > source.left else -18
    begin, end = source.middle + inwards, target.middle - inwards
    bend = edge + away * rise * 4 / 3  # the curve covers three quarters of the distance to its control points
    path = f"M{begin:.0f},{edge:.0f} C{begin:.0f},{bend:.0f} {end:.0f},{bend:.0f} {end:.0f},{edge:.0f}"
    return [_line(path, action), _text((begin + end) / 2, edge + away * rise + (14 if away > 0 else -4), label)]


def _line(path: str, action: StateTransitionAction) -> str:
    dashes = "" if action is _TAKE else ' stroke-dasharray="4 3"'
    return f'<path d="{path}" fill="none" stroke="#475569" stroke-width="1.3"{dashes} marker-end="url(#tip)"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = _ON_LINES) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more} fill="#1e293b" text-anchor="{anchor}">{escape(text)}</text>'
