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
    """Gives weights by their names; they stay in their files, in the type they are stored in.

    Args:
        folder: stands in errors.
        stored: where the tensors lie.
        g: where constants go.
    """

    def __init__(self, folder: Path, stored: Mapping[str, StoredTensor], g: GraphBuilder) -> None:
        self._folder = folder
        self._stored = stored
        self._g = g

    def get(self, name: str, shape: Shape) -> SSAValue:
        """Give a weight as f32.

        Raises:
            BadModel: it is missing, of another shape, or no floats.
        """
        found = self.find(name, shape)
        return self._g.weight(found.view, found.element, shape, name)

    def plus(self, name: str, shape: Shape, offset: float) -> SSAValue:
        """Give a small weight with a number added to it, held in the graph itself.

        Raises:
            BadModel: as ``get``.
        """
        found = self.find(name, shape)
        values = Constant.of_file(found.view, "f32", shape).load() + np.float32(offset)
        return self._g.add(Constant.inline(values), name).output

    def find(self, name: str, shape: Shape) -> StoredTensor:
        """Say where a weight lies.

        Raises:
            BadModel: as ``get``.
        """
        # Checkpoints of a model without its head lack the outermost module's name.
        found = self._stored.get(name) or self._stored.get(name.partition(".")[2])
        if found is None:
            raise BadModel(self._folder, "the checkpoint has no such tensor", name)
        if found.shape != shape:
            raise BadModel(
                self._folder, f"is {list(found.shape)}, the config says {list(shape)}", name
            )
        if found.element not in ("f32", "f16", "bf16"):
            raise BadModel(self._folder, f"weights of {found.element} are not supported", name)
        return found
