"""States of a conversation in device memory, and their values before the last run.

A run reads one buffer and writes another; the written one is copied when the run has ended, so a
run that fails changes nothing. A state cannot be cut as K and V can. Going back by a few tokens is
common (speculative decoding takes back rejected tokens), so the values before the last run are
kept. From there on a conversation reads its tokens anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import Arena, nbytes
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    Program,
    TensorInfo,
)
from npuw_layer.llm.trait import Part
from npuw_layer.traits.linear_states.variable_state import LinearVariableState

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation

_TORN = sys.maxsize
"""Of how many tokens states are while they are written: more than anybody goes back to."""


class LinearStates(Part):
    """States that layers without K and V keep of a conversation.

    Args:
        device: where they lie.
        inputs: of a static model, each variable once.
    """

    def __init__(self, device: Device, inputs: Sequence[TensorInfo]) -> None:
        self._names = [info.name.removeprefix(READ_PREFIX) for info in inputs]
        written = [
            replace(info, name=ASSIGN_PREFIX + name)
            for info, name in zip(inputs, self._names, strict=True)
        ]
        self._arena = Arena(device, [*inputs, *written])
        self._nbytes = 2 * sum(map(nbytes, inputs))
        self._before: tuple[int, dict[str, Array]] | None = None
        """Of how many tokens they were before the last run, and what."""
        self.tokens = 0
        """Of how many tokens they are."""
        self.forget()

    @property
    def nbytes(self) -> int:
        """Device memory that they take."""
        return self._nbytes

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program read them, and write new ones."""
        for info in ports:
            found = self._arena.tensors.get(info.name)
            if found is not None:
                program.bind(info.name, found.memory, found.offset)

    def advance(self, tokens: int) -> None:
        """Take what a run made of so many more tokens."""
        self._before = self.tokens, {name: self.read(name).copy() for name in self._names}
        before, self.tokens = self.tokens, _TORN
        for name in self._names:
            self.read(name)[...] = self._tensor(ASSIGN_PREFIX, name)
        self.tokens = before + tokens

    def rewind(self, tokens: int) -> None:
        """Go back to the first tokens, or further: ``tokens`` says to how many.

        Args:
            tokens: at most as many as there are.
        """
        if tokens >= self.tokens:
            return
        place, before = self.known(tokens), self._before
        if not place or before is None:
            self.forget()
            return
        self.tokens = _TORN
        for name, values in before[1].items():
            self.read(name)[...] = values
        self.tokens = place

    def known(self, tokens: int) -> int:
        """Return of how many tokens the states are if they go back to the first ones."""
        if tokens >= self.tokens:
            return self.tokens
        known = self._before is not None and self._before[0] <= tokens
        return self._before[0] if known and self._before else 0

    def forget(self) -> None:
        """Be of no tokens."""
        self.tokens = _TORN
        self._before = None
        for name in self._names:
            self.read(name)[...] = 0
        self.tokens = 0

    def hold(self, tokens: int) -> None:
        """Be of so many tokens that were stored from outside; their values are written apart."""
        self.tokens, self._before = tokens, None

    def tensors(self) -> Mapping[str, Array]:
        """Return the values of all variables; views."""
        return {name: self.read(name) for name in self._names}

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[LinearVariableState]:
        """Return the variables as a request shows them."""
        return [LinearVariableState(name, talk, check_idle, self) for name in self._names]

    def read(self, name: str) -> Array:
        """The values of a variable; a view."""
        return self._tensor(READ_PREFIX, name)

    def _tensor(self, prefix: str, name: str) -> Array:
        return self._arena[prefix + name]
