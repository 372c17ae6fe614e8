"""Text tests of the traits' passes, and the passes of each model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import GOLDENS
from tests.filechecked import check_file, untested
from xdsl.passes import ModulePass

from npuw_layer.llm.graph.pipeline import core_passes, stage_passes
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.alibi.graph import LookUpBiases
from npuw_layer.traits.grouped_query.graph import TakeApartGQA
from npuw_layer.traits.images.deepstack import SpreadVisualRows
from npuw_layer.traits.images.graph import SettleLayers
from npuw_layer.traits.linear_states.graph import ContinueConvolutions
from npuw_layer.traits.long_rope.graph import CacheBothRopes, MarkLongInferences, ShapeLongMark
from npuw_layer.traits.lora.graph import CheckHeadAdapters, FixRank
from npuw_layer.traits.trees.graph import DropTrees, SettleStates, ShapeTrees

FILES = sorted((Path(__file__).parent / "passes").glob("*.mlir"))

KNOWN: dict[str, type[ModulePass]] = {
    each.name: each
    for each in (
        *(LookUpBiases, TakeApartGQA, SpreadVisualRows, ContinueConvolutions, FixRank),
        *(
            MarkLongInferences,
            CacheBothRopes,
            ShapeLongMark,
            CheckHeadAdapters,
            DropTrees,
            ShapeTrees,
        ),
        *(SettleLayers, SettleStates),
    )
}

PROMPT, STEP, HEAD = (
    Stage(StageKind.PREFILL, 16, 0),
    Stage(StageKind.GENERATE, 1, 63),
    Stage(StageKind.HEAD, 1, 0),
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_ir_after_a_pass_matches_the_file(path: Path) -> None:
    check_file(path, KNOWN)


def test_every_pass_has_a_text_test() -> None:
    assert not untested(FILES, KNOWN)


@pytest.mark.parametrize(
    ("folder", "name", "stage", "expected"),
    [
        ("exported", "mpt_fp16", STEP, [LookUpBiases]),
        ("exported/vlm", "qwen3_vl", PROMPT, [SpreadVisualRows]),
        ("exported/vlm", "qwen3_vl", HEAD, []),
        ("linear", "lfm2_fp16", STEP, [ContinueConvolutions]),
        ("longrope", "phi3_fp16", STEP, [MarkLongInferences, CacheBothRopes, ShapeLongMark]),
        ("exported/eagle", "draft", STEP, [SettleStates]),
        ("exported/eagle", "tree_target", PROMPT, [DropTrees]),
        ("exported/eagle", "tree_target", STEP, [ShapeTrees]),
    ],
    ids=lambda value: getattr(value, "name", None) if isinstance(value, Stage) else None,
)
def test_a_trait_adds_its_passes_to_the_core_ones(
    restored: Callable[[Path, str], Path],
    folder: str,
    name: str,
    stage: Stage,
    expected: list[type[ModulePass]],
) -> None:
    options = parse_options({})
    found = stage_passes(read_model(restored(GOLDENS / folder, name)), stage, options)
    core = [each.name for each in core_passes(stage, options)]
    assert [each.name for each in found if each.name in core] == core
    assert [type(each) for each in found if each.name not in core] == expected
