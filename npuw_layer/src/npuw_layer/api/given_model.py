"""Models as callers give them: paths, or text and weights in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from driver_layer.support.files import looking_at
from npuw_layer.errors import ModelError
from npuw_layer.remote.tensor import AnyTensor, as_tensor, values_of
from npuw_layer.storage.memory_model import MemoryModel


def memory_model(text: object, weights: AnyTensor) -> MemoryModel:
    """Return a model in memory; see ``Core.read_model``."""
    if not isinstance(text, str | bytes):
        raise ModelError(
            f"read_model: {type(text).__name__} is not the text of a model; pass the content of "
            "its .xml, or its path to compile_model"
        )
    try:
        content = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise ModelError(f"read_model: {error}; pass the text as bytes") from None
    return MemoryModel(content, values_of(as_tensor(weights)))


def model_path(model: object) -> Path:
    """Return the path of a model; for a folder with an IR, that of the IR.

    Raises:
        ModelError: the value is no model, or the path does not exist.
    """
    if isinstance(model, MemoryModel):
        return model.path
    if not isinstance(model, str | os.PathLike):
        raise ModelError(
            f"{model!r} is not a path; pass the model's IR or folder, or read_model(text, weights)"
        )
    path = Path(cast("str | os.PathLike[str]", model))
    with looking_at(path, ModelError):
        if not path.exists():
            raise ModelError(f"{path}: no such file or folder")
        ir = path / "openvino_model.xml"
        return ir if path.is_dir() and ir.is_file() else path
