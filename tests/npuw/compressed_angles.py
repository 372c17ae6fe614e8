"""Cosines of a rotary embedding with frequencies of 8 bits, as in exports of Cohere."""

from __future__ import annotations

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Cos, Multiply, Subtract
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model

STORED = np.array([255, 130, 77, 41, 24, 13, 8, 6], np.uint8).reshape(1, 8, 1)
ZERO = np.full((1, 8, 1), 3, np.uint8)
SCALE = np.full((1, 8, 1), 1 / 252, np.float16)


def compressed_angles() -> Model:
    """Build a model of position_ids i64 [1, n] that returns cos f32 [1, n, 8]."""
    model, (positions,) = Model.build([("position_ids", tensor("i64", (1, -1)))])
    g = GraphBuilder(model)
    values, zero = (g.convert(g.constant(each), "f16") for each in (STORED, ZERO))
    scaled = g.op(Multiply, g.op(Subtract, values, zero), g.constant(SCALE))
    places = g.convert(g.unsqueeze(positions, 1), "f32")
    angles = g.matmul(g.convert(scaled, "f32"), places, False)
    model.set_outputs([("cos", g.op(Cos, g.transpose(angles, 0, 2, 1)))])
    return model


def cosines(positions: np.ndarray) -> np.ndarray:
    """Compute the same in numpy: frequencies are decompressed in f32."""
    centred = STORED.astype(np.float32) - ZERO.astype(np.float32)
    angles = centred * SCALE.astype(np.float32) * positions[:, None].astype(np.float32)
    return np.cos(angles).transpose(0, 2, 1)
