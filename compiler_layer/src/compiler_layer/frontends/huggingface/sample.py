"""A stand-in for a model of any size: a layer or two, with weights that exist as shapes only.

Layers are alike, or of a few kinds. The sample has the model's first layer and one more of each
kind; what is found out about one of its layers holds for all that it stands for. Nothing but
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
class NoBytes(FileView):
    """A view of a file that is not there: it reads as zeros."""

    @property
    def raw(self) -> memoryview:
        """Zeros."""
        return memoryview(bytes(self.size))

    def check(self) -> None:
        """There is nothing to be missing."""

    def load(self, element: str, shape: tuple[int, ...]) -> Array:
        """Zeros of any type; the system gives memory for them when they are touched."""
        return np.zeros(shape, NUMPY[element])


@dataclass(slots=True)
class Nowhere:
    """Places of weights that do not exist, one behind the other."""

    end: int = field(default=0)

    def place(self, element: str, shape: Shape) -> FileView:
        """Give the next place for elements of a type."""
        size = stored_bytes(element, math.prod(shape))
        begin, self.end = self.end, self.end + size
        return NoBytes("nowhere", begin, size, element)


class _Shapes(Weights):
    """Gives every weight that is asked for, in f16."""

    def __init__(self, source: Path, g: GraphBuilder, nowhere: Nowhere) -> None:
        super().__init__(source, {}, g)
        self._nowhere = nowhere

    def find(self, name: str, shape: Shape) -> StoredTensor:
        """Make up a place."""
        del name
        return StoredTensor("f16", shape, self._nowhere.place("f16", shape))


@dataclass(frozen=True, slots=True)
class Sample:
    """A model's stand-in."""

    model: Model
    """Stateful, as the frontend writes it."""
    decoder: Decoder
    """All of the real model."""
    counts: tuple[int, ...]
    """How many of the real layers each of the sample's layers stands for."""
    nowhere: Nowhere
    """Where more weights may be placed."""

    def layer_of(self, name: str) -> int | None:
        """Which layer of the sample a module belongs to, by the name of a weight.

        Returns:
            The layer's number; that of layers if it comes behind them; None for what is before.
        """
        names = self.decoder.names
        found = re.match(re.escape(names.layer).replace(r"\{\}", r"(\d+)") + r"\.", name)
        if found:
            return int(found[1])
        return len(self.counts) if name.startswith((f"{names.norm}.", f"{names.head}.")) else None


def read_sample(config: Path) -> Sample:
    """Make the sample of a model.

    Args:
        config: a ``config.json``.

    Raises:
        BadModel: it is missing, no JSON, or a value is missing or wrong.
        UnsupportedModel: another family, or a variation that is not understood.
    """
    decoder = read_decoder(config)
    kinds = Counter(decoder.layers)
    first = decoder.layers[0]
    kinds[first] -= 1
    others = [kind for kind, count in kinds.items() if count]
    counts = (1, *(kinds[kind] for kind in others))
    small = replace(decoder, layers=(first, *others))
    nowhere = Nowhere()
    return Sample(write_shapes(small, nowhere, config), decoder, counts, nowhere)


def write_shapes(decoder: Decoder, nowhere: Nowhere, source: Path) -> Model:
    """Write a decoder as a stateful graph whose weights are shapes alone.

    Args:
        decoder: what it consists of.
        nowhere: where its weights are placed.
        source: stands in errors.
    """
    return write_decoder(decoder, lambda g: _Shapes(source, g, nowhere), source)
