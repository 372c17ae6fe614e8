"""Text tests of passes: the IR before and after, with equal results of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.filechecked import check_file, untested

from compiler_layer.pipeline import available_passes

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


@pytest.mark.matrix
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_ir_after_a_pass_matches_its_checks(path: Path) -> None:
    check_file(path, available_passes())


def test_every_pass_has_a_text_test() -> None:
    assert not untested(FILES, available_passes())
