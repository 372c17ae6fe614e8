"""ConvertLike, which OpenVINO makes of an attention's scale, is read as a conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter

XML = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="i32" shape="3"/>
<output><port id="0"/></output></layer>
<layer id="1" name="like" type="Parameter" version="opset1"><data element_type="f16" shape="1"/>
<output><port id="0"/></output></layer>
<layer id="2" name="y" type="ConvertLike" version="opset1">
<input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
</edges></net>"""


def test_convert_like_converts_to_the_type_of_its_second_input(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(XML)
    model = read_ir(path)
    assert any(isinstance(op, Convert) for op in model.body.ops)
    inputs = {"x": np.array([1, 2, 3], np.int32), "like": np.zeros(1, np.float16)}
    (found,) = Interpreter(model).run(inputs).values()
    assert found.dtype == np.float16
    assert found.tolist() == [1, 2, 3]
