"""States of a request that hold adapters.

They are named ``lora_state_<n><product>.A``, ``.alpha`` and ``.B``, as in openvino_genai.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from genai_layer.abilities import AdapterVariable, LowRank
from genai_layer.runtime import Array, VariableState

_NAME = re.compile(r"lora_state_\d+(?P<product>.+)\.(?P<part>A|alpha|B)", re.DOTALL)


class AdapterStates:
    """Adapter states of one request.

    Args:
        states: all states of the request.
    """

    def __init__(self, states: Iterable[VariableState]) -> None:
        every: dict[str, dict[str, AdapterVariable]] = {}
        for state in states:
            found = _NAME.fullmatch(state.name)
            if found is not None and isinstance(state, AdapterVariable):
                every.setdefault(found["product"], {})[found["part"]] = state
        self._states = {name: parts for name, parts in every.items() if parts.keys() == _OFF.keys()}

    def __bool__(self) -> bool:
        return bool(self._states)

    def products(self) -> dict[str, tuple[int, int]]:
        """Return the adapted matmuls, with their input and output widths."""
        return {
            name: (parts["A"].state.data.shape[1], parts["B"].state.data.shape[0])
            for name, parts in self._states.items()
        }

    def set(self, added: Mapping[str, LowRank]) -> None:
        """Set the adapters of all matmuls; those without one are switched off.

        Raises:
            RuntimeError: the runtime rejects the values, e.g. for their rank.
        """
        for product, parts in self._states.items():
            values = _tensors(added[product]) if product in added else _OFF
            for part, state in parts.items():
                state.state = values[part]

    def set_alphas(self, added: Mapping[str, LowRank]) -> None:
        """Set only the alphas of the current adapters.

        Raises:
            RuntimeError: the runtime rejects the values.
        """
        for product, low_rank in added.items():
            self._states[product]["alpha"].state = low_rank.alpha


_NOTHING: Array = np.empty((0, 0), np.float32)
_OFF: Mapping[str, Array] = {"A": _NOTHING, "alpha": _NOTHING, "B": _NOTHING}
"""An empty tensor adds nothing."""


def _tensors(added: LowRank) -> Mapping[str, Array]:
    return {"A": added.a, "alpha": added.alpha, "B": added.b}
