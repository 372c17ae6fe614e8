"""Inputs and outputs of a model that reads texts, with open dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.reading import reads_in_chunks
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.tensors.names import EMBED, IDS, LAST_HIDDEN_STATE, LOGITS, MASK, POSITIONS
from npuw_layer.traits.images.names import TOKEN_TYPES

_TEXT_INPUTS = (IDS, MASK, TOKEN_TYPES, POSITIONS)


def inputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """Return the inputs of the exported model.

    An embedding model that is read in chunks takes position_ids even if the exported model does
    not; setting them is optional, so they are not listed.
    """
    stage = compiled.plan.prefill[0]
    taken = {info.name for info in compiled.models[stage].inputs}
    if compiled.options.group(TextOptions).text_embed and reads_in_chunks(compiled):
        taken -= {POSITIONS}
    shown = [name for name in _TEXT_INPUTS if name in taken]
    return [OpenPort(name, "i64", index, (OPEN, OPEN)) for index, name in enumerate(shown)]


def takes(compiled: CompiledLLM, name: str) -> bool:
    """Return whether an input can be set; beam_idx of a language model is ignored."""
    stage = compiled.plan.prefill[0]
    return name in _TEXT_INPUTS and any(info.name == name for info in compiled.models[stage].inputs)


def outputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """Return the outputs, by their names in the model."""
    stage = compiled.plan.prefill[0]
    outputs = compiled.models[stage].outputs
    if not reads_in_chunks(compiled):
        return [
            OpenPort(info.name, info.element, index, _opened(info, stage.tokens))
            for index, info in enumerate(outputs)
        ]
    if compiled.options.group(TextOptions).text_embed:
        width = _of_name(outputs, EMBED).shape[-1]
        return [OpenPort(LAST_HIDDEN_STATE, "f32", 0, (OPEN, OPEN, width))]
    heads = compiled.plan.own_heads
    made = compiled.models[heads[0]].outputs if heads else outputs
    return [OpenPort(LOGITS, "f32", 0, (OPEN, 1, _of_name(made, LOGITS).shape[-1]))]


def _opened(info: TensorInfo, tokens: int) -> tuple[int, ...]:
    of_tokens = len(info.shape) > 2 and info.shape[1] == tokens
    return (OPEN, OPEN, *info.shape[2:]) if of_tokens else (OPEN, *info.shape[1:])


def _of_name(infos: Sequence[TensorInfo], name: str) -> TensorInfo:
    return next(info for info in infos if info.name == name)
