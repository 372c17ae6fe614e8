"""Import path of the benchmark, whose scripts import each other from one folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))


@pytest.fixture
def models(tmp_path: Path, demo: Path) -> Path:
    """Folder of models in which the demo model replaces all models of this stack."""
    (tmp_path / "ir").mkdir()
    (tmp_path / "llama-8m").symlink_to(demo)
    (tmp_path / "ir" / "llama-8m-fp16").symlink_to(demo)
    return tmp_path
