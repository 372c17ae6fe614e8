"""Rotary factors from tables: no sine or cosine is computed, and logits are unchanged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.compressed_angles import compressed_angles, cosines

from compiler_layer.dialects.ov.elementwise import Cos, Sin
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.errors import TensorError
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.graph.rope_cache import MAX_ROWS, cache_rope
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    """Compare; the device's sines differ from numpy's in the last bit."""
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


def angles(folder: Path, **options: str) -> list[int]:
    """Return the number of sines and cosines that each static model computes."""
    settings = parse_options({f"NPUW_LLM_{name}": value for name, value in options.items()})
    model = read_folder(folder)
    graphs = [stage_graph(model, stage, settings) for stage in plan(settings).stages]
    return [sum(isinstance(op, Sin | Cos) for op in graph.body.ops) for graph in graphs]


def test_no_stage_computes_sines_by_default(tiny) -> None:
    assert not any(angles(tiny))
    *computed, head = angles(tiny, CACHE_ROPE="NO")
    assert set(computed) == {2}
    assert head == 0


def test_logits_equal_those_of_computed_sines(talks) -> None:
    table, computed = talks(), talks(NPUW_LLM_CACHE_ROPE="NO")
    ids = np.random.default_rng(0).integers(0, 97, 100)
    assert close(table.tell(ids), computed.tell(ids))
    for token in range(20):
        assert close(table.tell([token]), computed.tell([token]))


def test_positions_may_lead_tokens_by_a_limited_number(talks) -> None:
    inputs = {"input_ids": np.array([[1, 2, 3]]), "attention_mask": np.ones((1, 3), np.int64)}
    table, computed = talks(), talks(NPUW_LLM_CACHE_ROPE="NO")
    for first in (1, 63):
        positions = np.arange(first, first + 3)[None]
        found, expected = (
            talk.request.infer(inputs | {"position_ids": positions})["logits"]
            for talk in (table, computed)
        )
        assert close(found, expected)
        table.reset()
        computed.reset()
    for first in (64, 5000, -1):
        with pytest.raises(TensorError, match="set NPUW_LLM_CACHE_ROPE = NO"):
            table.request.infer(inputs | {"position_ids": np.arange(first, first + 3)[None]})


def test_factors_of_the_longest_position_are_computed(tiny: Path, tmp_path: Path) -> None:
    """Dynamic scaling changes the factors of a position as a conversation grows."""
    shutil.copytree(tiny, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["rope_parameters"] = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    path.write_text(json.dumps(config))
    assert not any(angles(tmp_path / "model")), "constant scaling is cached"


def test_very_large_tables_are_not_made(tiny) -> None:
    model = read_folder(tiny)
    cache_rope(model, MAX_ROWS + 1)
    assert sum(isinstance(op, Sin | Cos) for op in model.body.ops) == 2


def test_compressed_frequencies_are_not_rounded() -> None:
    """Half a unit of f16 at a frequency near 1 is more than half a radian at position 3,000."""
    model = compressed_angles()
    cache_rope(model, 4000)
    assert not any(isinstance(op, Cos) for op in model.body.ops)
    positions = np.array([[0, 1, 100, 1000, 3000, 3999]])
    found = Interpreter(model).run({"position_ids": positions})["cos"]
    np.testing.assert_allclose(found, cosines(positions), atol=1e-6)
