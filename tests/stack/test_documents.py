"""Paths that documents name are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("genai_layer", "npuw_layer", "compiler_layer", "driver_layer")
DOCUMENTS = sorted(
    path
    for path in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    if path != "CHANGELOG.md"
)
_PATH = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9.]*)`")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_in_a_document_are_there(document: str) -> None:
    """A path begins at the root, or at a package: `llm/kv/` is npuw_layer/src/npuw_layer/llm/kv."""
    sources = [ROOT / each / "src" for each in LAYERS]
    homes = [ROOT, *sources, *(source / source.parent.name for source in sources)]
    named = _PATH.findall((ROOT / document).read_text())
    missing = [path for path in named if not any((home / path).exists() for home in homes)]
    assert missing == []
