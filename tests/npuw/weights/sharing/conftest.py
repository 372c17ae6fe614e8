"""Meeting folder and operations of processes that share weights in tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from npuw_layer.weights.sharing.arena import SharedArena

IDENTITY = "0123456789abcdef" * 2


@pytest.fixture(scope="session")
def here(load_module: Callable[[Path], Any]) -> Any:
    """Return the operations of the processes, for this process."""
    return load_module(Path(__file__).with_name("sharing_process.py"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the arena's folder, separate from the user's."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "npuw" / IDENTITY


@pytest.fixture
def arena(here: Any) -> Iterator[SharedArena]:
    """Yield an arena that is served."""
    arena = here.join(IDENTITY)
    yield arena
    arena.close()


@pytest.fixture
def open_files() -> Callable[[], list[str]]:
    """List the open files of this process by target."""

    def tell() -> list[str]:
        links: list[str] = []
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/self/fd/{number}"))
        return links

    return tell
