"""Attentions in the form in which partitioning cuts them out of a model, with input values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import Device, LoadedModel, Program

LOWEST = float(np.finfo(np.float16).min)
"""Mask value of exporters for invisible positions."""


@dataclass(frozen=True)
class Attention:
    """An attention over a cache: sizes, types, and form of the mask."""

    heads: int = 2
    group: int = 2
    tokens: int = 8
    past: int = 40
    width: int = 8
    element: str = "f32"
    i8: bool = False
    mask: str = "f32"
    mask_heads: int = 1

    def graph(self) -> Model:
        """Return the cut graph, as splitting and lowering produce it."""
        many = self.heads * self.group
        rows, new = (self.past, self.heads), (1, self.heads, self.tokens, self.width)
        kind = "i8" if self.i8 else self.element
        stored = [(name, tensor(kind, (1, *rows, self.width))) for name in ("k_past", "v_past")]
        scales = [(f"{name}.scale", tensor("f16", (1, *rows, 1))) for name, _ in stored]
        mask = (1, self.mask_heads, self.tokens, self.past + self.tokens)
        ports = [
            ("q", tensor(self.element, (1, many, self.tokens, self.width))),
            *stored,
            *(scales if self.i8 else []),
            ("k_new", tensor(self.element, new)),
            ("v_new", tensor(self.element, new)),
            ("mask", tensor(self.mask, mask)),
        ]
        model, values = Model.build(ports)
        of = {name: value for (name, _), value in zip(ports, values, strict=True)}
        g = GraphBuilder(model)

        def whole(side: str) -> Any:
            past = of[f"{side}_past"]
            if self.i8:
                kind = StringAttr(self.element)
                past = g.op(Dequantize, past, of[f"{side}_past.scale"], [], destination_type=kind)
            return g.concat([g.transpose(past, 0, 2, 1, 3), of[f"{side}_new"]], 2)

        scale = g.constant(np.array(0.3, np.float32))
        operands = (of["q"], whole("k"), whole("v"), [of["mask"], scale])
        op = ScaledDotProductAttention.make(list(operands), causal=bool_attr(False))
        model.set_outputs([("y", g.add(op).output)])
        return model

    def config(self) -> dict[str, str]:
        return {
            "INFERENCE_PRECISION_HINT": self.element,
            "NPU_PLATFORM": "4000",
            "NPU_TILES": "0",
            "ENABLE_WEIGHTLESS": "YES",
        }

    def values(self, seed: int, live: int, used: int | None = None) -> dict[str, np.ndarray]:
        """Draw random values; the first ``live`` stored rows are visible, new ones causally.

        Tokens behind the first ``used`` are padding: no token attends to them, nor they to any.
        """
        draw = np.random.default_rng(seed)
        found: dict[str, np.ndarray] = {}
        for port in self.graph().inputs:
            dims = tuple(port.type.get_shape())
            found[port.name] = draw.standard_normal(dims).astype(np.float32)
            if port.name.endswith(".scale"):
                found[port.name] = (draw.random(dims) / 60 + 0.01).astype(np.float16)
            elif self.i8 and port.name.endswith("_past"):
                found[port.name] = draw.integers(-127, 128, dims).astype(np.int8)
            elif self.element == "f16":
                found[port.name] = found[port.name].astype(np.float16)
        found["mask"] = self.mask_values(self.allowed(live, used), draw)
        return found

    def allowed(self, live: int, used: int | None = None) -> np.ndarray:
        """Return a mask [tokens, past + tokens] of the visible positions of each token."""
        stored = np.zeros((self.tokens, self.past), bool)
        stored[:, :live] = True
        new = np.tril(np.ones((self.tokens, self.tokens), bool))
        found = np.concatenate([stored, new], 1)
        used = self.tokens if used is None else used
        found[used:] = False
        found[:, self.past + used :] = False
        return found

    def mask_values(self, allowed: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        """Return a mask of this attention's type; a mask per head also has biases."""
        whole = np.broadcast_to(allowed, (1, self.mask_heads, *allowed.shape))
        if self.mask == "boolean":
            return whole.copy()
        biases = draw.standard_normal(whole.shape) if self.mask_heads > 1 else 0
        return np.where(whole, biases, LOWEST).astype(np.float16 if self.mask == "f16" else "f4")


class Bound:
    """A program of a loaded attention, with its own memory."""

    def __init__(self, device: Device, loaded: LoadedModel) -> None:
        self.arena = Arena(device, [*loaded.inputs, *loaded.outputs])
        self.program: Program = loaded.create_program()
        self.arena.bind(self.program)

    def run(self, values: dict[str, np.ndarray]) -> np.ndarray:
        for name, value in values.items():
            self.arena[name][...] = value
        self.arena["y"][...] = np.nan
        self.program.run()
        return self.arena["y"].astype(np.float32)


def whole(attention: Attention, values: dict[str, np.ndarray]) -> np.ndarray:
    """Return the graph's result over all positions."""
    return Interpreter(attention.graph()).run(values)["y"].astype(np.float32)


def by_hand(attention: Attention, values: dict[str, np.ndarray]) -> np.ndarray:
    """Return the same in numpy, in f64."""

    def rows(side: str) -> np.ndarray:
        past = values[f"{side}_past"].astype(np.float64)
        if attention.i8:
            past = past * values[f"{side}_past.scale"]
        joined = np.concatenate([past.transpose(0, 2, 1, 3), values[f"{side}_new"]], 2)
        return joined.repeat(attention.group, 1)

    mask = values["mask"]
    mask = np.where(mask, 0, -1e300) if mask.dtype == bool else mask.astype(np.float64)
    scores = values["q"].astype(np.float64) @ rows("k").swapaxes(-1, -2) * np.float32(0.3)
    scores = np.maximum(scores + mask, -1e300)  # all scores of padding are as low
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ rows("v")
