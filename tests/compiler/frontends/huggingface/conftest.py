"""Folders of tiny models of every family; see tests/goldens/families.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"


@pytest.fixture(scope="session")
def families(load_module: Callable[[Path], Any]) -> Any:
    """Module that writes the folders."""
    return load_module(GOLDENS / "families.py")


@pytest.fixture
def folder_of(families: Any, tmp_path: Path) -> Callable[..., Path]:
    """Writer of a model's folder, with other config values, and in shards on request."""

    def write(name: str, shards: int = 1, **values: object) -> Path:
        description = families.descriptions()[name]
        changed = description | {"config": description["config"] | values}
        return families.write_folder(tmp_path / name, changed, shards)

    return write
