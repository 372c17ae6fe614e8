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

    def take(
        self, prompt: Sequence[int], used: Collection[StoredTokens], resting: int
    ) -> StoredTokens:
        """Return the free request that stores the longest prefix of a prompt.

        If that one would forget more than it shares, or none shares any of it, return a new one; or
        if there are enough, the one that was used least recently.

        Args:
            prompt: identities of the prompt's tokens.
            used: requests of the running generations.
            resting: number of other requests that may keep tokens meanwhile.

        Raises:
            RuntimeError: the runtime failed.
        """
        free = sorted((one for one in self._requests if one not in used), key=lambda one: one.used)
        chosen = self._chosen(prompt, free)
        others = [one for one in free if one.known and one is not chosen]
        for one in others[: max(len(others) - resting, 0)]:
            self._forget(one)
        return chosen

    def _chosen(self, prompt: Sequence[int], free: Sequence[StoredTokens]) -> StoredTokens:
        """Return the request for a prompt; see ``take``. ``free`` is ascending by last use."""
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
        if not stored.known or sum(one.known for one in self._requests) > self._most:
            self._forget(stored)

    def forget(self) -> None:
        """Forget all tokens; no generation runs."""
        for stored in [*self._requests]:
            self._forget(stored)

    def _forget(self, stored: StoredTokens) -> None:
        """Forget the tokens of a request; one that is broken is not used again."""
        try:
            stored.reset()
        except RuntimeError as error:
            _log.warning("a request cannot be reset, and is not used again: %s", error)
            self._requests.remove(stored)
