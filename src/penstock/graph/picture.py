"""Pictures of a job graph: Mermaid and Graphviz text, and SVG without other tools."""

from __future__ import annotations

from html import escape

from penstock.graph.job_graph import JobGraph
from penstock.graph.pattern_picture import automaton_of, draw
from penstock.graph.plan_layout import (
    LINE,
    PADDING,
    TOP,
    Arrow,
    Box,
    PlanLayout,
    arrow_label,
    box_texts,
    stage_title,
    vertices_at,
)
from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["dot", "mermaid", "svg"]


def mermaid(job: JobGraph) -> str:
    """Return a Mermaid flow chart, which many documentation tools render."""
    lines = ["flowchart LR"]
    for level in range(job.levels + 1):
        lines.append(f'  subgraph stage{level}["{stage_title(level)}"]')
        for vertex in vertices_at(job, level):
            label = "<br/>".join(_plain(text) for text in box_texts(vertex))
            lines.append(f'    v{vertex.id}["{label}"]')
        lines.append("  end")
    lines += [f'  v{edge.source} -->|"{_plain(arrow_label(edge))}"| v{edge.target}' for edge in job.edges]
    return "\n".join(lines)


def dot(job: JobGraph) -> str:
    """Return Graphviz text."""
    lines = [f"digraph {_quoted(job.name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for level in range(job.levels + 1):
        lines.append(f"  subgraph cluster_{level} {{")
        lines.append(f"    label={_quoted(stage_title(level))};")
        lines += [
            f"    v{vertex.id} [label={_quoted(chr(10).join(box_texts(vertex)))}];"
            for vertex in vertices_at(job, level)
        ]
        lines.append("  }")
    lines += [f"  v{edge.source} -> v{edge.target} [label={_quoted(arrow_label(edge))}];" for edge in job.edges]
    return "\n".join([*lines, "}"])


def svg(job: JobGraph) -> str:
    """Return an SVG picture with a column per stage, a box per task, and the operators inside."""
    layout = PlanLayout(job)
    patterns, width, height = _patterns(job, layout.height)
    width = max(layout.width, width)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    view = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="monospace" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#64748b"/></marker></defs>',
        f'<rect {size} fill="#ffffff"/>',
        _text(PADDING, 20, job.name, 'font-weight="bold" font-size="14"'),
    ]
    parts += [
        _text(column.left, TOP - 12, stage_title(level), 'fill="#64748b"')
        for level, column in enumerate(layout.columns)
    ]
    parts += [_arrow(arrow) for arrow in layout.arrows]
    parts += [_box(vertex, layout.boxes[vertex.id]) for vertex in job.vertices]
    return "\n".join([*parts, *patterns, "</svg>"])


def _patterns(job: JobGraph, top: float) -> tuple[list[str], float, float]:
    """Draw the states of all patterns below each other. Return the shapes, and the size of the whole picture."""
    parts: list[str] = []
    width = 0.0
    for vertex in job.vertices:
        for one in vertex.operators:
            if (automaton := automaton_of(one.operator)) is not None:
                picture = draw(automaton)
                parts.append(_text(PADDING, top + LINE, f"{one.name}: the states of its pattern", 'fill="#64748b"'))
                parts.append(picture.svg(f'x="0" y="{top + 2 * LINE:.0f}" '))
                width, top = max(width, picture.width), top + 2 * LINE + picture.height
    return parts, width, top


def _box(vertex: JobVertex, box: Box) -> str:
    colour = "#e0f2fe" if vertex.level == 0 else "#f1f5f9"
    frame = f'x="{box.left:.0f}" y="{box.top:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6"'
    parts = [f'<rect {frame} fill="{colour}" stroke="#334155"/>']
    for number, line in enumerate(box_texts(vertex)):
        parts.append(_text(box.left + PADDING, box.top + (number + 1) * LINE, line))
    return "\n".join(parts)


def _arrow(arrow: Arrow) -> str:
    (x, y), *bends = arrow.points
    path = f"M{x:.0f},{y:.0f}"
    for to_x, to_y in bends:
        middle = (x + to_x) / 2
        flat = y == to_y
        path += (
            f" L{to_x:.0f},{to_y:.0f}"
            if flat
            else (f" C{middle:.0f},{y:.0f} {middle:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}")
        )
        x, y = to_x, to_y
    return "\n".join(
        [
            f'<path d="{path}" fill="none" stroke="#64748b" marker-end="url(#arrow)"/>',
            _text(arrow.label_left, y - 4, arrow.label, 'fill="#475569" font-size="11"'),
        ]
    )


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {attributes}>{escape(text)}</text>'


def _plain(text: str) -> str:
    """Remove characters with a meaning in Mermaid."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
