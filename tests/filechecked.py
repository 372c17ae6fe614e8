"""Text tests of passes: files of IR with the passes to run and CHECK lines for the result."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from xdsl.passes import ModulePass

from compiler_layer.testing.pass_test import PassTest


def check_file(path: Path, known: Mapping[str, type[ModulePass]]) -> None:
    """Run the passes of a file, and compare the result with its CHECK lines."""
    result = PassTest.read(path).run(known)
    options = Options(match_filename=str(path))
    checks = Parser(options, io.StringIO(path.read_text()), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("result", result), checks)
    matcher.stderr = io.StringIO()
    assert matcher.run() == 0, f"{matcher.stderr.getvalue()}\n{result}"


def untested(files: list[Path], known: Mapping[str, type[ModulePass]]) -> set[str]:
    """Return the passes that have no test file of their name."""
    return {name.replace("-", "_") for name in known} - {path.stem for path in files}
