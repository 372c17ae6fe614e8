"""A device that runs attention on the host, over the current number of stored rows (DYNAMIC)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.model import Model
from compiler_layer.rewriting.replace import replace
from npuw_layer.backends.interpreter import GraphProgram, InterpreterDevice, LoadedGraph
from npuw_layer.backends.protocols import SUBMODEL, Device, LoadedModel
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.devices.report import Placement
from npuw_layer.execution.host_attention.masks import additive, live_positions
from npuw_layer.execution.host_attention.pattern import find_attention
from npuw_layer.execution.host_attention.shapes import CachedAttention

_log = logging.getLogger(__name__)

_OPEN = -1
"""Dimension that varies between runs."""


class DynamicAttentionDevice(DeviceDecorator):
    """A device for models that consist of a single attention.

    They are interpreted, because programs have no dynamic shapes. Models without an attention over
    a token-major cache are interpreted unchanged.

    Args:
        device: device that owns the memory.
    """

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._host = InterpreterDevice()

    @property
    def version(self) -> str:
        """Version of the interpreter."""
        return f"{self._host.version} dynamic"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Return the graph as text.

        Raises:
            ModelError: the graph is not valid.
        """
        if find_attention(model) is None:
            _log.warning(
                "%s: attention to all rows of a cache, as its ops have no known pattern",
                config.get(SUBMODEL, "a model"),
            )
        return self._host.compile(model, config)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Read a graph.

        Raises:
            DeviceError: the bytes are not a graph.
        """
        model = self._host.load(program).model
        attention = find_attention(model)
        return LoadedWhole(model) if attention is None else LoadedDynamic(model, attention)

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return none: attentions have no weights; see ``protocols.FindsConstants``."""
        return ()


_PLACEMENT = Placement(submodel="attention", device="CPU", notes=())
"""Placement, with the interpreter's name in NPUW_DEVICES; see ``execution.devices.placed``."""


class LoadedWhole(LoadedGraph):
    """A model without attention over a cache."""

    placement = _PLACEMENT


class LoadedDynamic(LoadedWhole):
    """An attention with a dynamic number of stored rows; satisfies ``protocols.LoadedModel``.

    Args:
        whole: the graph with the largest number of stored rows.
        attention: names and sizes of the attention.
    """

    def __init__(self, whole: Model, attention: CachedAttention) -> None:
        super().__init__(whole)
        self.attention = attention
        self.graph = _opened(whole, attention)
        self.rows = 0
        """Stored rows attended to so far, in all runs."""

    def create_program(self) -> DynamicProgram:
        """Create a runnable program."""
        return DynamicProgram(self)


class DynamicProgram(GraphProgram):
    """One user of such an attention; satisfies ``protocols.Program``.

    Args:
        loaded: the attention.
    """

    def __init__(self, loaded: LoadedDynamic) -> None:
        super().__init__(loaded.graph, loaded.inputs, loaded.outputs)
        self._loaded = loaded

    def prepare(self) -> None:
        """Check that all tensors are bound.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._tensors.check_bound()

    def run(self) -> None:
        """Attend to the stored rows up to the last visible one, and to the new rows.

        Raises:
            DeviceError: a tensor is not bound, or an op fails.
        """
        self.prepare()
        attention, tensors = self._loaded.attention, self._tensors
        mask, past = tensors[attention.mask], attention.shape.past
        live = live_positions(additive(mask[..., :past], attention.shape.mask_element))
        inputs = {info.name: tensors[info.name] for info in self._inputs}
        rows = [max(0, min(live - begin, n)) for begin, n in _placed(attention.parts)]
        inputs |= {name: tensors[name][:, : rows[n]] for name, n in attention.stored.items()}
        inputs[attention.mask] = np.concatenate([mask[..., :live], mask[..., past:]], -1)
        self._evaluate(inputs)
        self._loaded.rows += live


def _placed(parts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the number of rows of each part of a cache."""
    return zip(accumulate((0, *parts)), parts, strict=False)


def _opened(model: Model, attention: CachedAttention) -> Model:
    """Return a graph that accepts any number of stored rows."""
    opened = model.clone()
    infos = {info.name: info.shape for info in attention.inputs}
    shapes = {name: (1, _OPEN, *infos[name][2:]) for name in attention.stored}
    opened.set_input_shapes({**shapes, attention.mask: (*infos[attention.mask][:-1], _OPEN)})
    for op in opened.ops:
        if isinstance(op, Reshape):  # used for a single head's rows; a Transpose fits any number
            order = GraphBuilder(opened, op).ints(0, 2, 1, 3)
            replace(op, Transpose.make([op.x, order]))
    return opened
