"""Blobs of models for several devices: the NPU's programs, which no other device takes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer import Core
from npuw_layer.backends.protocols import SUBMODEL
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.execution.devices.stored import StoredProgram
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options

BOTH = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 128,
    "NPUW_DEVICES": "NPU,CPU",
}
CONFIG = parse_options({}).compiler_config() | {SUBMODEL: "a sum"}


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_an_import_has_the_same_logits(tiny: Path, tmp_path: Path, speak: Any, mode: str) -> None:
    compiled = Core().compile_model(tiny, "NPU", BOTH | {"CACHE_MODE": mode})
    compiled.export_model(tmp_path / "model.blob")
    assert str(tiny).encode() not in (tmp_path / "model.blob").read_bytes()
    options = {"NPUW_DEVICES": "NPU,CPU"}
    options |= {} if mode == "OPTIMIZE_SPEED" else {"WEIGHTS_PATH": str(tiny)}
    imported = Core().import_model(tmp_path / "model.blob", "NPU", options)
    assert np.array_equal(speak(imported), speak(compiled))
    again = Core().import_model(imported.export_model(), "NPU", options)
    assert np.array_equal(speak(again), speak(compiled))


def test_a_submodel_of_the_cpu_is_not_exported(tiny: Path) -> None:
    pinned = BOTH | {"NPUW_SUBMODEL_DEVICE": "lm_head:CPU"}
    compiled = Core().compile_model(tiny, "NPU", pinned)
    with pytest.raises(OptionError, match=r"lm_head.* runs on CPU, whose programs name files"):
        compiled.export_model()


@pytest.fixture
def several() -> SeveralDevices:
    options = parse_options(BOTH)
    names = [stage.name for stage in plan(options).stages]
    device = Core()._devices.of_stages(options, names)
    assert isinstance(device, SeveralDevices)
    return device


def sum_of_two() -> Model:
    model, (x, y) = Model.build([("x", tensor("f32", (1, 64))), ("y", tensor("f32", (1, 64)))])
    model.set_outputs([("sum", GraphBuilder(model).op(Add, x, y))])
    return model


def test_imported_programs_name_no_files(several: SeveralDevices) -> None:
    """A graph, or a program of another device, might name any file of the importing user."""
    program = several.compile(sum_of_two(), CONFIG)
    with pytest.raises(DeviceError, match="a sum has a graph, unlike exported programs"):
        several.load_exported(program)
    stored = StoredProgram.parse(program)
    head = stored.head.model_copy(update={"device": "CPU"})
    foreign = StoredProgram(head, bytes(stored.graph), b"").to_bytes()
    with pytest.raises(DeviceError, match="a sum runs on CPU, whose programs name files"):
        several.load_exported(foreign)
    with pytest.raises(DeviceError, match="not a program of NPUW_DEVICES"):
        several.load_exported(bytes(stored.program))
    assert several.load_exported(several.exported(program)).placement.device == "NPU"


def test_an_imported_program_that_its_device_rejects_is_an_error(several: SeveralDevices) -> None:
    stored = StoredProgram.parse(several.exported(several.compile(sum_of_two(), CONFIG)))
    damaged = StoredProgram(stored.head, bytes(stored.program[:64]), b"").to_bytes()
    with pytest.raises(DeviceError, match="has no graph that another device could compile"):
        several.load_exported(damaged)
