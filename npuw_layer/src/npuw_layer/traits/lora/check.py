"""Options that adapters rule out."""

from __future__ import annotations

from collections.abc import Iterable

from npuw_layer.errors import ModelError
from npuw_layer.traits.lora.names import adapter_name


def check_head_adapters(variables: Iterable[str], conversations: int) -> None:
    """Check that the head of several conversations has no adapters.

    Args:
        variables: of the LM head.
        conversations: how many there are at once.

    Raises:
        ModelError: it would need each conversation's.
    """
    if conversations > 1 and any(adapter_name(name) for name in variables):
        raise ModelError(
            "for several conversations at once: the LM head has an adapter, and would need each "
            "conversation's; set NPUW_LLM_SHARED_HEAD = NO, or NPUW_LLM_BATCH_SLOTS = 1"
        )
