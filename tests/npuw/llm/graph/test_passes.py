"""Text tests of all passes of graph preparation, and the list of passes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.filechecked import check_file, untested
from xdsl.passes import ModulePass

from compiler_layer.frontends.huggingface import read_folder
from npuw_layer.llm.graph.check_lengths import CheckLengths
from npuw_layer.llm.graph.pipeline import core_passes, stage_passes
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options

FILES = sorted((Path(__file__).parent / "passes").glob("*.mlir"))
STAGES = [
    Stage(StageKind.PREFILL, 16, 48),
    Stage(StageKind.GENERATE, 1, 63, 2),
    Stage(StageKind.HEAD, 1, 0),
]
OPTIONS = [parse_options({"NPUW_LLM_SHARED_HEAD": shared}) for shared in ("YES", "NO")]

KNOWN: dict[str, type[ModulePass]] = {
    each.name: type(each)
    for stage, options in product(STAGES, OPTIONS)
    for each in core_passes(stage, options, splits=lambda tokens, past: ())
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_ir_after_a_pass_matches_the_file(path: Path) -> None:
    check_file(path, KNOWN)


def test_every_pass_but_the_check_of_lengths_has_a_text_test() -> None:
    """``check-lengths`` changes nothing, and runs other passes: see ``lengths``."""
    assert untested(FILES, KNOWN) == {"check_lengths"}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_llama_needs_only_the_core_passes(demo: Path, stage: Stage, check: bool) -> None:
    found = stage_passes(read_folder(demo), stage, OPTIONS[0], check)
    expected = core_passes(stage, OPTIONS[0], (lambda tokens, past: ()) if check else None)
    assert [each.name for each in found] == [each.name for each in expected]
    assert (CheckLengths.name in [each.name for each in found]) == (
        check and stage.kind is not StageKind.HEAD
    )
