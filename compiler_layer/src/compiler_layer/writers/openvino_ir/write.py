"""Writer of a model of the ``ov`` dialect as an IR that OpenVINO loads."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO, StringIO
from pathlib import Path

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.writers.files import scratch_folder, writing
from compiler_layer.writers.openvino_ir.layers import LayerList, check_layers
from compiler_layer.writers.openvino_ir.weights import Advance, WeightsWriter
from compiler_layer.writers.openvino_ir.xml import write_xml


def write_ir(
    model: Model,
    path: str | Path,
    advance: Advance | None = None,
    runtime_options: Mapping[str, str] | None = None,
) -> None:
    """Write a model as an OpenVINO IR.

    A reader never sees a partial file, nor a new file next to an old one: the old XML is removed
    first, and the new one is put into place last.

    Args:
        model: has OpenVINO's ops only; not changed.
        path: the ``.xml``; the weights are written to the ``.bin`` of the same name.
        advance: called with bytes of constants as they are done; ``weight_bytes`` in total.
        runtime_options: OpenVINO properties by name, stored in the IR as defaults for properties
            that the user does not set.

    Raises:
        UnsupportedOps: the model has ops that are not OpenVINO's.
        CompilerUsageError: a file cannot be written, or the model is read from it.
        BadModel: a file with constants cannot be read.
    """
    xml = Path(path)
    weights = xml.with_suffix(".bin")
    check_layers(model, xml)
    _check_sources(model, weights)
    with scratch_folder(xml) as scratch:
        new_xml, new_weights = scratch / xml.name, scratch / weights.name
        with writing(xml):
            with new_weights.open("wb") as data:
                graph = LayerList(model, WeightsWriter(data, advance or (lambda done: None)))
            with new_xml.open("w", encoding="utf-8") as text:
                write_xml(text, graph, runtime_options or {})
            xml.unlink(missing_ok=True)
            new_weights.replace(weights)
            new_xml.replace(xml)


def ir_bytes(model: Model) -> tuple[bytes, bytes]:
    """Return the output of ``write_ir``, XML and weights, in memory.

    Raises:
        UnsupportedOps: the model has ops that are not OpenVINO's.
        BadModel: a file with constants cannot be read.
    """
    check_layers(model, "the graph")
    data, text = BytesIO(), StringIO()
    graph = LayerList(model, WeightsWriter(data, lambda done: None))
    write_xml(text, graph, {})
    return text.getvalue().encode(), data.getvalue()


def weight_bytes(model: Model) -> int:
    """Return the total number of bytes of a model's constants."""
    return sum(op.nbytes for op in model.body.ops if isinstance(op, Constant))


def _check_sources(model: Model, weights: Path) -> None:
    """Check that no constant is stored in the file to be replaced."""
    constants = [op.value for op in model.body.ops if isinstance(op, Constant)]
    files = {value.data.path for value in constants if isinstance(value, FileAttr)}
    if weights.resolve() in {Path(file).resolve() for file in files}:
        raise CompilerUsageError(f"{weights}: the model is read from it; choose another path")
