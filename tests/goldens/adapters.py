"""LoRA adapters inserted into a model as openvino_genai does, and random adapters.

Each adapted MatMul y = x Wᵀ gets three variables, A [rank, in], alpha [1, rank] and B [out, rank],
and y becomes y + ((x Aᵀ) · alpha) Bᵀ. Source: openvino_genai's AdapterController in its mode
DYNAMIC (src/cpp/src/lora/adapter.cpp); tests/oracle/test_live_adapters.py compares both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from openvino.op import assign, read_value
from openvino.op.util import Variable, VariableInfo

PROJECTIONS = r"layers\.\d+\.(self_attn|mlp)\.\w+"
"""The layers that LoRA usually adapts: all projections of attention and of the MLP."""

Adapter = dict[str, np.ndarray]
"""Tensors of an adapter by the variables' ids."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """Adapted matmul."""

    layer: str
    """Name in a checkpoint, e.g. ``model.layers.0.mlp.up_proj``."""
    prefix: str
    """Prefix of the variables' ids."""
    inputs: int
    outputs: int


def insert_adapters(model: ov.Model, layers: str = PROJECTIONS, kind: str = "f32") -> list[Adapted]:
    """Add variables to the matmuls of all layers that match a pattern.

    Args:
        model: changed in place.
        layers: the pattern.
        kind: element type of A and B, as in the adapter's file; alpha is f32.
    """
    found: list[Adapted] = []
    for node in model.get_ordered_ops():
        name = node.get_friendly_name()
        if node.get_type_name() != "MatMul" or not re.search(layers, name):
            continue
        weights = node.input(1).get_partial_shape()
        transposed = node.get_attributes()["transpose_b"]
        inputs, outputs = (
            weights[1 if transposed else 0].get_length(),
            weights[0 if transposed else 1].get_length(),
        )
        prefix = f"lora_state_{len(model.get_sinks())}{name}"
        targets = list(node.output(0).get_target_inputs())
        a = _variable(model, f"{prefix}.A", ov.PartialShape([-1, inputs]), kind)
        alpha = _variable(model, f"{prefix}.alpha", ov.PartialShape([1, -1]), "f32")
        b = _variable(model, f"{prefix}.B", ov.PartialShape([outputs, -1]), kind)
        down = ops.matmul(node.input(0).get_source_output(), a, False, True)
        up = ops.matmul(ops.multiply(down, alpha), b, False, True)
        adapted = ops.add(node, up)
        for target in targets:
            target.replace_source_output(adapted.output(0))
        layer = name.removeprefix("__module.").split("/")[0]
        found.append(Adapted(layer, prefix, inputs, outputs))
    return found


def _variable(model: ov.Model, name: str, shape: ov.PartialShape, kind: str) -> ov.Node:
    """Create a variable that keeps its value; return it as f32."""
    info = VariableInfo()
    info.variable_id, info.data_shape, info.data_type = name, shape, getattr(ov.Type, kind)
    variable = Variable(info)
    model.add_variables([variable])
    read = read_value(variable)
    model.add_sinks([assign(read, variable)])
    return read if kind == "f32" else ops.convert(read, "f32")


@dataclass(frozen=True, slots=True)
class AdaptedModel:
    """IR with adapters, and adapters for it."""

    path: Path
    adapted: Sequence[Adapted]

    @property
    def off(self) -> Adapter:
        """Return openvino_genai's values without an adapter: tensors of rank 0."""
        return self.draw(0)

    def draw(self, rank: int, seed: int = 0, alpha: float = 1.0, kind: str = "f32") -> Adapter:
        """Draw an adapter of a rank."""
        return draw_adapter(self.adapted, rank, seed, alpha, kind)

    def product(self, layer: str) -> str:
        """Return the prefix of a layer's variable ids."""
        return next(each.prefix for each in self.adapted if each.layer.endswith(layer))


def adapted_ir(
    path: Path, target: Path, layers: str = PROJECTIONS, kind: str = "f32"
) -> AdaptedModel:
    """Write an IR with adapters into a folder."""
    model = ov.Core().read_model(path)
    found = insert_adapters(model, layers, kind)
    saved = target / "openvino_model.xml"
    ov.save_model(model, saved, compress_to_fp16=False)
    return AdaptedModel(saved, found)


def draw_adapter(
    adapted: Sequence[Adapted], rank: int, seed: int, alpha: float = 1.0, kind: str = "f32"
) -> Adapter:
    """Draw an adapter that changes the generated text."""
    draw, tensors = np.random.RandomState(seed), dict[str, np.ndarray]()
    element = np.dtype(kind.replace("f32", "f4").replace("f16", "f2"))
    for each in adapted:
        a = draw.standard_normal((rank, each.inputs)) / np.sqrt(each.inputs)
        b = draw.standard_normal((each.outputs, rank)) * (0.5 / np.sqrt(max(rank, 1)))
        tensors[f"{each.prefix}.A"] = a.astype(element)
        tensors[f"{each.prefix}.alpha"] = np.full((1, rank), alpha, np.float32)
        tensors[f"{each.prefix}.B"] = b.astype(element)
    return tensors


def blend(*adapters: Adapter) -> Adapter:
    """Concatenate several adapters along the rank, as openvino_genai does."""
    return {
        name: np.concatenate([each[name] for each in adapters], 0 if name.endswith(".A") else 1)
        for name in adapters[0]
    }


def write_adapter(path: Path, adapted: Sequence[Adapted], adapter: Adapter) -> Path:
    """Write an adapter as PEFT does, for openvino_genai; alpha is not in the file."""
    header: dict[str, object] = {}
    content = b""
    for each in adapted:
        for part in ("A", "B"):
            values = adapter[f"{each.prefix}.{part}"]
            span = [len(content), len(content) + values.nbytes]
            header[f"base_model.model.{each.layer}.lora_{part}.weight"] = {
                "dtype": f"F{8 * values.itemsize}",
                "shape": values.shape,
                "data_offsets": span,
            }
            content += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


@dataclass(frozen=True, slots=True)
class Wish:
    """Adapters of a generation: their ranks (also the seeds) and alphas."""

    ranks: tuple[int, ...]
    alphas: tuple[float, ...]
    kind: str = "f32"
    """Element type of A and B in the files."""

    def drawn(self, adapted: Sequence[Adapted]) -> list[Adapter]:
        """Draw the adapters, one per rank."""
        return [
            draw_adapter(adapted, rank, rank, alpha, self.kind)
            for rank, alpha in zip(self.ranks, self.alphas, strict=True)
        ]

    def states(self, adapted: Sequence[Adapted]) -> Adapter:
        """Return the values of the model's variables."""
        return blend(*self.drawn(adapted)) if self.ranks else draw_adapter(adapted, 0, 0)


WISHES = {
    "off": Wish((), ()),
    "rank 1": Wish((1,), (1.0,)),
    "rank 8": Wish((8,), (0.7,)),
    "rank 32": Wish((32,), (1.0,)),
    "two at once": Wish((8, 3), (0.5, -1.5)),
    "f16": Wish((8,), (1.0,), "f16"),
}
"""Cases of tests/goldens/adapters.json; all but the last use one pipeline."""
