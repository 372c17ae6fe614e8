"""The program of ``program.cpp``: built once, and run on a graph without Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("program.cpp")
BLOB, MODEL = 1, 2
"""Formats of a graph."""


def run_program(built: Path, folder: Path, form: int, graph: bytes, x: bytes) -> bytes:
    """Return the bytes of a graph's result for those of its input.

    Args:
        built: folder of the library.
        folder: folder for the program and its files.
        form: BLOB or MODEL.
        graph: the blob or the serialized model.
        x: bytes of the input.
    """
    program, content, given, result = (folder / name for name in ("program", "graph", "x", "y"))
    libraries = built / "loader"
    line = [*_compiler(), "-O1", "-std=c++17", "-o", program, SOURCE]
    linked = ["-L", libraries, "-l:libze_loader.so.1", "-pthread"]
    subprocess.run([*line, *linked], check=True, timeout=120)
    content.write_bytes(graph)
    given.write_bytes(x)
    done = subprocess.run(
        [program, str(form), content, given, result, "20"],
        env={"LD_LIBRARY_PATH": str(libraries), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return result.read_bytes()


def _compiler() -> list[str]:
    if shutil.which("c++"):
        return ["c++"]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    pytest.skip("no compiler of C++")
