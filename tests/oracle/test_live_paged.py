"""Paged attention compared to the real OpenVINO, live: its CPU plugin, and its NPUW.

OpenVINO's own transformation makes the models from IRs of the real exporter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino._offline_transformations import paged_attention_transformation
from tests.oracle.real_npuw import EXACT

from npuw_layer import Core

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
OURS = {
    "NPUW_PA": "YES",
    "NPUW_LLM_MAX_PROMPT_LEN": 40,
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
NAMES = ("gemma2_fp16", "mistral_fp16", "bloom_fp16", "llama_int4")
NPUW = EXACT | {"NPU_USE_NPUW": "YES", "NPUW_PA": "YES"}


class Pair:
    """Model with paged attention: OpenVINO's in memory, and the IR file for this stack.

    Args:
        plain: the exported IR.
        folder: folder for the transformed IR.
        sample: True to compute logits of selected tokens only.
    """

    def __init__(self, plain: Path, folder: Path, sample: bool = False) -> None:
        self.model = ov.Core().read_model(plain)
        paged_attention_transformation(self.model)
        if sample:
            _sample(self.model)
        self.path = folder / "paged.xml"
        ov.save_model(self.model, self.path, compress_to_fp16=False)


def _sample(model: ov.Model) -> None:
    """Compute logits of sampled tokens only, as openvino_genai does."""
    head = model.outputs[0].node
    while head.get_type_name() != "MatMul":
        head = head.input_value(0).node
    wanted = ops.parameter([-1], np.int64, name="sampled_tokens_indices")
    wanted.output(0).get_tensor().set_names({"sampled_tokens_indices"})
    model.add_parameters([wanted])
    chosen = ops.gather(head.input_value(0), wanted, ops.constant(0, np.int64))
    head.input(0).replace_source_output(chosen.output(0))
    model.validate_nodes_and_infer_types()


@pytest.fixture
def pair(load_module: Callable[[Path], Any], tmp_path: Path) -> Callable[..., Pair]:
    restore = load_module(GOLDENS / "exported" / "restore.py").restore

    def made(name: str, **how: Any) -> Pair:
        return Pair(restore(GOLDENS / "exported", name, tmp_path / "plain"), tmp_path, **how)

    return made


@pytest.fixture(scope="module")
def sequences(load_module: Callable[[Path], Any]) -> Any:
    return load_module(GOLDENS / "paged" / "sequences.py")


class Both:
    """Requests of the real OpenVINO and of this stack, each with its own caches."""

    def __init__(self, real: Any, mine: Any, sequences: Any) -> None:
        self._requests = real.create_infer_request(), mine.create_infer_request()
        shapes = {
            port.any_name: tuple(port.get_partial_shape())
            for port in mine.inputs
            if "cache" in port.any_name
        }
        self.caches, self.real_caches = (
            {
                name: np.zeros((sequences.BLOCKS, *shape[1:]), np.float32)
                for name, shape in shapes.items()
            }
            for _ in "12"
        )
        for name, values in self.real_caches.items():
            self._requests[0].set_tensor(name, ov.Tensor(values, shared_memory=True))
            self._requests[1].set_tensor(name, self.caches[name])

    def infer(self, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the logits of both."""
        real, mine = self._requests
        given = {name: ov.Tensor(values) for name, values in inputs.items()}
        wanted = np.array(next(iter(real.infer(given).values())))
        return wanted, mine.infer(inputs)["logits"]


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_caches_equal_openvinos(
    pair: Callable[..., Pair], sequences: Any, name: str
) -> None:
    made = pair(name)
    real = ov.Core().compile_model(made.model, "CPU", EXACT)
    both = Both(real, Core().compile_model(made.path, "NPU", OURS), sequences)
    asked = sequences.Sequences()
    for step in sequences.STEPS:
        wanted, found = both.infer(asked.inputs(step))
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for cache, values in both.real_caches.items():
        np.testing.assert_allclose(both.caches[cache], values, atol=1e-4)


def test_logits_of_sampled_tokens_have_the_requested_order(
    pair: Callable[..., Pair], sequences: Any
) -> None:
    made = pair("llama_fp16", sample=True)
    real = ov.Core().compile_model(made.model, "CPU", EXACT)
    both = Both(real, Core().compile_model(made.path, "NPU", OURS), sequences)
    asked = sequences.Sequences()
    for step in sequences.STEPS:
        inputs = asked.inputs(step)
        last = sequences.last_tokens(step)[::-1]
        every = np.arange(last.max() + 1).repeat(2)  # more rows than one inference has outputs for
        for tokens in (last, every):
            wanted, found = both.infer(
                {**inputs, "sampled_tokens_indices": tokens.astype(np.int64)}
            )
            assert len(found) == len(tokens)
            np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_openvino_cannot_read_the_paged_models_that_it_writes(pair: Callable[..., Pair]) -> None:
    with pytest.raises(RuntimeError, match="unsupported opset: extension"):
        ov.Core().read_model(pair("llama_fp16").path)


def test_logits_equal_the_real_npuws(pair: Callable[..., Pair], sequences: Any) -> None:
    made = pair("gemma2_fp16")
    real = ov.Core().compile_model(made.model, "NPU", NPUW)
    both = Both(real, Core().compile_model(made.path, "NPU", OURS), sequences)
    asked = sequences.Sequences()
    for step in sequences.STEPS:
        wanted, found = both.infer(asked.inputs(step))
        np.testing.assert_allclose(found, wanted, atol=1e-4)
