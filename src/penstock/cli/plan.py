"""``penstock plan``: shows show what a program would run, without running it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from penstock.cli.captured_job import CapturedJob, capture_job
from penstock.cli.main import PLAN_FORMATS
from penstock.cli.programs import configuration
from penstock.cluster.rest.plan import plan_of
from penstock.common.errors import InvalidProgramError
from penstock.common.job_id import JobID
from penstock.graph.picture import dot, mermaid, svg
from penstock.graph.plan import execution_plan_json, plan_text

__all__ = ["plan"]


_RENDERERS: tuple[Callable[[CapturedJob], str], ...] = (
    lambda found: plan_text(found.graph),
    lambda found: execution_plan_json(found.sinks, found.settings),
    lambda found: svg(found.graph),
    lambda found: mermaid(found.graph),
    lambda found: dot(found.graph),
    lambda found: json.dumps(plan_of(found.graph, JobID().to_hex_string())),
)
_FORMATS = dict(zip(PLAN_FORMATS, _RENDERERS, strict=True))

_BY_SUFFIX = {".txt": "text", ".json": "json", ".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".dot": "dot"}


def plan(options: argparse.Namespace) -> int:
    """Run the program up to its first execute() and show the job."""
    form = options.format or _form_of(options)
    found = capture_job(options.program, options.arguments, configuration(options), options.entry)
    if isinstance(found, int):
        return found
    shown = _FORMATS[form](found)
    if options.output is None:
        print(shown)
    else:
        try:
            options.output.write_text(shown + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidProgramError(f"cannot write the plan: {error}") from None
        print(f"wrote {options.output}")
    return 0


def _form_of(options: argparse.Namespace) -> str:
    if options.output is None:
        return "text"
    suffix = options.output.suffix.lower()
    if suffix not in _BY_SUFFIX:
        known = ", ".join(_BY_SUFFIX)
        raise InvalidProgramError(f"cannot derive the format from {options.output}: name it {known}, or use --format")
    return _BY_SUFFIX[suffix]
