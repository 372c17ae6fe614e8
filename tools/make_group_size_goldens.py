"""Golden file tests/goldens/group_sizes.json: the groups that NNCF chooses for int4 weights.

Each width has the element type of its weights and the size of their groups, which is the width if a
channel has one scale; with GroupSizeFallbackMode.ADJUST and a group size of 128.

Needs openvino 2026.4.1 and nncf 3.4.0 in an environment of its own:

    python tools/make_group_size_goldens.py        # from the checkout, a few seconds
"""

from __future__ import annotations

import json
from pathlib import Path

import nncf
import numpy as np
import openvino as ov
from nncf.quantization.advanced_parameters import (
    AdvancedCompressionParameters,
    GroupSizeFallbackMode,
)
from openvino import opset13

OUT = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "group_sizes.json"

WIDTHS = (16, 20, 32, 48, 64, 96, 100, 128, 160, 192, 320, 576, 704, 960, 1000, 1536, 2048, 4100)

ROWS = 256


def two_matmuls(width: int) -> ov.Model:
    """Build a model whose first matmul has the width; NNCF keeps the last one at 8 bits."""
    x = opset13.parameter([-1, width], np.float32)
    draw = np.random.default_rng(0)
    first, last = (
        opset13.constant(draw.standard_normal(shape).astype(np.float32))
        for shape in ((ROWS, width), (16, ROWS))
    )
    hidden = opset13.matmul(x, first, False, True)
    return ov.Model([opset13.matmul(hidden, last, False, True)], [x])


def chosen(width: int) -> tuple[str, int]:
    """Return the element type of the first weight, and the size of its groups."""
    adjusted = AdvancedCompressionParameters(
        group_size_fallback_mode=GroupSizeFallbackMode.ADJUST,
    )
    model = nncf.compress_weights(
        two_matmuls(width),
        mode=nncf.CompressWeightsMode.INT4_ASYM,
        group_size=128,
        advanced_parameters=adjusted,
    )
    for op in model.get_ordered_ops():
        if op.get_type_name() != "Constant" or op.shape[:1] != ov.Shape([ROWS]):
            continue
        if int(np.prod(op.shape)) == ROWS * width:
            return op.get_element_type().get_type_name(), op.shape[-1]
    raise AssertionError(f"no weight of {width} channels")


def main() -> None:
    """Write the file."""
    OUT.write_text(json.dumps({width: chosen(width) for width in WIDTHS}) + "\n")


if __name__ == "__main__":
    main()
