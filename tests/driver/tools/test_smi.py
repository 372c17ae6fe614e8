"""npu-smi describes the simulated device."""

from __future__ import annotations

import json

import pytest

from driver_layer.tools.smi import main


@pytest.mark.parametrize(("platform", "tiles", "tops"), [("3720", 2, 10.6), ("4000", 6, 41.8)])
def test_a_platform_as_json(capsys, platform: str, tiles: int, tops: float) -> None:
    assert main(["--json", "--platform", platform]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["tiles"], facts["int8_tops"]) == (tiles, tops)
    assert facts["graph_extension"] == "1.18"


def test_without_an_option_the_environment_chooses_the_platform(capsys, monkeypatch) -> None:
    monkeypatch.setenv("ZE_INTEL_NPU_PLATFORM_OVERRIDE", "PANTHERLAKE")
    assert main([]) == 0
    assert "platform 5010" in capsys.readouterr().out


def test_an_unknown_platform_results_in_one_line_and_code_2(capsys) -> None:
    assert main(["--platform", "9000"]) == 2
    error = capsys.readouterr().err
    assert "unknown platform; choose 3720, 4000, 5010" in error
    assert error.count("\n") == 1
