"""Servers that are killed or stopped at random moments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_the_next_server_starts_and_answers(
    load_module: Callable[[Path], Any], tmp_path: Path
) -> None:
    fuzzer = load_module(Path(__file__).with_name("fuzz_kills.py"))
    kills = fuzzer.Kills(tmp_path, seed=3)
    for serving in (False, True, False):
        kills.kill(serving)
    kills.check()
