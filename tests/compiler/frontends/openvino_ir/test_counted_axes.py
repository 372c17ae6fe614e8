"""Axes that an exporter computes with Range are read like axes in a constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler_layer.errors import BadModel, UnsupportedOps
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter


def layer(number: int, kind: str, inputs: int, data: str, opset: int = 1) -> str:
    ports = "".join(f'<port id="{port}"/>' for port in range(inputs))
    given = "" if kind == "Result" else f'<output><port id="{inputs}"/></output>'
    return (
        f'<layer id="{number}" name="{kind}{number}" type="{kind}" version="opset{opset}">'
        f"<data {data}/><input>{ports}</input>{given}</layer>"
    )


def written(folder: Path, bounds: tuple[int, int, int], stop: int = 2) -> Path:
    """Write a mean over a range of axes; ``stop`` is the layer that ends the range."""
    constant = 'element_type="i64" shape="" size="8" offset='
    layers = [
        layer(0, "Parameter", 0, 'element_type="f32" shape="2,3,4"'),
        *(layer(number + 1, "Const", 0, f'{constant}"{8 * number}"') for number in range(3)),
        layer(4, "Range", 3, 'output_type="i64"', 4),
        layer(5, "ReduceMean", 2, 'keep_dims="true"'),
        layer(6, "Result", 1, ""),
        layer(7, "Parameter", 0, 'element_type="i64" shape=""'),
    ]
    edges = [(1, 0, 4, 0), (stop, 0, 4, 1), (3, 0, 4, 2), (0, 0, 5, 0), (4, 3, 5, 1), (5, 2, 6, 0)]
    wires = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
        for a, b, c, d in edges
    )
    path = folder / "model.xml"
    path.write_text(
        f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges>{wires}</edges></net>'
    )
    path.with_suffix(".bin").write_bytes(np.array(bounds, np.int64).tobytes())
    return path


@pytest.mark.parametrize(
    ("bounds", "axes"), [((-1, 0, 1), (-1,)), ((1, 3, 1), (1, 2)), ((2, -1, -2), (0, 2))]
)
def test_a_range_of_constants_determines_axes(
    tmp_path: Path, bounds: tuple[int, int, int], axes: tuple[int, ...]
) -> None:
    model = read_ir(written(tmp_path, bounds))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (found,) = Interpreter(model).run({"Parameter0": x, "Parameter7": np.array(0)}).values()
    np.testing.assert_allclose(found, x.mean(axes, keepdims=True))


def test_a_range_that_depends_on_an_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOps, match="ReduceMean-1 whose input 1 is not a constant"):
        read_ir(written(tmp_path, (-1, 0, 1), stop=7))


def test_a_long_range_does_not_become_a_constant(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"ReduceMean5.*the axes are not a constant"):
        read_ir(written(tmp_path, (0, 1 << 20, 1)))
