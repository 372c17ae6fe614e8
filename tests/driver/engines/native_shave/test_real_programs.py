"""Programs that models compile to, with their windows: llama-8m's, and some of other models."""

from __future__ import annotations

import numpy as np
import pytest

R, O = (0, 1, 2), ()  # noqa: E741  # contiguous rows, and one row for all

COPY = "ld v0, w0\nst w1, v0\nend"

OUTER = "ld v0, w0\nld v1, w1\nmul v1, v0, v1\nst w2, v1\nend"

COSINE = "ld v0, w0\ncos v0, v0\nst w1, v0\nend"
SINE = "ld v0, w0\nsin v0, v0\nst w1, v0\nend"

NOT_ZERO = """
    ld    v0, w0
    imm   v1, 0
    imm   v2, 1
    cmpeq v1, v0, v1
    sub   v1, v2, v1
    st    w1, v1
    end"""

MASK_OF_TWO = """
    ld    v0, w0
    ld    v1, w1
    mul   v1, v0, v1
    imm   v0, 0
    imm   v2, -65504
    sel   v2, v1, v0, v2
    st    w2, v2
    end"""

MASK_OF_ONE = """
    ld    v0, w0
    imm   v1, 0
    imm   v2, -65504
    sel   v2, v0, v1, v2
    st    w1, v2
    end"""

NORM = """
    ld    v0, w0
    mul   v1, v0, v0
    rsum  v1, v1
    imm   v2, 0.00390625
    mul   v2, v1, v2
    imm   v1, 1e-06
    add   v1, v2, v1
    rsqrt v1, v1
    mul   v1, v0, v1
    st    w1, v1
    end"""

ADD_AND_NORM = """
    ld    v0, w0
    ld    v1, w1
    add   v1, v0, v1
    mul   v0, v1, v1
    rsum  v0, v0
    imm   v2, 0.00390625
    mul   v2, v0, v2
    imm   v0, 1e-06
    add   v0, v2, v0
    rsqrt v0, v0
    mul   v0, v1, v0
    st    w2, v1
    st    w3, v0
    end"""

LAST_NORM = ADD_AND_NORM.replace("st    w2, v1\n", "").replace("st    w3", "st    w2")

ROPE = """
    ld    v0, w0
    ld    v1, w1
    ld    v2, w2
    rot   v3, v0, 16
    iota  v4
    imm   v5, 16
    cmplt v5, v4, v5
    neg   v4, v3
    sel   v3, v5, v4, v3
    mul   v1, v0, v1
    fma   v1, v3, v2, v1
    st    w3, v1
    end"""

SOFTMAX = """
    ld    v0, w0
    ld    v1, w1
    add   v1, v0, v1
    rmax  v0, v1
    imm   v2, -3.4028235e+38
    max   v2, v0, v2
    sub   v2, v1, v2
    exp   v2, v2
    rsum  v1, v2
    imm   v0, 1e-30
    max   v0, v1, v0
    rcp   v0, v0
    mul   v0, v2, v0
    st    w2, v0
    end"""

SWISH = """
    ld    v0, w0
    ld    v1, w1
    neg   v2, v0
    exp   v2, v2
    imm   v3, 1
    add   v3, v2, v3
    rcp   v3, v3
    mul   v3, v0, v3
    mul   v1, v3, v1
    st    w2, v1
    end"""

# From gpt2, gptneox and gemma3.

LAYER_NORM = """
    ld    v0, w0
    rsum  v1, v0
    imm   v2, 0.0078125
    mul   v1, v1, v2
    sub   v1, v0, v1
    mul   v0, v1, v1
    rsum  v0, v0
    mul   v2, v0, v2
    imm   v0, 1e-05
    add   v0, v2, v0
    rsqrt v0, v0
    mul   v0, v1, v0
    st    w1, v0
    end"""

GELU = """
    ld    v0, w0
    imm   v1, 0.70710677
    mul   v1, v0, v1
    erf   v1, v1
    imm   v2, 0.5
    mul   v2, v0, v2
    fma   v1, v2, v1, v2
    st    w1, v1
    end"""

GELU_BY_TANH = """
    ld    v0, w0
    mul   v1, v0, v0
    mul   v1, v1, v0
    imm   v2, 0.044715
    fma   v2, v1, v2, v0
    imm   v1, 0.7978846
    mul   v1, v2, v1
    tanh  v1, v1
    imm   v2, 0.5
    mul   v2, v0, v2
    fma   v1, v2, v1, v2
    st    w1, v1
    end"""

NORM_AND_ROPE = """
    ld    v0, w0
    ld    v1, w1
    ld    v2, w2
    mul   v3, v0, v0
    rsum  v3, v3
    imm   v4, 0.03125
    mul   v4, v3, v4
    imm   v3, 1e-06
    add   v3, v4, v3
    rsqrt v3, v3
    mul   v3, v0, v3
    rot   v0, v3, 16
    iota  v4
    imm   v5, 16
    cmplt v5, v4, v5
    neg   v4, v0
    sel   v0, v5, v4, v0
    mul   v1, v3, v1
    fma   v1, v0, v2, v1
    st    w3, v1
    end"""

CALLS = {
    "positions": (COPY, (1, 1, 1), ("i64", 128, R), ("f32", 128, R)),
    "position": (COPY, (1, 1, 1), ("i64", 1, R), ("f32", 1, R)),
    "angles": (OUTER, (1, 1, 16), ("f32", 1, R), ("f32", 128, O), ("f32", 128, R)),
    "angles of one": (OUTER, (1, 1, 16), ("f32", 1, R), ("f32", 1, O), ("f32", 1, R)),
    "cosines": (COSINE, (1, 1, 128), ("f32", 32, R), ("f32", 32, R)),
    "sines": (SINE, (1, 1, 128), ("f32", 32, R), ("f32", 32, R)),
    "mask": (NOT_ZERO, (1, 1, 1), ("i64", 256, R), ("boolean", 256, R)),
    "masks": (MASK_OF_TWO, (1, 1, 64), ("boolean", 128, R), ("boolean", 128, O), ("f32", 128, R)),
    "mask of one": (MASK_OF_ONE, (1, 1, 1), ("boolean", 256, R), ("f32", 256, R)),
    "norms": (NORM, (1, 1, 64), ("f16", 256, R), ("f16", 256, R)),
    "norm": (NORM, (1, 1, 1), ("f16", 256, R), ("f16", 256, R)),
    "sums and norms": (ADD_AND_NORM, (1, 1, 64), *[("f16", 256, R)] * 4),
    "last norms": (LAST_NORM, (1, 1, 64), *[("f16", 256, R)] * 3),
    "ropes": (
        ROPE,
        (1, 2, 128),
        *(("f16", 32, R), ("f32", 32, (2,)), ("f32", 32, (2,)), ("f16", 32, R)),
    ),
    "rope": (ROPE, (1, 1, 8), ("f16", 32, R), ("f32", 32, O), ("f32", 32, O), ("f16", 32, R)),
    "softmaxes": (SOFTMAX, (1, 2, 128), ("f32", 128, R), ("f32", 128, (2,)), ("f16", 128, R)),
    "softmax": (SOFTMAX, (1, 1, 2), ("f32", 256, R), ("f32", 256, O), ("f16", 256, R)),
    "swishes": (SWISH, (1, 1, 43), *[("f16", 704, R)] * 3),
    "swish": (SWISH, (1, 1, 1), *[("f16", 704, R)] * 3),
    "layer norms": (LAYER_NORM, (1, 1, 128), ("f16", 128, R), ("f16", 128, R)),
    "gelus": (GELU, (1, 1, 64), ("f16", 512, R), ("f16", 512, R)),
    "gelus by tanh": (GELU_BY_TANH, (1, 1, 64), ("f16", 512, R), ("f16", 512, R)),
    "norms and ropes": (
        NORM_AND_ROPE,
        (1, 4, 16),
        *(("f16", 32, R), ("f32", 32, (2,)), ("f32", 32, (2,)), ("f16", 32, R)),
    ),
}
"""Program, grid, and for each window the element type, columns, and dimensions it moves in."""


@pytest.mark.matrix
@pytest.mark.parametrize("name", CALLS)
def test_programs_of_models(native, rows, name) -> None:
    text, grid, *windows = CALLS[name]
    specs = [rows(kind, grid, cols, axes) for kind, cols, axes in windows]
    # 1 + tanh and 1 + erf lose places for results near -1.
    rough = 1e-4 if name.startswith("gelu") else None
    native.check(text, grid, *specs, fill=_positive if rough else _any, rough=rough)


def _any(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return activations, masks, and positions up to a few thousands."""
    if kind == "i64":
        return np.sort(rng.integers(0, 4000, count))
    if kind == "boolean":
        return rng.integers(0, 2, count).astype(np.uint8)
    return (rng.standard_normal(count) * 3).astype({"f32": "<f4", "f16": "<f2"}[kind])


def _positive(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.maximum(_any(kind, count, rng), -1)
