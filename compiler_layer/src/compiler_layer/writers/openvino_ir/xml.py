"""Writer of layers and edges as the XML of an IR.

Source: OpenVINO IR version 11, as openvino.save_model writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO
from xml.sax.saxutils import escape

from compiler_layer.errors import CompilerUsageError
from compiler_layer.writers.openvino_ir.layers import LayerList, WrittenLayer, WrittenPort

_PRECISIONS = {"f64": "FP64", "f32": "FP32", "f16": "FP16", "bf16": "BF16", "boolean": "BOOL"}
"""Names of element types in ports; integers are in capitals."""

_ENDS = ("from-layer", "from-port", "to-layer", "to-port")

_DECOMPRESSION = (
    "\t\t\t<rt_info>",
    '\t\t\t\t<attribute name="decompression" version="0" />',
    "\t\t\t</rt_info>",
)


def write_xml(file: TextIO, graph: LayerList, runtime_options: Mapping[str, str]) -> None:
    """Write a complete document, with runtime options for OpenVINO.

    Raises:
        CompilerUsageError: a name has characters that XML cannot represent.
        OSError: the file cannot be written.
    """
    file.writelines(f"{line}\n" for line in _document(graph, runtime_options))


def _document(graph: LayerList, runtime_options: Mapping[str, str]) -> Iterator[str]:
    yield '<?xml version="1.0"?>'
    yield '<net name="Model0" version="11">'
    yield "\t<layers>"
    for number, layer in enumerate(graph.layers):
        yield from _layer(number, layer)
    yield "\t</layers>"
    yield "\t<edges>"
    for source, target in graph.edges:
        ends = zip(_ENDS, (*source, *target), strict=True)
        yield f"\t\t<edge{_attributes(dict(ends))} />"
    yield "\t</edges>"
    yield "\t<rt_info>"
    yield "\t\t<runtime_options>"
    for name, value in runtime_options.items():
        yield f"\t\t\t<{name}{_attributes({'value': value})} />"
    yield "\t\t</runtime_options>"
    yield "\t</rt_info>"
    yield "</net>"


def _layer(number: int, layer: WrittenLayer) -> Iterator[str]:
    head: dict[str, object] = {
        "id": number,
        "name": layer.name,
        "type": layer.type,
        "version": layer.version,
    }
    if layer.output_names:
        head["output_names"] = _names(layer.output_names)
    yield f"\t\t<layer{_attributes(head)}>"
    if layer.data:
        yield f"\t\t\t<data{_attributes(layer.data)} />"
    if layer.decompresses:
        yield from _DECOMPRESSION
    yield from _ports("input", 0, layer.inputs)
    yield from _ports("output", len(layer.inputs), layer.outputs)
    yield "\t\t</layer>"


def _ports(section: str, first: int, ports: Sequence[WrittenPort]) -> Iterator[str]:
    if not ports:
        return
    yield f"\t\t\t<{section}>"
    for number, port in enumerate(ports, first):
        precision = _PRECISIONS.get(port.element, port.element.upper())
        head: dict[str, object] = {"id": number, "precision": precision}
        if port.names:
            head["names"] = _names(port.names)
        if port.shape:
            yield f"\t\t\t\t<port{_attributes(head)}>"
            yield from (f"\t\t\t\t\t<dim>{d}</dim>" for d in port.shape)
            yield "\t\t\t\t</port>"
        else:
            yield f"\t\t\t\t<port{_attributes(head)} />"
    yield f"\t\t\t</{section}>"


def _names(names: Sequence[str]) -> str:
    """Join tensor names; a comma in a name is escaped, as in OpenVINO."""
    return ",".join(name.replace(",", "\\,") for name in names)


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f' {name}="{_text(str(value))}"' for name, value in values.items())


def _text(text: str) -> str:
    if not text.isprintable():
        raise CompilerUsageError(f"names in an IR must be printable, unlike {text!r}; rename them")
    return escape(text, {'"': "&quot;"})
