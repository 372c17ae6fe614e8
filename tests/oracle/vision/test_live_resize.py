"""Interpolation of images compared to OpenVINO's."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from tests.oracle.real_npuw import EXACT

from genai_layer.vision.patches import resize

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("size", [(56, 84), (140, 196), (33, 17), (1, 1), (7, 300)], ids=str)
def test_interpolation_equals_openvinos(tools: Any, size: tuple[int, int]) -> None:
    image = tools.picture(60, 90)
    pixels = op.parameter([1, 3, 60, 90], np.float32)
    resized = op.interpolate(
        pixels, op.constant(np.array(size)), "cubic", "sizes", axes=op.constant(np.array([2, 3])),
        coordinate_transformation_mode="pytorch_half_pixel", cube_coeff=-0.75,
    )  # fmt: skip
    compiled = ov.Core().compile_model(ov.Model([resized], [pixels]), "CPU", EXACT)
    expected = compiled(image.transpose(2, 0, 1)[None].astype(np.float32))[0][0]
    found = resize(image, *size).transpose(2, 0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-3)
