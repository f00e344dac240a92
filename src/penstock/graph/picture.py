"""Pictures of a job graph: Mermaid and Graphviz text, and SVG drawn here, so that nobody needs anything to see one."""

from __future__ import annotations

from html import escape

from penstock.graph.job_graph import JobGraph
from penstock.runtime.job import JobEdge, JobVertex

__all__ = ["dot", "mermaid", "svg"]

_LINE = 17  # height of a line of text
_CHARACTER = 7.4  # width of a character, about
_PADDING = 12
_BETWEEN_LEVELS = 130
_BETWEEN_BOXES = 34
_TOP = 56


def mermaid(job: JobGraph) -> str:
    """A Mermaid flow chart: what many documentation tools draw by themselves."""
    lines = ["flowchart LR"]
    for level in range(job.levels + 1):
        lines.append(f'  subgraph stage{level}["{_stage_title(level)}"]')
        for vertex in _at(job, level):
            label = "<br/>".join(_plain(text) for text in _texts(vertex))
            lines.append(f'    v{vertex.id}["{label}"]')
        lines.append("  end")
    lines += [f'  v{edge.source} -->|"{_plain(_label(edge))}"| v{edge.target}' for edge in job.edges]
    return "\n".join(lines)


def dot(job: JobGraph) -> str:
    """Graphviz text."""
    lines = [f"digraph {_quoted(job.name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for level in range(job.levels + 1):
        lines.append(f"  subgraph cluster_{level} {{")
        lines.append(f"    label={_quoted(_stage_title(level))};")
        lines += [f"    v{vertex.id} [label={_quoted(chr(10).join(_texts(vertex)))}];" for vertex in _at(job, level)]
        lines.append("  }")
    lines += [f"  v{edge.source} -> v{edge.target} [label={_quoted(_label(edge))}];" for edge in job.edges]
    return "\n".join([*lines, "}"])


def svg(job: JobGraph) -> str:
    """An SVG picture: a column for each stage, a box for each task, its operators within."""
    boxes, width, height = _layout(job)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    view = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="monospace" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#64748b"/></marker></defs>',
        f'<rect {size} fill="#ffffff"/>',
        _text(_PADDING, 20, job.name, 'font-weight="bold" font-size="14"'),
    ]
    for level in range(job.levels + 1):
        left = min(boxes[vertex.id][0] for vertex in _at(job, level))
        parts.append(_text(left, _TOP - 12, _stage_title(level), 'fill="#64748b"'))
    parts += [_arrow(edge, boxes) for edge in job.edges]
    parts += [_box(vertex, boxes[vertex.id]) for vertex in job.vertices]
    return "\n".join([*parts, "</svg>"])


# -- layout -----------------------------------------------------------------------------------------------------------

Box = tuple[float, float, float, float]
"""Left, top, width, height."""


def _layout(job: JobGraph) -> tuple[dict[int, Box], float, float]:
    boxes: dict[int, Box] = {}
    left, bottom = float(_PADDING), float(_TOP)
    for level in range(job.levels + 1):
        # A box is as near as it can be to those it reads from; boxes of a column never overlap.
        column = sorted(_at(job, level), key=lambda vertex: (_wanted_top(vertex, job, boxes), vertex.id))
        widest, top = 0.0, float(_TOP)
        for vertex in column:
            texts = _texts(vertex)
            width = max(map(len, texts)) * _CHARACTER + 2 * _PADDING
            height = len(texts) * _LINE + _PADDING
            boxes[vertex.id] = (left, top, width, height)
            top += height + _BETWEEN_BOXES
            widest = max(widest, width)
        bottom = max(bottom, top - _BETWEEN_BOXES)
        left += widest + _BETWEEN_LEVELS
    return boxes, max(left - _BETWEEN_LEVELS, len(job.name) * 9) + _PADDING, bottom + _PADDING


def _wanted_top(vertex: JobVertex, job: JobGraph, boxes: dict[int, Box]) -> float:
    tops = [boxes[job.edges[edge].source][1] for edge in vertex.inputs if job.edges[edge].source in boxes]
    return sum(tops) / len(tops) if tops else 0.0


def _box(vertex: JobVertex, box: Box) -> str:
    left, top, width, height = box
    colour = "#e0f2fe" if vertex.level == 0 else "#f1f5f9"
    frame = f'x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"'
    parts = [f'<rect {frame} fill="{colour}" stroke="#334155"/>']
    for number, line in enumerate(_texts(vertex)):
        parts.append(_text(left + _PADDING, top + (number + 1) * _LINE, line))
    return "\n".join(parts)


def _arrow(edge: JobEdge, boxes: dict[int, Box]) -> str:
    left, top, width, height = boxes[edge.source]
    to_left, to_top, _, to_height = boxes[edge.target]
    x1, y1, x2, y2 = left + width, top + height / 2, to_left, to_top + to_height / 2
    middle = (x1 + x2) / 2
    path = f"M{x1:.0f},{y1:.0f} C{middle:.0f},{y1:.0f} {middle:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
    return "\n".join(
        [
            f'<path d="{path}" fill="none" stroke="#64748b" marker-end="url(#arrow)"/>',
            _text(middle, (y1 + y2) / 2 - 5, _label(edge), 'text-anchor="middle" fill="#475569" font-size="11"'),
        ]
    )


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {attributes}>{escape(text)}</text>'


# -- words ------------------------------------------------------------------------------------------------------------


def _at(job: JobGraph, level: int) -> list[JobVertex]:
    return [vertex for vertex in job.vertices if vertex.level == level]


def _stage_title(level: int) -> str:
    return "stage 0: sources" if level == 0 else f"stage {level}"


def _texts(vertex: JobVertex) -> list[str]:
    names = [operator.name for operator in vertex.operators]
    return [*names, f"parallelism {vertex.parallelism}"]


def _label(edge: JobEdge) -> str:
    label = edge.partitioner.name.lower()
    return f"{label}: {edge.tag_id}" if edge.tag_id else label


def _plain(text: str) -> str:
    """Without what Mermaid would take for its own."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
