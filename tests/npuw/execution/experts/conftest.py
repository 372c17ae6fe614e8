"""Mixtures of experts from the real exporter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

EXPORTED = Path(__file__).resolve().parents[3] / "goldens" / "exported"


@pytest.fixture(scope="session")
def exported(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    """Return the IR of a name."""
    return lambda name: restored(EXPORTED, name)


@pytest.fixture(scope="session")
def expected() -> Callable[[str], dict[str, np.ndarray]]:
    """Return OpenVINO's results for an IR."""
    return lambda name: dict(np.load(EXPORTED / f"{name}.npz"))
