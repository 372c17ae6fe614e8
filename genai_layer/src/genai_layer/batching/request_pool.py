"""Requests of a model that are used again, and keep their tokens for a next prompt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from genai_layer.decoding.stored_tokens import StoredTokens

_log = logging.getLogger(__name__)


class RequestPool:
    """Requests of one kind. The generations that run know which ones they use.

    Args:
        most: number of requests that keep their tokens, each in the memory of a conversation.
        make: makes a request.
    """

    def __init__(self, most: int, make: Callable[[], StoredTokens]) -> None:
        self._most = most
        self._make = make
        self._requests: list[StoredTokens] = []

    def take(self, prompt: Sequence[int], used: Collection[StoredTokens]) -> StoredTokens:
        """Return the free request that stores the longest prefix of a prompt.

        If that one would forget more than it shares, or none shares any of it, return a new one; or
        if there are enough, the one that was used least recently.

        Args:
            prompt: identities of the prompt's tokens.
            used: requests of the running generations.

        Raises:
            RuntimeError: the runtime failed.
        """
        free = sorted((one for one in self._requests if one not in used), key=lambda one: one.used)
        best = max(free, key=lambda one: one.shared(prompt), default=None)
        if best is not None and best.shares_most(prompt):
            return best
        if not free or len(self._requests) < self._most:
            self._requests.append(self._make())
            return self._requests[-1]
        return free[0]

    def give_back(self, stored: StoredTokens) -> None:
        """Keep a request for another generation, with its tokens if they are known.

        A request that is broken is not used again.
        """
        if stored.known and sum(one.known for one in self._requests) <= self._most:
            return
        try:
            stored.reset()
        except RuntimeError as error:
            _log.warning("a request cannot be reset, and is not used again: %s", error)
            self._requests.remove(stored)
