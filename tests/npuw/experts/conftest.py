"""Mixtures that the real exporter wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXPORTED = Path(__file__).resolve().parents[2] / "goldens" / "exported"


@pytest.fixture(scope="session")
def exported(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Give the IR of a name; each is restored once."""
    restore = load_module(EXPORTED / "restore.py").restore
    known: dict[str, Path] = {}

    def give(name: str) -> Path:
        if name not in known:
            known[name] = restore(EXPORTED, name, tmp_path_factory.mktemp(name))
        return known[name]

    return give


@pytest.fixture(scope="session")
def expected() -> Callable[[str], dict[str, np.ndarray]]:
    """Give what OpenVINO says of an IR."""
    return lambda name: dict(np.load(EXPORTED / f"{name}.npz"))
