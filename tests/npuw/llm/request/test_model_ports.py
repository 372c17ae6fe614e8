"""Ports of a split model: the inputs and outputs of the exported model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.npuw.conftest import SMALL, VOCABULARY

from npuw_layer import Core
from npuw_layer.api.model_port import OpenPort
from npuw_layer.errors import TensorError

EXPORTED = Path(__file__).resolve().parents[3] / "goldens" / "exported"
WAYS: dict[str, dict[str, Any]] = {
    "separate head": {},
    "heads in all": {"NPUW_LLM_SHARED_HEAD": "NO"},
    "slots": {"NPUW_LLM_BATCH_SLOTS": "1,2"},
    "blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 32},
    "tiles": {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"},
}

TEXT = {
    "input_ids": ("i64", (-1, -1)),
    "attention_mask": ("i64", (-1, -1)),
    "position_ids": ("i64", (-1, -1)),
    "beam_idx": ("i32", (-1,)),
}


def shown(ports: list[OpenPort]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return element types and dimensions by name, in order."""
    assert [port.index for port in ports] == [*range(len(ports))]
    return {port.any_name: (port.element_type, port.partial_shape) for port in ports}


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_ports_are_those_of_the_exported_model_for_every_split(tiny: Path, way: str) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | WAYS[way])
    assert [*shown(compiled.inputs).items()] == [*TEXT.items()]
    assert shown(compiled.outputs) == {"logits": ("f32", (-1, -1, VOCABULARY))}
    assert compiled.input(3) == compiled.input("beam_idx") == compiled.inputs[3]
    assert compiled.output().names == {"logits"}


def test_an_imported_model_has_the_same_ports(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL)
    imported = Core().import_model(compiled.export_model(), "NPU", {"WEIGHTS_PATH": tiny})
    assert imported.inputs == compiled.inputs
    assert imported.outputs == compiled.outputs


def test_the_error_for_an_unknown_port_lists_the_ports(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL)
    with pytest.raises(TensorError, match="no input 'ids'; the model has 0: 'input_ids', 1: "):
        compiled.input("ids")
    with pytest.raises(TensorError, match="has 4 inputs; select one"):
        compiled.input()


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("mpt_fp16", ["input_ids", "attention_mask", "beam_idx"], {"logits": (-1, -1, 1024)}),
        (
            "eagle/tree_draft",
            [*TEXT, "hidden_states", "eagle_tree_mask"],
            {"logits": (-1, -1, 1024), "last_hidden_state": (-1, -1, 96)},
        ),
        (
            "vlm/qwen3_vl",
            [
                *("attention_mask", "position_ids", "inputs_embeds"),
                *("visual_pos_masks", "deepstack_visual_embeds", "beam_idx"),
            ],
            {"logits": (-1, -1, 256)},
        ),
    ],
)
def test_inputs_of_traits_are_in_the_exporters_order(
    restored: Callable[[Path, str], Path],
    name: str,
    inputs: list[str],
    outputs: dict[str, tuple[int, ...]],
) -> None:
    folder, _, file = name.rpartition("/")
    compiled = Core().compile_model(restored(EXPORTED / folder, file), "NPU", SMALL)
    assert [*shown(compiled.inputs)] == inputs
    assert {port.any_name: port.partial_shape for port in compiled.outputs} == outputs
    if "deepstack_visual_embeds" in inputs:
        assert compiled.input("position_ids").partial_shape == (3, -1, -1)
        assert shown(compiled.inputs)["visual_pos_masks"] == ("boolean", (-1, -1))
        assert compiled.input("deepstack_visual_embeds").partial_shape == (3, -1, 96)
