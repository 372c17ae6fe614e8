"""Bad IRs raise a typed error with file and layer, in little memory and time; no traceback."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler_layer.compile import compile_model
from compiler_layer.errors import BadModel, CompilerError, CompilerUsageError, UnsupportedModel
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower_graph

HERE = Path(__file__).parents[1]
CORPUS = HERE / "corpus"


@pytest.fixture(scope="module")
def mutations(load_module: Callable[[Path], Any]) -> Any:
    """Mutations that the fuzzer also applies."""
    return load_module(HERE / "mutations.py")


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    """Copy of an IR for damage."""
    for suffix in (".xml", ".bin"):
        content = (CORPUS / "seed").with_suffix(suffix).read_bytes()
        (tmp_path / "model").with_suffix(suffix).write_bytes(content)
    return tmp_path / "model.xml"


def check_refused(mutations: Any, xml: Path, says: str) -> None:
    with pytest.raises(BadModel) as raised, mutations.limited():
        read_ir(xml)
    assert says in str(raised.value)
    assert xml.stem in str(raised.value)


def layer(number: int, kind: str, data: str = "", inputs: int = 0, outputs: int = 1) -> str:
    """Return a layer named by its number, with ports 0, 1 and so on."""
    takes = "".join(f'<port id="{i}" />' for i in range(inputs))
    gives = "".join(f'<port id="{i}" />' for i in range(inputs, inputs + outputs))
    opset = {"ReadValue": 6, "Assign": 6, "Broadcast": 3}.get(kind, 1)
    return (
        f'<layer id="{number}" name="layer {number}" type="{kind}" version="opset{opset}">'
        f"<data {data} /><input>{takes}</input><output>{gives}</output></layer>"
    )


def edge(source: int, port: int, sink: int, sink_port: int = 0) -> str:
    return (
        f'<edge from-layer="{source}" from-port="{port}" to-layer="{sink}" to-port="{sink_port}" />'
    )


def network(*parts: str) -> str:
    """Return an IR of layers and edges."""
    layers = "".join(part for part in parts if part.startswith("<layer"))
    edges = "".join(part for part in parts if part.startswith("<edge"))
    return f'<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'


PARAMETER = layer(0, "Parameter", 'element_type="f32" shape="2,3"')
RESULT = layer(9, "Result", inputs=1, outputs=0)
VARIABLE = 'variable_id="v" variable_type="f32" variable_shape="2,3"'


def test_the_network_of_these_tests_is_good(mutations: Any, xml: Path) -> None:
    assert mutations.outcome_of(lambda: read_ir(xml)) == "compiled"
    xml.write_text(
        network(PARAMETER, layer(1, "Exp", inputs=1), RESULT, edge(0, 0, 1), edge(1, 1, 9))
    )
    assert mutations.outcome_of(lambda: read_ir(xml)) == "compiled"


BOMB = "<!DOCTYPE n [" + "".join(
    f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha"}">' for i in range(12)
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not an OpenVINO IR"),
        (b"\x00" * 100, "is not an OpenVINO IR"),
        (b"<a/>", "it has no layers"),
        (b'<net version="5"/>', "version 5 of the format is not supported"),
        (b"<net/>", "version None of the format is not supported"),
        (b'<?xml version="1.0" encoding="klingon"?><net version="11"/>', "is not an OpenVINO IR"),
        (b'<net version="11" name="\xff\xfe"/>', "is not an OpenVINO IR"),
        (f'{BOMB}]><net version="11">&e11;</net>'.encode(), "document type declaration"),
        (
            b'<!DOCTYPE n [<!ENTITY e SYSTEM "file:///etc/passwd">]><net version="11">&e;</net>',
            "document type declaration",
        ),
        (b'<net version="11">' + b"<a>" * 200_000, "is not an OpenVINO IR"),
        (b'<net version="11">' + b"<a>" * 9_999 + b"</a>" * 9_999 + b"</net>", "has no layers"),
        (
            b'<net version="11"><layers><layer id="0"/></layers></net>',
            "attribute 'name' is missing",
        ),
    ],
)
def test_an_invalid_ir_is_refused(mutations: Any, xml: Path, content: bytes, says: str) -> None:
    xml.write_bytes(content)
    check_refused(mutations, xml, says)


def test_a_byte_order_mark_and_utf_16_are_supported(xml: Path) -> None:
    expected, text = read_ir(xml), xml.read_text()
    xml.write_text(text, "utf-8-sig")
    assert read_ir(xml).module.is_structurally_equivalent(expected.module)
    xml.write_text(text, "utf-16")
    assert read_ir(xml).module.is_structurally_equivalent(expected.module)


HUGE = ",".join(["9223372036854775807"] * 200_000)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((PARAMETER, RESULT), "input port 0 is not connected"),
        ((PARAMETER, RESULT, edge(0, 7, 9)), "an edge begins at unknown port 7 of layer 0"),
        ((PARAMETER, RESULT, edge(0, 0, 9), edge(0, 0, 9)), "port 0 of layer 9 has two sources"),
        (
            (PARAMETER, RESULT, edge(0, 0, 9), edge(0, 0, 8)),
            "an edge ends at unknown port 0 of layer 8",
        ),
        ((PARAMETER, PARAMETER), "two layers have the id 0"),
        (
            (PARAMETER, layer(1, "Result", inputs=1), RESULT, edge(0, 0, 1), edge(1, 1, 9)),
            "an edge begins at unknown port 1 of layer 1",
        ),
        ((layer(1, "Exp", inputs=1), RESULT, edge(1, 1, 1), edge(1, 1, 9)), "form a cycle"),
        (
            (layer(1, "Exp", inputs=1), layer(2, "Exp", inputs=1), edge(1, 1, 2), edge(2, 1, 1)),
            "form a cycle",
        ),
        (
            (PARAMETER.replace('id="0" />', 'id="0" /><port id="0" />'), RESULT, edge(0, 0, 9)),
            "layer 'layer 0' has port 0 twice",
        ),
        (
            (PARAMETER, PARAMETER.replace('id="0" name', 'id="1" name')),
            "2 parameters have the name 'layer 0'",
        ),
        ((PARAMETER.replace('shape="2,3"', ""),), "attribute shape is missing"),
        ((PARAMETER.replace("2,3", "-7"),), "'-7' is not a valid shape"),
        ((PARAMETER.replace("2,3", "1000000,1000000,1000000"),), "000' is not a valid shape"),
        ((PARAMETER.replace("2,3", HUGE),), "(Parameter-1): '92233"),
        ((PARAMETER.replace("2,3", "9" * 10_000),), "(Parameter-1): '99999"),
        (
            (PARAMETER, layer(1, "Exp", inputs=2), edge(0, 0, 1), edge(0, 0, 1, 1)),
            "cannot have 2 inputs",
        ),
        ((layer(1, "Squeeze"),), "Squeeze cannot have 0 inputs"),
        (
            (PARAMETER, layer(1, "Exp", inputs=1, outputs=2), edge(0, 0, 1)),
            "2 outputs instead of 1",
        ),
        (
            (PARAMETER, layer(1, "Assign", 'variable_id="v"', inputs=1), edge(0, 0, 1)),
            "no layer reads its variable 'v'",
        ),
        (
            (layer(1, "ReadValue", VARIABLE), layer(2, "ReadValue", VARIABLE)),
            "layer 'layer 1' has the same variable",
        ),
        (
            (
                PARAMETER.replace("f32", "i64"),
                layer(1, "ReadValue", VARIABLE, inputs=1),
                edge(0, 0, 1),
            ),
            "variable 'v' is f32, its value tensor<2x3xi64>",
        ),
        (
            (
                PARAMETER,
                layer(1, "Softmax".replace("m", "M"), 'axis="5"', inputs=1),
                edge(0, 0, 1),
            ),
            "axis 5 is out of range for 2 dimensions",
        ),
        (
            (
                PARAMETER,
                layer(1, "Concat", f'axis="{"9" * 30}"', inputs=1),
                edge(0, 0, 1),
            ),
            "an integer of 100 bits",
        ),
    ],
)
def test_an_inconsistent_graph_is_refused(
    mutations: Any, xml: Path, parts: tuple[str, ...], says: str
) -> None:
    xml.write_text(network(*parts))
    check_refused(mutations, xml, says)


def test_a_declared_type_must_match_the_inferred_one(mutations: Any, xml: Path) -> None:
    text = xml.read_text()
    sqrt = re.search(r'type="Sqrt".*?</layer>', text, re.S)
    assert sqrt is not None
    xml.write_text(text.replace(sqrt[0], sqrt[0].replace("<dim>1</dim>", "<dim>8</dim>")))
    check_refused(mutations, xml, "is declared FP32 [-1, -1, 8], but is f32 [-1, -1, 1]")


def constant(element: str, shape: str, offset: str, size: str) -> str:
    data = f'element_type="{element}" shape="{shape}" offset="{offset}" size="{size}"'
    return network(layer(0, "Const", data), RESULT, edge(0, 0, 9))


@pytest.mark.parametrize(
    ("element", "shape", "offset", "size", "says"),
    [
        ("f32", "4", "-4", "16", "the constant is at -4 to 12"),
        ("f32", "4", "9223372036854775807", "16", "the constant is at 9223372036854775807"),
        ("f32", "4", "0x0", "16", "invalid literal"),
        ("f32", "4", "0", "17", "17 bytes for f32 [4], which needs 16"),
        ("f32", "-1", "0", "4", "bytes for f32 [-1]"),
        ("f32", "1000000,1000000", "0", "4000000000000", "the constant is at 0 to 4000000000000"),
        ("u4", "5", "0", "2", "2 bytes for u4 [5], which needs 3"),
        ("i4", "1", "0", "0", "0 bytes for i4 [1], which needs 1"),
    ],
)
def test_a_constant_outside_of_the_file_is_refused(
    mutations: Any, xml: Path, element: str, shape: str, offset: str, size: str, says: str
) -> None:
    xml.write_text(constant(element, shape, offset, size))
    check_refused(mutations, xml, says)


def test_an_odd_number_of_nibbles_is_read(xml: Path) -> None:
    xml.write_text(constant("u4", "5", "0", "3"))
    xml.with_suffix(".bin").write_bytes(b"\x21\x43\xf5")
    assert "u4 [1, 2, 3, 4, 5]" in read_ir(xml).text()


def test_truncated_missing_or_irregular_files_are_named(mutations: Any, xml: Path) -> None:
    weights = xml.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:-1])
    check_refused(mutations, xml, "model.bin: layer")
    weights.unlink()
    check_refused(mutations, xml, "model.bin: layer")
    weights.mkdir()
    check_refused(mutations, xml, "model.bin: layer")
    weights.rmdir()
    xml.unlink()
    check_refused(mutations, xml, "No such file")
    xml.mkdir()
    check_refused(mutations, xml, "is not a file")


@pytest.mark.long
def test_ten_thousand_layers_in_a_row_with_a_result_each_take_linear_time(
    mutations: Any, xml: Path
) -> None:
    numbers = range(1, 10_001)
    layers = [layer(number, "Exp", inputs=1) for number in numbers]
    results = [layer(20_000 + number, "Result", inputs=1, outputs=0) for number in numbers]
    chain = [edge(0, 0, 1), *(edge(number, 1, number + 1) for number in numbers[:-1])]
    taken = [edge(number, 1, 20_000 + number) for number in numbers]
    xml.write_text(network(PARAMETER, *layers, *results, *chain, *taken))
    with mutations.limited():
        assert len(read_ir(xml).outputs) == 10_000


FOLDED = {
    "Broadcast": "%b = ov.Constant #ov.inline<i64 [1000000, 1000000]> : tensor<2xi64>\n"
    '%y = ov.Broadcast(%a, %b) {mode = "numpy"} : (tensor<1x1xi64>, tensor<2xi64>) '
    "-> tensor<1000000x1000000xi64>",
    "Tile": "%b = ov.Constant #ov.inline<i64 [1000000, 1000000]> : tensor<2xi64>\n"
    "%y = ov.Tile(%a, %b) : (tensor<1x1xi64>, tensor<2xi64>) -> tensor<1000000x1000000xi64>",
    "Pad": "%b = ov.Constant #ov.inline<i64 [499999, 500000]> : tensor<2xi64>\n"
    "%c = ov.Constant #ov.inline<i64 [500000, 499999]> : tensor<2xi64>\n"
    '%y = ov.Pad(%a, %b, %c) {pad_mode = "constant"} : (tensor<1x1xi64>, tensor<2xi64>, '
    "tensor<2xi64>) -> tensor<1000000x1000000xi64>",
    "OneHot": "%b = ov.Constant #ov.inline<i64 [1000000000000]> : tensor<i64>\n"
    "%c = ov.Constant #ov.inline<i64 [1]> : tensor<i64>\n"
    "%y = ov.OneHot(%a, %b, %c, %c) {axis = 0 : i64} : (tensor<1x1xi64>, tensor<i64>, "
    "tensor<i64>, tensor<i64>) -> tensor<1000000000000x1x1xi64>",
    "Range": "%b = ov.Constant #ov.inline<i64 [1000000000000]> : tensor<i64>\n"
    "%c = ov.Constant #ov.inline<i64 [1]> : tensor<i64>\n"
    '%y = ov.Range(%c, %b, %c) {output_type = "i64"} : (tensor<i64>, tensor<i64>, tensor<i64>) '
    "-> tensor<999999999999xi64>",
}


def folded(text: str) -> Model:
    kind = text.rpartition("-> ")[2]
    return Model.parse(
        f"func.func @main() -> ({kind}) {{\n%a = ov.Constant #ov.inline<i64 [0]> : "
        f"tensor<1x1xi64>\n{text}\nfunc.return %y : {kind}\n}}"
    )


@pytest.mark.parametrize("name", FOLDED)
def test_a_constant_of_absurd_size_is_not_folded(mutations: Any, name: str) -> None:
    model = folded(FOLDED[name])
    with mutations.limited():
        lower_graph(model, Options())
    left = "Broadcast" if name == "Tile" else name  # a pass replaces Tile by Broadcast
    assert any(op.name == f"ov.{left}" for op in model.body.ops)


def test_folding_limits_the_sum_of_all_constants(mutations: Any) -> None:
    """Each constant is below the limit of one op; their sum exceeds the limit."""
    kind = "tensor<1024x1024xi64>"
    lines = ["%b = ov.Constant #ov.inline<i64 [1024, 1024]> : tensor<2xi64>"]
    for i in range(300):
        lines.append(
            f'%y{i} = ov.Broadcast(%a, %b) {{mode = "numpy"}} : (tensor<1x1xi64>, tensor<2xi64>) '
            f"-> {kind}"
        )
    lines.append(f"%y = ov.Add(%y0, %y299) : ({kind}, {kind}) -> {kind}")
    with mutations.limited():
        lower_graph(folded("\n".join(lines)), Options())


def test_a_value_that_cannot_be_computed_names_the_op() -> None:
    text = (
        "%b = ov.Constant #ov.inline<i64 [7]> : tensor<i64>\n"
        "%c = ov.Constant #ov.inline<i64 [0]> : tensor<i64>\n"
        '%y = ov.Gather(%a, %b, %c) {ov.name = "far", batch_dims = 0 : i64} : '
        "(tensor<1x1xi64>, tensor<i64>, tensor<i64>) -> tensor<1xi64>"
    )
    with pytest.raises(UnsupportedModel, match=r"ov\.Gather 'far': its value cannot be computed"):
        lower_graph(folded(text), Options())


def test_an_invalid_shape_is_refused() -> None:
    for shape in ("-2", "1000000x1000000x1000000", "x".join(["1"] * 40)):
        with pytest.raises(CompilerUsageError, match="is not a shape"):
            lower_graph(folded(FOLDED["Tile"]), Options(shapes=f"a={shape}"))


def test_a_model_of_scalars_compiles() -> None:
    text = "%y = ov.Multiply(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>"
    model = Model.parse(
        f'func.func @main(%x: tensor<f32> {{ov.names = "x"}}) -> (tensor<f32>) {{\n{text}\n'
        "func.return %y : tensor<f32>\n}"
    )
    assert compile_model(model, Options())


@pytest.mark.long
def test_five_hundred_mutations_compile_or_raise_typed_errors(
    mutations: Any, tmp_path: Path
) -> None:
    draw = random.Random(2026)
    seed = mutations.seed_ir()
    outcomes = Counter(
        mutations.outcome_of_ir(mutations.mutate_ir(draw, seed), tmp_path) for _ in range(500)
    )
    # The mutations reach every stage; otherwise they are too mild or too strong to prove anything.
    assert min(outcomes[each] for each in ("compiled", "BadModel", "UnsupportedOps")) > 20


@pytest.mark.parametrize("path", sorted(CORPUS.glob("ir_*.json")), ids=lambda path: path.stem)
def test_findings_of_the_fuzzer_stay_fixed(mutations: Any, path: Path, tmp_path: Path) -> None:
    mutations.outcome_of_ir(mutations.unpacked(path.read_text()), tmp_path)


def test_long_messages_are_cut() -> None:
    assert len(str(BadModel("model.xml", "x" * 10**6))) < 3000
    assert len(str(CompilerError("x" * 10**6))) < 3000
