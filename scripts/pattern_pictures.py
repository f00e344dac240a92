"""Draw the patterns that the guide shows: those of examples/cep, and one of its own.

python scripts/pattern_pictures.py        writes docs/pictures/cep*.svg
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.cep import Pattern

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = {
    "card_fraud": "fraud_pattern",
    "failed_logins": "failures_pattern",
    "overheating": "heat_pattern",
    "late_shipments": "delivery_pattern",
    "v_shapes": "v_pattern",
}


def patterns() -> dict[str, Pattern[Any]]:
    """The patterns by the name of the picture."""
    sys.path.insert(0, str(ROOT / "examples" / "cep"))
    own = {"cep": Pattern.begin("a").times_or_more(2).followed_by("b")}
    found = {f"cep-{module.replace('_', '-')}": (module, name) for module, name in EXAMPLES.items()}
    return {**own, **{name: getattr(import_module(module), made)() for name, (module, made) in found.items()}}


if __name__ == "__main__":
    for name, pattern in patterns().items():
        (PICTURES / f"{name}.svg").write_text(pattern.to_svg(), encoding="utf-8")
