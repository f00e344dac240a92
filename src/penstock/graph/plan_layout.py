"""The layout of a plan's picture: the positions of boxes, arrows and labels.

Each stage is a column of boxes. Between two columns, there is a strip in which arrows bend, followed by one in which
they are horizontal, each below its own label, and enter the boxes. An arrow that passes a column gets its own place
there, like a box. So arrows cross each other only where they bend, and never cross a label or a box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.graph.job_graph import JobGraph
from penstock.graph.pattern_picture import automaton_of
from penstock.runtime.plan.job_vertex import JobEdge, JobVertex

__all__ = ["Arrow", "Box", "Column", "PlanLayout", "arrow_label", "box_texts", "stage_title", "vertices_at"]

LINE = 17  # height of a line of text
PADDING = 12
TOP = 56
_CHARACTER = 7.4  # approximate width of a character
_LABEL_CHARACTER = 6.8
_BENDS = 70  # width of the strip in which arrows bend
_BETWEEN_BOXES = 24
_BETWEEN_ARROWS = 20


@dataclass(slots=True)
class Box:
    """A task, or the place where an arrow passes a column, which has no size."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x position where arrows begin."""
        return self.left + self.width

    @property
    def middle(self) -> float:
        """The y position of its center."""
        return self.top + self.height / 2


@dataclass(slots=True)
class Column:
    """A stage."""

    left: float = 0.0
    width: float = 0.0
    label_width: float = 0.0
    """The width of the longest label of an arrow that ends here."""
    bottom: float = TOP

    @property
    def right(self) -> float:
        """The x position from which arrows to the next columns may bend."""
        return self.left + self.width


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line through some points, horizontal between two of the same height, with a label at its end."""

    points: list[tuple[float, float]]
    label: str
    label_left: float


@dataclass(slots=True)
class _Passage:
    """An arrow that passes a column."""

    edge: JobEdge
    level: int


_Item = JobVertex | _Passage


@dataclass(slots=True)
class PlanLayout:
    """The layout of a job's picture."""

    job: JobGraph
    boxes: dict[int, Box] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    _passages: dict[tuple[int, int], Box] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Place all items, column by column."""
        for level in range(self.job.levels + 1):
            self._add_column(level)

    @property
    def width(self) -> float:
        """The width of the picture."""
        return max(self.columns[-1].right, len(self.job.name) * 9) + PADDING

    @property
    def height(self) -> float:
        """The height of the picture."""
        return max(column.bottom for column in self.columns) + PADDING

    @property
    def arrows(self) -> Iterator[Arrow]:
        """Yield the arrows between boxes."""
        for edge in self.job.edges:
            source, target = self.job.vertices[edge.source], self.job.vertices[edge.target]
            points = [(self.boxes[source.id].right, self.boxes[source.id].middle)]
            for level in range(source.level, target.level):
                here, following = self.columns[level], self.columns[level + 1]
                last = level + 1 == target.level
                y = self._port(edge, target) if last else self._passages[edge.id, level + 1].middle
                bent = following.left - following.label_width
                points += [(here.right, points[-1][1]), (bent, y)]
            points.append((self.boxes[target.id].left, points[-1][1]))
            yield Arrow(points, arrow_label(edge), bent + PADDING / 2)

    # -- columns ------------------------------------------------------------------------------------------------------

    def _add_column(self, level: int) -> None:
        job = self.job
        ending = [arrow_label(edge) for edge in job.edges if job.vertices[edge.target].level == level]
        longest = max(map(len, ending), default=0)
        label_width = longest * _LABEL_CHARACTER + 2 * PADDING if longest else 0.0
        left = PADDING if level == 0 else self.columns[-1].right + _BENDS + label_width
        column = Column(left, label_width=label_width)
        self.columns.append(column)
        items: list[_Item] = [*vertices_at(job, level), *self._passing(level)]
        top = float(TOP)
        for item in sorted(items, key=self._wanted):
            box = self._box(item, left)
            box.top = max(top, self._wanted(item) - box.height / 2)
            top = box.top + box.height + _BETWEEN_BOXES
            column.width = max(column.width, box.width)
            column.bottom = max(column.bottom, box.top + box.height)
            if isinstance(item, _Passage):
                self._passages[item.edge.id, level] = box
            else:
                self.boxes[item.id] = box

    def _passing(self, level: int) -> list[_Passage]:
        level_of = [vertex.level for vertex in self.job.vertices]
        return [
            _Passage(edge, level) for edge in self.job.edges if level_of[edge.source] < level < level_of[edge.target]
        ]

    def _box(self, item: _Item, left: float) -> Box:
        if isinstance(item, _Passage):
            return Box(left, 0.0, 0.0, 0.0)
        texts = box_texts(item)
        height = max(len(texts) * LINE + PADDING, len(item.inputs) * _BETWEEN_ARROWS + PADDING)
        return Box(left, 0.0, max(map(len, texts)) * _CHARACTER + 2 * PADDING, height)

    def _wanted(self, item: _Item) -> float:
        """Return the height at which arrows are horizontal: that of the boxes from which the item reads."""
        edges = [item.edge] if isinstance(item, _Passage) else [self.job.edges[edge] for edge in item.inputs]
        level = item.level - 1
        heights = [self._height_at(edge, level) for edge in edges]
        return sum(heights) / len(heights) if heights else 0.0

    def _height_at(self, edge: JobEdge, level: int) -> float:
        """Return the height at which an arrow leaves a column."""
        passage = self._passages.get((edge.id, level))
        return self.boxes[edge.source].middle if passage is None else passage.middle

    def _port(self, edge: JobEdge, target: JobVertex) -> float:
        """Return the height at which an arrow ends. Arrows into one box keep their order and a distance."""
        box = self.boxes[target.id]
        edges = [self.job.edges[incoming] for incoming in target.inputs]
        in_order = sorted(edges, key=lambda incoming: (self._height_at(incoming, target.level - 1), incoming.id))
        position = [incoming.id for incoming in in_order].index(edge.id)
        first = box.middle - (len(edges) - 1) * _BETWEEN_ARROWS / 2
        return first + position * _BETWEEN_ARROWS


# -- labels -----------------------------------------------------------------------------------------------------------


def vertices_at(job: JobGraph, level: int) -> list[JobVertex]:
    """Return the tasks of a stage."""
    return [vertex for vertex in job.vertices if vertex.level == level]


def stage_title(level: int) -> str:
    """Return the title of a column."""
    return "stage 0: sources" if level == 0 else f"stage {level}"


def box_texts(vertex: JobVertex) -> list[str]:
    """Return the lines in a box."""
    texts: list[str] = []
    for one in vertex.operators:
        texts.append(one.name)
        if (automaton := automaton_of(one.operator)) is not None:
            texts.append(f"  {automaton.description}")
    return [*texts, f"parallelism {vertex.parallelism}"]


def arrow_label(edge: JobEdge) -> str:
    """Return the label of an arrow."""
    label = edge.partitioner.name.lower()
    return f"{label}: {edge.tag_id}" if edge.tag_id else label
