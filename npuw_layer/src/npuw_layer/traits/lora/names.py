"""Variables of adapters by openvino_genai's names.

E.g. ``lora_state_16__module.model.layers.0.mlp.up_proj/aten::linear/MatMul.alpha``: a number that
distinguishes matmuls of one name, the matmul's name, and one of its three tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from npuw_layer.errors import ModelError
from npuw_layer.tensors.names import slot_of

_STATE = re.compile(r"(lora_state.*MatMul)\.(A|alpha|B)", re.DOTALL)


class AdapterTensor(Enum):
    """A tensor of an adapted matmul."""

    A = "A"
    """[rank, in]"""
    ALPHA = "alpha"
    """[1, rank]"""
    B = "B"
    """[out, rank]"""

    @property
    def rank_axis(self) -> int:
        """Axis of the rank."""
        return 0 if self is AdapterTensor.A else 1


@dataclass(frozen=True, slots=True)
class AdapterName:
    """Role of a variable in an adapter: a part of the adapter of a matmul."""

    product: str
    part: AdapterTensor


def adapter_name(variable: str) -> AdapterName | None:
    """Return a variable's role in an adapter, by its id; None if it is not an adapter's."""
    found = _STATE.fullmatch(variable)
    return None if found is None else AdapterName(found[1], AdapterTensor(found[2]))


def is_adapter_variable(name: str) -> bool:
    """Return whether a variable is an adapter's, in any slot."""
    variable, _ = slot_of(name)
    return adapter_name(variable) is not None


def check_head_adapters(variables: Iterable[str], conversations: int) -> None:
    """Check that the LM head of several conversations has no adapters.

    Args:
        variables: variables of the LM head.
        conversations: number of conversations in a batch.

    Raises:
        ModelError: the head would need the adapter of each conversation.
    """
    if conversations > 1 and any(adapter_name(name) for name in variables):
        raise ModelError(
            "for several conversations in one batch the LM head would need the adapter of each "
            "conversation; set NPUW_LLM_SHARED_HEAD = NO, or NPUW_LLM_BATCH_SLOTS = 1"
        )
