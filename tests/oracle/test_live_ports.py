"""Inputs and outputs of compiled language models, compared to the real NPUW, live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
WHISPER = {"NPUW_WHISPER": "YES", "NPUW_WHISPER_EOS_TOKEN": 256, "NPUW_WHISPER_ENCODER_LEN": 40}
MODELS: dict[str, dict[str, Any]] = {
    "exported/llama_fp16": LENGTHS,
    "exported/mpt_fp16": LENGTHS,
    "exported/vlm/llava": LENGTHS,
    "exported/vlm/qwen3_vl": LENGTHS,
    "exported/vlm/gemma3_types": LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "exported/vlm/gemma3n": LENGTHS,
    "exported/eagle/tree_draft": LENGTHS,
    "linear/lfm2_int8": LENGTHS,
    "whisper/decoder_fp16": WHISPER,
}

Ports = list[tuple[str, str, list[int | None]]]


@pytest.mark.parametrize("name", MODELS)
def test_ports_equal_the_models(restored: Callable[[Path, str], Path], name: str) -> None:
    folder, _, file = name.rpartition("/")
    path = restored(GOLDENS / folder, file)
    model = ov.Core().read_model(path)
    compiled = Core().compile_model(path, "NPU", MODELS[name])
    assert _fit(_ours(compiled.inputs), _theirs(model.inputs))
    assert _fit(_ours(compiled.outputs), _theirs(model.outputs))


def test_ports_equal_the_real_npuws(restored: Callable[[Path, str], Path]) -> None:
    path = restored(GOLDENS / "exported", "llama_fp16")
    real = ov.Core()
    theirs = real.compile_model(real.read_model(path), "NPU", ON_CPU | LENGTHS)
    ours = Core().compile_model(path, "NPU", LENGTHS)
    assert _ours(ours.inputs) == _theirs(theirs.inputs)
    assert _ours(ours.outputs) == _theirs(theirs.outputs)


def test_both_accept_inputs_as_a_list_and_return_results_by_index(
    restored: Callable[[Path, str], Path],
) -> None:
    path = restored(GOLDENS / "exported", "llama_fp16")
    real = ov.Core()
    theirs = real.compile_model(real.read_model(path), "NPU", ON_CPU | EXACTLY | LENGTHS)
    ours = Core().compile_model(path, "NPU", LENGTHS | {"INFERENCE_PRECISION_HINT": "f32"})
    ids = np.array([[5, 900, 17]])
    given = [ids, np.ones_like(ids), np.array([[0, 1, 2]]), np.zeros(1, np.int32)]
    expected, found = theirs(given), ours(given)
    assert np.abs(found[0] - expected[0]).max() <= 1e-4 * np.abs(expected[0]).max()
    assert len(found) == len(expected)
    assert found[ours.output()] is found["logits"]
    for type_ in ("i1", "u1", "i2", "u2", "i4", "u4", "u8"):
        given = [ids % 100, np.ones_like(ids), np.array([[0, 1, 2]]), np.zeros(1, np.int32)]
        other = [each.astype(type_) for each in given]
        assert np.array_equal(theirs(other)[0], theirs(given)[0])
        assert np.array_equal(ours(other)[0], ours(given)[0])


def _ours(ports: Any) -> Ports:
    return [
        (
            port.any_name,
            port.element_type,
            [size if size >= 0 else None for size in port.partial_shape],
        )
        for port in ports
    ]


def _theirs(ports: Any) -> Ports:
    return [
        (
            port.any_name,
            port.element_type.get_type_name(),
            [None if dim.is_dynamic else dim.get_length() for dim in port.partial_shape],
        )
        for port in ports
    ]


def _fit(ours: Ports, theirs: Ports) -> bool:
    """Return whether ports agree; a dimension that one side leaves dynamic matches any."""
    named = [(name, element) for name, element, _ in theirs]
    dims = [
        open_ in (None, known)
        for (*_, own), (*_, given) in zip(ours, theirs, strict=True)
        for known, open_ in zip(own, given, strict=True)
    ]
    return named == [(name, element) for name, element, _ in ours] and all(dims)
