"""Reader of model files of any format into a stateful graph."""

from __future__ import annotations

from pathlib import Path

from compiler_layer.errors import CompilerError
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from npuw_layer.errors import ModelError


def read_model(path: Path) -> Model:
    """Read an IR, given by its ``.xml``, or a Hugging Face folder.

    Raises:
        ModelError: the files are broken, or have unsupported content.
    """
    try:
        return read_ir(path) if path.suffix == ".xml" else read_folder(path)
    except CompilerError as error:
        raise ModelError(str(error)) from error
