"""A hook of MkDocs: pages that are made from the code when the guide is built, so they are never out of date."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

import api_reference  # noqa: E402
import gallery  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, module in (("reference.md", api_reference), ("gallery.md", gallery)):
        files.append(File.generated(config, name, content=module.page()))
    return files
