"""Tokens that a request has stored, after which the next prompt continues.

A prompt is compared with the stored tokens. The request rewinds to where the two part, and reads
what follows. Tokens count as stored once their inference has returned: during an inference, and
after one that failed or was interrupted, none are known, and the next prompt is read from the
start.

Tokens are compared by identities: ids, or negative numbers where a prompt has an image or a video.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property

from genai_layer.generation_config import UNSET
from genai_layer.npu import OnFull, StaticLengths, property_of
from genai_layer.runtime import CONTINUES, CompiledModel, InferRequest

_DEARER = 4
"""Tokens to read for each shared one, up to which continuing is not slower than a fresh prompt.

A program that reads after stored tokens attends to as many as it was compiled for. CPU time of
SmolLM2's first token: 60 tokens after 4 / 16 shared ones 246 / 240 ms, read whole 178 / 253; 250
tokens after 6 / 32 / 64 shared ones 974 / 884 / 895 ms, read whole 677 / 784 / 880.
"""


class StoredTokens:
    """Request, and the tokens that it has stored.

    Args:
        request: the request, which nobody else runs.
        compiled: its model; None if no prompt may continue.
        lengths: lengths of an NPU's programs.
    """

    def __init__(
        self,
        request: InferRequest,
        compiled: CompiledModel | None = None,
        lengths: StaticLengths | None = None,
    ) -> None:
        self.request = request
        self.compiled = compiled
        slides = lengths is not None and lengths.on_full is OnFull.SLIDE
        self._unbroken = lengths.capacity if lengths is not None and slides else UNSET
        """Number of tokens up to which a sliding cache has forgotten none."""
        self._tokens: list[int] = []
        """Identities; none if the request has other rows, or its tokens are unknown."""
        self.used = 0.0
        """Time of the last inference, of ``time.monotonic``."""

    @cached_property
    def _continues(self) -> bool:
        return self.compiled is not None and property_of(self.compiled, CONTINUES, False) is True

    @property
    def known(self) -> bool:
        """True if the stored tokens are known, and a prompt may continue after them."""
        return bool(self._tokens) and self._continues

    def shared(self, prompt: Sequence[int]) -> int:
        """Return the number of stored tokens after which a prompt continues; 0 if it does not.

        At least one token of the prompt is left to read.

        Args:
            prompt: identities of the prompt's tokens.
        """
        stored = len(self._tokens)
        common = _common(self._tokens, prompt[:-1])
        forgotten = stored > self._unbroken and common < stored
        pays = _DEARER * common >= len(prompt) - common
        return common if pays and not forgotten and self._continues else 0

    def shares_most(self, prompt: Sequence[int]) -> bool:
        """Return whether a prompt continues after at least half of the stored tokens."""
        return 0 < len(self._tokens) <= 2 * self.shared(prompt)

    def begin(self, prompt: Sequence[int]) -> int:
        """Begin a prompt, and return ``shared``; without shared tokens, forget all.

        Raises:
            RuntimeError: the runtime failed.
        """
        shared = self.shared(prompt)
        if not shared:
            self.reset()
        return shared

    def take(self, past: int, tokens: Sequence[int] | None) -> list[int]:
        """Forget all tokens until ``note``, as they are unknown during an inference.

        Args:
            past: number of stored tokens that stay.
            tokens: identities of the tokens to read after them; None for several rows.

        Returns:
            The tokens that will be stored, for ``note``; none if the first ones are unknown.
        """
        stored, self._tokens = self._tokens, []
        if len(stored) < past or tokens is None:
            return []
        stored[past:] = tokens
        return stored

    def note(self, stored: list[int]) -> None:
        """Note the stored tokens after an inference; the list becomes the object's own."""
        self.used = time.monotonic()
        self._tokens = stored

    def forget(self) -> None:
        """Read the next prompt from the start, e.g. as other adapters make other rows."""
        self._tokens = []

    def reset(self) -> None:
        """Forget all tokens, also those of the request.

        Raises:
            RuntimeError: the runtime failed.
        """
        self._tokens = []
        self.request.reset_state()


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the longest common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    shorter = min(len(one), len(other))
    return next((place for place, (a, b) in pairs if a != b), shorter)
