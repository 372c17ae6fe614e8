"""Weights of a checkpoint as values of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface.safetensors import StoredTensor


class Weights:
    """Source of weights by name; bytes and element types stay as stored in the files.

    Args:
        folder: the model's name in errors.
        stored: the locations of the tensors.
        g: the graph that receives the constants.
    """

    def __init__(self, folder: Path, stored: Mapping[str, StoredTensor], g: GraphBuilder) -> None:
        self._folder = folder
        self._stored = stored
        self._g = g

    def get(self, name: str, shape: Shape) -> SSAValue:
        """Return a weight as f32.

        Raises:
            BadModel: the weight is missing, has another shape, or is not of a float type.
        """
        found = self.find(name, shape)
        return self._g.weight(found.view, found.element, shape, name)

    def plus(self, name: str, shape: Shape, offset: float) -> SSAValue:
        """Return a small weight with a number added to it, held in the graph itself.

        Raises:
            BadModel: see ``get``.
        """
        found = self.find(name, shape)
        values = Constant.of_file(found.view, "f32", shape).load() + np.float32(offset)
        return self._g.add(Constant.inline(values), name).output

    def find(self, name: str, shape: Shape) -> StoredTensor:
        """Return the location of a weight.

        Raises:
            BadModel: see ``get``.
        """
        # Checkpoints of a model without its LM head omit the outermost module's name.
        found = self._stored.get(name) or self._stored.get(name.partition(".")[2])
        if found is None:
            raise BadModel(self._folder, "the checkpoint does not have this tensor", name)
        if found.shape != shape:
            raise BadModel(
                self._folder, f"is {list(found.shape)}, but the config needs {list(shape)}", name
            )
        if found.element not in ("f32", "f16", "bf16"):
            raise BadModel(self._folder, f"weights of {found.element} are not supported", name)
        return found
