"""Harness for unrolled hardware ops, run on the simulated device with any blocks.

Ops are annotated by hand with blocks that the ``tile`` pass might not choose; the independent
checker checks each schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_attr, ints_attr
from compiler_layer.elements import NUMPY
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.model import Model
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.check import check_ddr, check_schedule
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.hazards import hazards
from compiler_layer.schedule.place_ddr import lifetimes
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind

PLATFORM = PLATFORMS["4000"]

Arrays = Mapping[str, np.ndarray]


class Unroll:
    """Models of one op, and their execution on the device."""

    platform = PLATFORM

    @staticmethod
    def type(element: str, shape: Sequence[int]) -> str:
        """Return a tensor's type, as text."""
        return f"tensor<{'x'.join(map(str, shape))}x{element.replace('u', 'ui')}>"

    def type_of(self, name: str, array: np.ndarray) -> str:
        """Return an input's type; names of type ``u4`` begin with 'nibbles'."""
        return self.type(_element(name, array), array.shape)

    def model_of(self, inputs: Arrays, body: str, element: str, shape: Sequence[int]) -> Model:
        """Return a model of one op ``%y``; names of ``u4`` inputs begin with 'nibbles'."""
        arguments = ", ".join(
            f'%{name}: {self.type_of(name, array)} {{ov.names = "{name}"}}'
            for name, array in inputs.items()
        )
        result = self.type(element, shape)
        return Model.parse(
            f'func.func @main({arguments}) -> ({result} {{ov.names = "y"}}) {{\n'
            f"{body} -> {result}\nfunc.return %y : {result}\n}}"
        )

    def attention(self, inputs: Arrays, parts: int, element: str) -> Model:
        """Return a model of an attention with keys and values in parts.

        Inputs ``t0`` … instead of ``v0`` … are transposed values, [1, H, D, S].
        """
        keys = [f"%k{i}" for i in range(parts)]
        values = [f"%v{i}" for i in range(parts)]
        types = {f"%{name}": self.type_of(name, array) for name, array in inputs.items()}
        turns = [name for name in inputs if re.fullmatch(r"t\d+", name)]
        first = "%order = ov.Constant #ov.inline<i64 [0, 1, 3, 2]> : tensor<4xi64>\n" * bool(turns)
        for name in turns:
            one, heads, width, rows = inputs[name].shape
            kind = self.type(_element(name, inputs[name]), (one, heads, rows, width))
            types[f"%v{name[1:]}"] = kind
            first += f"%v{name[1:]} = ov.Transpose(%{name}, %order) : "
            first += f"({types[f'%{name}']}, tensor<4xi64>) -> {kind}\n"
        masked = "mask" in inputs
        names = f"%q keys {', '.join(keys)} values {', '.join(values)}" + " mask %mask" * masked
        kinds = (
            f"{types['%q']} keys {', '.join(types[k] for k in keys)} "
            f"values {', '.join(types[v] for v in values)}" + f" mask {types.get('%mask')}" * masked
        )
        if "ks0" in inputs:
            for name, letter in (("key_scales", "ks"), ("value_scales", "vs")):
                scales = [f"%{letter}{i}" for i in range(parts)]
                names += f" {name} {', '.join(scales)}"
                kinds += f" {name} {', '.join(types[each] for each in scales)}"
        body = f"{first}%y = npu.attention {names} {{scale = 0.25 : f64}} : {kinds}"
        return self.model_of(inputs, body, element, inputs["q"].shape)

    @staticmethod
    def tiled(model: Model, block: Sequence[int], tiles: int) -> Model:
        """Annotate the op of a model with a block."""
        (op,) = [
            op for op in model.body.ops if isinstance(op, npu.Attention | npu.MatMul | npu.Kernel)
        ]
        op.properties["tile"] = ints_attr(block)
        op.properties["tiles"] = int_attr(tiles)
        return model

    @staticmethod
    def run(model: Model, inputs: Arrays, tiles: int) -> np.ndarray:
        """Schedule a tiled model, check the schedule, run the blob, and return its only output."""
        done = schedule(model, PLATFORM, tiles)
        whole = expanded(done)
        tasks = whole.tasks
        check_schedule(whole, hazards(tasks, whole.queues), PLATFORM.workspace_bytes)
        spans = lifetimes(tasks)
        check_ddr(list(spans), spans)
        blob = emit_blob(Program("op", done, PLATFORM, tiles))
        space = AddressSpace()
        inference = HostParsedInference(blob, PLATFORM)
        inference.load(space)
        given_inputs = [
            space.allocate(_packed(k, v).nbytes, MemoryKind.DMA) for k, v in inputs.items()
        ]
        for allocation, (name, array) in zip(given_inputs, inputs.items(), strict=True):
            allocation.write(0, _packed(name, array).tobytes())
        (port,) = model.outputs
        expected = np.zeros(port.type.get_shape(), NUMPY[_result_element(port.type)])
        output = space.allocate(expected.nbytes, MemoryKind.DMA)
        inference.apply_input_output([one.address for one in given_inputs], [output.address])
        Device(PLATFORM).run_inference(space, inference.address)
        return output.data.view(expected.dtype).reshape(expected.shape)


def _element(name: str, array: np.ndarray) -> str:
    return (
        "u4"
        if name.startswith("nibbles")
        else {"f": "f", "u": "u"}[array.dtype.kind] + str(8 * array.dtype.itemsize)
    )


def _packed(name: str, array: np.ndarray) -> np.ndarray:
    return array[..., ::2] | array[..., 1::2] << 4 if name.startswith("nibbles") else array


def _result_element(kind: object) -> str:
    return "f16" if "f16" in str(kind) else "f32"


@pytest.fixture(scope="session")
def unroll() -> Unroll:
    """Return the harness that builds models of one op, and runs them."""
    return Unroll()
