"""Which of a model's variables belong to adapters: openvino_genai says so by their names.

E.g. ``lora_state_16__module.model.layers.0.mlp.up_proj/aten::linear/MatMul.alpha``: a number that
tells products of one name apart, the product's name, and which of its three tensors it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from npuw_layer.backends.protocols import READ_PREFIX, TensorInfo
from npuw_layer.kinds.whisper.names import is_cross_variable
from npuw_layer.llm.names import slot_of
from npuw_layer.traits.linear_states.names import is_linear_cache

_STATE = re.compile(r"(lora_state.*MatMul)\.(A|alpha|B)", re.DOTALL)


class Part(Enum):
    """A tensor of an adapted product."""

    A = "A"
    """[rank, in]"""
    ALPHA = "alpha"
    """[1, rank]"""
    B = "B"
    """[out, rank]"""

    @property
    def rank_axis(self) -> int:
        """The axis that counts ranks."""
        return 0 if self is Part.A else 1


@dataclass(frozen=True, slots=True)
class AdapterName:
    """What a variable is to an adapter: a part of what is added to a product."""

    product: str
    part: Part


def adapter_name(variable: str) -> AdapterName | None:
    """Tell what a variable is to an adapter, by its id; None if it is none of an adapter's."""
    found = _STATE.fullmatch(variable)
    return None if found is None else AdapterName(found[1], Part(found[2]))


def is_adapter_input(info: TensorInfo) -> bool:
    """Whether an input of a static model is an adapter's, of whatever slot."""
    if not info.name.startswith(READ_PREFIX):
        return False
    variable, _ = slot_of(info.name.removeprefix(READ_PREFIX))
    return adapter_name(variable) is not None


def is_cache_input(info: TensorInfo) -> bool:
    """Whether an input of a static model is what it reads of a K or V cache that grows."""
    variable = info.name.removeprefix(READ_PREFIX)
    others = is_adapter_input(info) or is_cross_variable(variable) or is_linear_cache(variable)
    return info.name.startswith(READ_PREFIX) and not others


def adapter_inputs(models: Iterable[Iterable[TensorInfo]]) -> list[TensorInfo]:
    """The adapters' inputs of some static models, each once: the same in all that have it."""
    every = (info for inputs in models for info in inputs if is_adapter_input(info))
    return list({info.name: info for info in every}.values())
