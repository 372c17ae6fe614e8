"""Tokenizer models are untrusted: whatever is broken is a ModelError."""

from __future__ import annotations

import contextlib
import random
import re
from typing import Any

import pytest

from genai_layer.errors import ModelError
from genai_layer.openvino_tokenizer.graph import Graph

CONSTANT = '<data element_type="i32" shape="2" offset="0" size="8"/>'


def graph(data: str = CONSTANT, weights: bytes = bytes(8)) -> Graph:
    """Return a graph of one op with one constant."""
    return Graph(
        f"""<net version="11"><layers>
        <layer id="0" name="c" type="Const">{data}</layer>
        <layer id="1" name="op" type="Op"><input><port id="0"/><port id="1"/></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
        """,
        weights,
        "file.xml",
    )


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("", "is not an OpenVINO IR: no element found"),
        ("<net>", "is not an OpenVINO IR"),
        ('<net><layers><layer id="0" name="a"/></layers></net>', "attribute 'type' is missing"),
        ('<!DOCTYPE n [<!ENTITY a "b">]><n>&a;</n>', "document type declaration is not allowed"),
        ("<net>" + "<a>" * 5000, "nested too deeply"),
        ("<net><layers>" + '<layer id="0" name="a" type="b"/>' * 2 + "</layers></net>", "same id"),
    ],
)
def test_what_is_no_ir_is_rejected(xml: str, message: str) -> None:
    with pytest.raises(ModelError, match=f"file.xml: .*{message}"):
        Graph(xml, b"", "file.xml")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (CONSTANT.replace('offset="0"', 'offset="1"'), "lies outside of the weights"),
        (CONSTANT.replace('offset="0"', 'offset="-1"'), "has a wrong size"),
        (CONSTANT.replace('shape="2"', 'shape="3"'), "has a wrong size"),
        (CONSTANT.replace('shape="2"', f'shape="{1 << 62},{1 << 62}"'), "has a wrong size"),
        (CONSTANT.replace('shape="2"', 'shape="two"'), "is not supported"),
        (CONSTANT.replace('shape="2"', ""), "is not supported: 'shape'"),
        (CONSTANT.replace("i32", "i4"), "is not supported: 'i4'"),
    ],
)
def test_a_broken_constant_is_rejected(data: str, message: str) -> None:
    broken = graph(data)
    with pytest.raises(ModelError, match=f"file.xml: constant c {message}"):
        broken.array(broken.nodes["1"], 0)


def test_an_input_without_source_is_rejected() -> None:
    found = graph()
    with pytest.raises(ModelError, match="input 1 of op is not connected"):
        found.array(found.nodes["1"], 1)
    with pytest.raises(ModelError, match="input 2 is missing"):
        found.array(found.nodes["1"], 2)


@pytest.mark.parametrize("name", ["demo", "mistral", "bert", "unigram"])
def test_a_damaged_model_is_read_or_rejected(golden: Any, name: str) -> None:
    """Drop, repeat or change parts of the XML and of the weights; nothing else may be raised."""
    draw = random.Random(name)
    for _ in range(60):
        models = golden(name)
        for file, data in models.files.items():
            if file.endswith("xml"):
                models.files[file] = changed(data.decode(), draw).encode()
            elif draw.random() < 0.5:
                place = draw.randrange(len(data))
                end = place + draw.randint(0, 8)
                models.files[file] = data[:place] + draw.randbytes(4) + data[end:]
        with contextlib.suppress(ModelError):
            models.read().tokenizer.encode("Hello, wörld <s> 12")


def changed(xml: str, draw: random.Random) -> str:
    """Change a number or a word of an attribute, or drop a line."""
    if draw.random() < 0.3:
        lines = xml.splitlines()
        del lines[draw.randrange(len(lines))]
        return "\n".join(lines)
    values = list(re.finditer(r'"(-?\d+|true|false)"', xml))
    value = draw.choice(values)
    new = draw.choice(["0", "1", "-1", "7", "true", "false", "99999999999", "x", ""])
    return f'{xml[: value.start()]}"{new}"{xml[value.end() :]}'
