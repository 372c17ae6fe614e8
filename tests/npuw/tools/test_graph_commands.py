"""``npuw passes`` and ``npuw graph``: the passes that make a model static, and their graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler_layer.model import Model
from npuw_layer.tools.npuw import main

SMALL = ["-c", "NPUW_LLM_MAX_PROMPT_LEN=64", "-c", "NPUW_LLM_MIN_RESPONSE_LEN=64"]


def test_passes_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("check-ports ")
    assert all(line[23:].endswith(".") for line in lines), "each has a description"
    names = [line.split()[0] for line in lines]
    assert names.index("usual-axes") < names.index("check-lengths") < names.index("store-caches")
    assert {"cut-head", "last-token-head", "head-alone"} < {*names}


def test_stages_are_listed_with_their_passes(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", str(tiny), *SMALL]) == 0
    found = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert [*found] == ["prefill_64", "generate_128", "lm_head"]
    assert found["lm_head"] == ["usual-axes", "head-alone", "record-vocabulary"]


def test_a_graph_is_printed_after_any_pass(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = ["graph", str(tiny), *SMALL, "--stage", "generate_128"]
    assert main([*stage, "--print-after", "store-caches"]) == 0
    before = capsys.readouterr().out
    assert "beam_idx" in before
    assert "tensor<1x127x2x8xf32>" in before, "caches have their rows already"
    assert main(stage) == 0
    after = capsys.readouterr().out
    assert "beam_idx" not in after
    assert "npuw_output_embed" in after
    assert Model.parse(after).text() == after


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--stage", "prefill_1"], "--stage prefill_1: no such stage; the model has prefill_64"),
        (
            ["--stage", "lm_head", "--print-after", "x"],
            "--print-after x: not a pass of the stage: usual-axes",
        ),
        (["-c", "KV_CACHE_PRECISION"], "-c KV_CACHE_PRECISION: write options as NAME=VALUE"),
    ],
)
def test_unknown_stages_passes_and_options_are_errors(
    tiny: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["graph", str(tiny), *SMALL, *arguments]) == 2
    assert says in capsys.readouterr().err
