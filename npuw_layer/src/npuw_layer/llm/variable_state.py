"""A conversation's cache as OpenVINO shows it: one variable for each K and V."""

from __future__ import annotations

import numpy as np

from npuw_layer.llm.kv_cache import KVCache
from npuw_layer.tensor import Tensor


class VariableState:
    """One variable of a request.

    Args:
        name: its id in the model.
        cache: the conversation's K and V.
    """

    def __init__(self, name: str, cache: KVCache) -> None:
        self._name = name
        self._cache = cache

    @property
    def name(self) -> str:
        """The variable's id, as in ReadValue and Assign."""
        return self._name

    @property
    def state(self) -> Tensor:
        """The stored rows as the model sees them, [1, heads, tokens, channels]; a copy."""
        return Tensor(np.ascontiguousarray(self._cache.rows(self._name).transpose(1, 0, 2))[None])

    def reset(self) -> None:
        """Begin a new conversation.

        The variables of a language model are its one cache: resetting one resets them all.
        """
        self._cache.reset()
