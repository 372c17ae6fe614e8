"""Each pass as text: the IR before and after, with the same numbers both times."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from compiler_layer.pipeline import available_passes
from compiler_layer.testing.pass_test import PassTest

FILES = sorted((Path(__file__).parent / "passes").glob("*.mlir"))


@pytest.mark.matrix
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_ir_after_a_pass_is_as_written(path: Path) -> None:
    result = PassTest.read(path).run()
    options = Options(match_filename=str(path))
    checks = Parser(options, io.StringIO(path.read_text()), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("result", result), checks)
    matcher.stderr = io.StringIO()
    assert matcher.run() == 0, f"{matcher.stderr.getvalue()}\n{result}"


def test_every_pass_has_a_text_test() -> None:
    tested = {path.stem for path in FILES}
    assert {name.replace("-", "_") for name in available_passes()} <= tested
