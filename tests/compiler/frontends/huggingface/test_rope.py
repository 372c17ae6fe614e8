"""Rotary frequencies equal those of transformers, for every kind of scaling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.rope import read_rotary

ROPES = json.loads((Path(__file__).resolve().parents[3] / "goldens" / "rope.json").read_text())


def kind(rope: dict[str, Any]) -> str:
    return (rope["config"].get("rope_scaling") or {}).get("rope_type", "default")


@pytest.mark.parametrize("rope", ROPES, ids=kind)
def test_frequencies_and_factor_are_those_of_transformers(rope: dict[str, Any]) -> None:
    values = rope["config"]
    config = Config(Path("config.json"), values)
    rotary = read_rotary(config, 64, values.get("rope_theta", 10000.0))
    assert np.allclose(rotary.frequencies, rope["frequencies"], rtol=5e-7, atol=0)
    assert rotary.factor == pytest.approx(rope["factor"], rel=1e-12)
    assert rotary.width == 64


def test_every_kind_is_compared() -> None:
    assert {kind(rope) for rope in ROPES} == {"default", "linear", "llama3", "yarn", "longrope"}
