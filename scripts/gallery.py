"""The gallery of the guide: examples, their source and what they print. `make docs` makes it.

The examples run on the mini cluster, in this process. Examples that need a server, or run until you stop them, are not
in the gallery.
"""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

from penstock.common import Configuration
from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults
from penstock.testing import MiniCluster

ROOT = Path(__file__).resolve().parents[1]

CHAPTERS = {
    "Three programs in two styles": ["styles/short_forms.py", "styles/flink_names.py"],
    "Transformations and keys": ["book/transformations.py", "book/keys.py", "book/distribution.py"],
    "Several streams": ["book/multistream.py", "book/joins.py"],
    "Time": ["book/watermarks.py", "book/late_data.py"],
    "Windows": ["book/window_functions.py", "book/custom_windows.py"],
    "State": ["book/stateful_functions.py"],
    "Patterns of events": [
        "cep/card_fraud.py",
        "cep/failed_logins.py",
        "cep/overheating.py",
        "cep/late_shipments.py",
        "cep/v_shapes.py",
    ],
    "Connectors": ["connectors/async_lookup.py", "connectors/database_rows.py", "connectors/dead_letters.py"],
    "Taxi rides": ["taxi/rides_and_fares.py", "taxi/hourly_tips.py"],
}
PROGRAMS = [name for names in CHAPTERS.values() for name in names]

_HEAD = """\
# Gallery

Examples with their output and source code. You find them in `examples/` of the source tree, together with examples that
need a server; `examples/README.md` lists them all. To run one on Spark, use `penstock run`.
"""


def output_of(name: str) -> str:
    """What an example prints."""
    path = ROOT / "examples" / name
    printed = io.StringIO()
    before = sys.argv, list(sys.path), set(sys.modules)
    sys.argv, sys.path = [str(path)], [str(path.parent), str(ROOT / "examples"), *sys.path]
    defaults = ExecutionDefaults(Configuration(), executor=MiniCluster())
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit), execution_defaults(defaults):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path = before[:2]
        for added in set(sys.modules) - before[2]:
            if str(ROOT / "examples") in str(getattr(sys.modules[added], "__file__", "")):
                del sys.modules[added]
    return printed.getvalue().strip("\n")


def entry(name: str) -> str:
    """An example's section: its first sentence, its output, its source to be unfolded."""
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    (sentence,) = re.findall(r'\A"""(.+?)(?:\n\n|""")', source, re.DOTALL)
    shown = "\n".join(f"    {line}" if line else "" for line in source.strip("\n").split("\n"))
    return f"""\
### {name}

{" ".join(sentence.split())}

```text
{output_of(name)}
```

??? example "Source of {name}"

    ```python
{shown}
    ```
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for chapter, names in CHAPTERS.items():
        parts += [f"## {chapter}\n", *map(entry, names)]
    return "\n".join(parts)
