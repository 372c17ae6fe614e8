"""A bank of weights and its arena, within one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("weights are shared on Linux", allow_module_level=True)

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import DeviceError, ModelError, OptionError
from npuw_layer.options import parse_options
from npuw_layer.testing.check_sharing import SHARING_CHECKS
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.sharing.bank import share_bank

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


def new_device() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def logits(compiled: Any) -> np.ndarray:
    fed = {
        "input_ids": np.array([[5, 6, 7]]),
        "attention_mask": np.ones((1, 3), np.int64),
        "position_ids": np.arange(3)[None],
    }
    return compiled.create_infer_request().infer(fed)["logits"]


@pytest.mark.parametrize("check", SHARING_CHECKS, ids=lambda check: check.__name__)
def test_the_npu_satisfies_the_protocol_of_shared_memory(check) -> None:
    check(new_device)


def test_only_memory_allocated_for_export_is_exported() -> None:
    device = new_device()
    with pytest.raises(DeviceError, match="not allocated for export"):
        device.export(device.allocate(100))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "copied"),
    [
        ({"NPUW_WEIGHTS_BANK": "b"}, "converted"),
        ({"NPUW_WEIGHTS_BANK": "b", "INFERENCE_PRECISION_HINT": "f32"}, "nothing"),
        ({"NPUW_WEIGHTS_BANK_ALLOC": "SHARED", "INFERENCE_PRECISION_HINT": "f32"}, "all"),
    ],
)
def test_copied_weights_and_weights_used_in_the_file(tiny, options, copied) -> None:
    """The checkpoint has f32."""
    private = {name: value for name, value in options.items() if "BANK" not in name}
    expected = logits(Core().compile_model(tiny, "NPU", SMALL | private))
    compiled = Core().compile_model(tiny, "NPU", SMALL | options)
    assert np.array_equal(logits(compiled), expected)
    report = compiled.sharing()
    assert report is not None
    assert (report.arena_bytes > 0) == (copied != "nothing")
    assert (report.file_bytes > 0) == (copied == "nothing")


def test_two_models_share_one_copy_of_converted_weights(tiny) -> None:
    options = SMALL | {"NPUW_WEIGHTS_BANK": "b"}
    one, two = (Core().compile_model(tiny, "NPU", options) for _ in range(2))
    assert np.array_equal(logits(one), logits(two))
    report = one.sharing()
    assert report is not None
    pages = -(-report.arena_bytes // 4096) * 4096
    assert report.resident_bytes <= pages
    assert report.unshared_bytes > report.resident_bytes


def inputs_of(tiny: Path) -> list[TensorInfo]:
    """Return the inputs of all static models, including the LM head's."""
    models = Core().compile_model(tiny, "NPU", SMALL)._compiled.models
    return [info for model in models.values() for info in model.inputs]


def test_the_order_of_weights_is_independent_of_the_order_of_inputs(tiny) -> None:
    inputs, bank = inputs_of(tiny), WeightsBank(new_device(), tiny)
    one = bank.to_allocate(inputs, in_place=False)
    other = bank.to_allocate(inputs[::-1] * 2, in_place=False)
    assert len(one) > 10
    assert list(one) == list(other)


def test_a_model_that_changes_during_the_copy_is_rejected_and_not_shared(tiny, folder) -> None:
    """Other processes would find its new weights under the old name."""
    device, digests = new_device(), iter(["before", "after"])
    models = Core().compile_model(tiny, "NPU", SMALL)._compiled.models
    options = parse_options({"NPUW_WEIGHTS_BANK": "b", "NPUW_WEIGHTS_BANK_ALLOC": "SHARED"})
    with pytest.raises(ModelError, match="changed"):
        share_bank(
            WeightsBank(device, tiny), models.values(), lambda: next(digests), device, options
        )
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize(
    "options",
    [{"NPUW_WEIGHTS_BANK": "x" * 257}, {"NPUW_WEIGHTS_BANK_ALLOC": "GPU"}],
)
def test_options_are_checked(tiny, options) -> None:
    with pytest.raises(OptionError, match="NPUW_WEIGHTS_BANK"):
        Core().compile_model(tiny, "NPU", SMALL | options)


def test_a_bank_name_is_not_a_path(tiny, folder) -> None:
    options = SMALL | {"NPUW_WEIGHTS_BANK": "../../\0x"}
    compiled = Core().compile_model(tiny, "NPU", options)
    assert compiled.get_property("NPUW_WEIGHTS_BANK") == "../../\0x"
    (place,) = folder.parent.iterdir()
    assert len(place.name) == 32
