"""Rotary frequencies equal those of transformers, for every kind of scaling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.families.defaults import DEFAULTS
from compiler_layer.frontends.huggingface.rope import scaled_rotary
from compiler_layer.frontends.huggingface.rope_values import find_scaling

ROPES = json.loads((Path(__file__).resolve().parents[3] / "goldens" / "rope.json").read_text())


def kind(rope: dict[str, Any]) -> str:
    return (rope["config"].get("rope_scaling") or {}).get("rope_type", "default")


@pytest.mark.parametrize("rope", ROPES, ids=kind)
def test_frequencies_and_factor_are_those_of_transformers(rope: dict[str, Any]) -> None:
    values = rope["config"]
    config = Config(Path("config.json"), values, defaults=DEFAULTS["llama"])
    rotary = scaled_rotary(find_scaling(config), 64)
    assert np.allclose(rotary.frequencies, rope["frequencies"], rtol=5e-7, atol=0)
    assert rotary.factor == pytest.approx(rope["factor"], rel=1e-12)
    assert rotary.width == 64


def test_every_kind_is_compared() -> None:
    assert {kind(rope) for rope in ROPES} == {"default", "linear", "llama3", "yarn", "longrope"}
