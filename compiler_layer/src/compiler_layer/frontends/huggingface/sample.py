"""Sample of a model of any size: a layer or two, whose weights have shapes but no bytes.

All layers are equal, or of a few kinds. The sample has the model's first layer and one more of
each kind; a result for one of its layers holds for all layers that it represents. Only
``config.json`` is read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.types import Shape
from compiler_layer.elements import NUMPY, Array, stored_bytes
from compiler_layer.files import FileView
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families import read_decoder
from compiler_layer.frontends.huggingface.read import write_decoder
from compiler_layer.frontends.huggingface.safetensors import StoredTensor
from compiler_layer.frontends.huggingface.weights import Weights
from compiler_layer.model import Model


@dataclass(frozen=True, slots=True)
class ZeroView(FileView):
    """View of a file that does not exist; it reads as zeros."""

    @property
    def raw(self) -> memoryview:
        """Zeros of the view's size."""
        return memoryview(bytes(self.size))

    def check(self) -> None:
        """Accept every view: no bytes are needed."""

    def load(self, element: str, shape: tuple[int, ...]) -> Array:
        """Return zeros of any type; the system allocates memory when they are accessed."""
        return np.zeros(shape, NUMPY[element])


@dataclass(slots=True)
class PlaceholderAllocator:
    """Consecutive locations of weights that do not exist."""

    end: int = field(default=0)

    def place(self, element: str, shape: Shape) -> FileView:
        """Return the next location for elements of a type."""
        size = stored_bytes(element, math.prod(shape))
        begin, self.end = self.end, self.end + size
        return ZeroView("nowhere", begin, size, element)


class _Shapes(Weights):
    """Source of weights that has every requested one, in f16."""

    def __init__(self, source: Path, g: GraphBuilder, nowhere: PlaceholderAllocator) -> None:
        super().__init__(source, {}, g)
        self._nowhere = nowhere

    def find(self, name: str, shape: Shape) -> StoredTensor:
        """Return a new location."""
        del name
        return StoredTensor("f16", shape, self._nowhere.place("f16", shape))


@dataclass(frozen=True, slots=True)
class Sample:
    """Model with representatives of the real model's layers."""

    model: Model
    """Stateful, as the frontend writes it."""
    decoder: Decoder
    """Decoder of the complete real model."""
    counts: tuple[int, ...]
    """Number of real layers that each layer of the sample represents."""
    nowhere: PlaceholderAllocator
    """Allocator of locations for further weights."""

    def layer_of(self, name: str) -> int | None:
        """Return the layer of the sample that a module belongs to, by the name of a weight.

        Returns:
            The layer's number; the number of layers for modules after them; None for those before.
        """
        names = self.decoder.names
        found = re.match(re.escape(names.layer).replace(r"\{\}", r"(\d+)") + r"\.", name)
        if found:
            return int(found[1])
        return len(self.counts) if name.startswith((f"{names.norm}.", f"{names.head}.")) else None


def read_sample(config: Path) -> Sample:
    """Build the sample of a model.

    Args:
        config: a ``config.json``.

    Raises:
        BadModel: the file is missing or not JSON, or a value is missing or wrong.
        UnsupportedModel: the family, or a variation of one, is not supported.
    """
    decoder = read_decoder(config)
    kinds = Counter(decoder.layers)
    first = decoder.layers[0]
    kinds[first] -= 1
    others = [kind for kind, count in kinds.items() if count]
    counts = (1, *(kinds[kind] for kind in others))
    small = replace(decoder, layers=(first, *others))
    nowhere = PlaceholderAllocator()
    return Sample(write_shapes(small, nowhere, config), decoder, counts, nowhere)


def write_shapes(decoder: Decoder, nowhere: PlaceholderAllocator, source: Path) -> Model:
    """Write a decoder as a stateful graph whose weights have shapes only.

    Args:
        decoder: the description of the model.
        nowhere: the allocator of the weights' locations.
        source: the model's name in errors.
    """
    return write_decoder(decoder, lambda g: _Shapes(source, g, nowhere), source)
