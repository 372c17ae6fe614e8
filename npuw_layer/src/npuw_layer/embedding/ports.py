"""Inputs and outputs of a model that reads texts, with the dimensions that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.embedding.names import HIDDEN
from npuw_layer.embedding.reading import reads_in_chunks
from npuw_layer.errors import TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.names import EMBED, IDS, LOGITS, MASK, POSITIONS, TOKEN_TYPES
from npuw_layer.ports import TensorInfo

_TEXT_INPUTS = (IDS, MASK, TOKEN_TYPES, POSITIONS)

OPEN = -1
"""A dimension that inferences may choose."""


@dataclass(frozen=True, slots=True)
class TextPort:
    """An input or output of a model that reads texts."""

    any_name: str
    element_type: str
    """By OpenVINO's name."""
    partial_shape: tuple[int, ...]
    """``OPEN`` where texts decide: how many there are, and how many tokens the longest has."""
    index: int
    """Its number among the inputs, or the outputs."""

    @property
    def names(self) -> set[str]:
        """Its names; there is one."""
        return {self.any_name}

    def get_any_name(self) -> str:
        """Its name."""
        return self.any_name

    def get_names(self) -> set[str]:
        """Its names; there is one."""
        return self.names

    def get_element_type(self) -> str:
        """Its element type."""
        return self.element_type

    def get_partial_shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.partial_shape


def inputs_of(compiled: CompiledLLM) -> list[TextPort]:
    """The inputs, as exported models have them.

    An embedding model that is read in chunks takes position_ids, too, though it may not have had
    them; then they need not be set.
    """
    stage = compiled.plan.prefill[0]
    taken = {info.name for info in compiled.models[stage].inputs}
    if compiled.options.text_embed and reads_in_chunks(compiled):
        taken -= {POSITIONS}
    shown = [name for name in _TEXT_INPUTS if name in taken]
    return [TextPort(name, "i64", (OPEN, OPEN), index) for index, name in enumerate(shown)]


def takes(compiled: CompiledLLM, name: str) -> bool:
    """Whether an input of that name may be set; beam_idx of a language model is ignored."""
    stage = compiled.plan.prefill[0]
    return name in _TEXT_INPUTS and any(info.name == name for info in compiled.models[stage].inputs)


def outputs_of(compiled: CompiledLLM) -> list[TextPort]:
    """The outputs, by the names that the model gives them."""
    stage = compiled.plan.prefill[0]
    outputs = compiled.models[stage].outputs
    if not reads_in_chunks(compiled):
        return [
            TextPort(info.name, info.element, _opened(info, stage.tokens), index)
            for index, info in enumerate(outputs)
        ]
    if compiled.options.text_embed:
        width = _of_name(outputs, EMBED).shape[-1]
        return [TextPort(HIDDEN, "f32", (OPEN, OPEN, width), 0)]
    heads = compiled.plan.own_heads
    made = compiled.models[heads[0]].outputs if heads else outputs
    return [TextPort(LOGITS, "f32", (OPEN, 1, _of_name(made, LOGITS).shape[-1]), 0)]


def find(ports: Sequence[TextPort], key: str | int | TextPort | None, side: str) -> TextPort:
    """Find a port by its name, its number, or as itself; the only one if nothing is said.

    Raises:
        TensorError: there is none, or there are several.
    """
    if key is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; say which by name or number")
    for port in ports:
        if (
            key is None
            or key == (port.index if isinstance(key, int) else port.any_name)
            or key == port
        ):
            return port
    known = ", ".join(f"{port.index}: {port.any_name!r}" for port in ports)
    raise TensorError(f"no {side} {key!r}; there are {known}")


def _opened(info: TensorInfo, tokens: int) -> tuple[int, ...]:
    of_tokens = len(info.shape) > 2 and info.shape[1] == tokens
    return (OPEN, OPEN, *info.shape[2:]) if of_tokens else (OPEN, *info.shape[1:])


def _of_name(infos: Sequence[TensorInfo], name: str) -> TensorInfo:
    return next(info for info in infos if info.name == name)
