"""The states of a conversation, in device memory, and what they were before the last run.

A run reads one buffer and writes another, and what was written is copied when the run has ended: a
run that fails changes nothing. States cannot be cut as K and V can; but to go back by a few tokens
is common (who proposes tokens takes back those that are refused), so that one step back is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from npuw_layer.backends.arena import Arena, nbytes
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    Program,
    TensorInfo,
)

_TORN = sys.maxsize
"""Of how many tokens states are while they are written: more than anybody goes back to."""


class LinearStates:
    """What layers without K and V keep of a conversation; satisfies ``ProgramBuffers``.

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
        self._arena = Arena(device, [*inputs, *written]) if inputs else None
        self._nbytes = 2 * sum(map(nbytes, inputs))
        self._before: tuple[int, dict[str, Array]] | None = None
        """Of how many tokens they were before the last run, and what."""
        self.tokens = 0
        """Of how many tokens they are."""
        self.reset()

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        return self._names

    @property
    def nbytes(self) -> int:
        """Device memory that they take."""
        return self._nbytes

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program read them, and write new ones."""
        if self._arena is None:
            return
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
        place, before = self.place_of(tokens), self._before
        if not place or before is None:
            self.reset()
            return
        self.tokens = _TORN
        for name, values in before[1].items():
            self.read(name)[...] = values
        self.tokens = place

    def place_of(self, tokens: int) -> int:
        """Of how many tokens they would be if they went back to the first ones."""
        if not self._names or tokens >= self.tokens:
            return tokens
        known = self._before is not None and self._before[0] <= tokens
        return self._before[0] if known and self._before else 0

    def reset(self) -> None:
        """Be of no tokens."""
        self.tokens = _TORN
        self._before = None
        for name in self._names:
            self.read(name)[...] = 0
        self.tokens = 0

    def hold(self, tokens: int) -> None:
        """Be of so many tokens that were stored from outside; their values are written apart."""
        self.tokens, self._before = tokens, None

    def read(self, name: str) -> Array:
        """The values of a variable; a view."""
        return self._tensor(READ_PREFIX, name)

    def _tensor(self, prefix: str, name: str) -> Array:
        assert self._arena is not None  # else there are no names
        return self._arena[prefix + name]
