"""K and V of prompts, kept by blocks, so that prompts that begin alike are not computed twice.

A block is known by a hash of its tokens (ids or embeddings, and positions), of all tokens before
them and of whatever else rows depend on, so a block that is found is the right one. Blocks form a
tree; only leaves are evicted, the least recently used first, since a block is of no use without
those before it.

Source: NPUW's llm_prefix_caching (fact sheet npuw §c.8). Ours: hashes that do not collide, and
know of adapters, which change K and V; a bound in bytes, and blocks of any length.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from npuw_layer.backends.protocols import Array

Rows = Sequence[Array]
"""For caches that are alike each, [variables, tokens, heads, width]."""


@dataclass(frozen=True, slots=True)
class PrefixStatistics:
    """What the cache did so far."""

    blocks: int
    nbytes: int
    hits: int
    """Blocks that were found."""
    misses: int
    """Blocks that were looked for and not found."""
    evictions: int


@dataclass(frozen=True, slots=True)
class _Block:
    parent: bytes
    rows: Rows

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.rows)


class PrefixCache:
    """Blocks of K and V, shared by all requests of a compiled model.

    Args:
        block_size: tokens of a block.
        max_blocks: how many are kept.
        max_bytes: how much memory they may take; None leaves it to their number.
    """

    def __init__(self, block_size: int, max_blocks: int, max_bytes: int | None) -> None:
        self.block_size = block_size
        self._max_blocks = max_blocks
        self._max_bytes = sys.maxsize if max_bytes is None else max_bytes
        self._blocks: OrderedDict[bytes, _Block] = OrderedDict()
        """By key; the least recently used first."""
        self._hits = self._misses = self._evictions = 0
        self._lock = threading.Lock()

    def statistics(self) -> PrefixStatistics:
        """Tell what it holds and did."""
        with self._lock:
            return PrefixStatistics(
                len(self._blocks), self._nbytes(), self._hits, self._misses, self._evictions
            )

    def find(self, tokens: Array, computed_by: bytes = b"") -> list[Rows]:
        """Give the blocks that a prompt begins with.

        Args:
            tokens: [n, ...], what tells each from others (``NewTokens.identity``), of the whole
                prompt; at least its last token is left to be computed.
            computed_by: what rows depend on beside tokens, e.g. adapters.
        """
        found: list[Rows] = []
        with self._lock:
            for _, key in self._keys(tokens[:-1], computed_by):
                block = self._blocks.get(key)
                if block is None:
                    self._misses += 1
                    break
                self._hits += 1
                self._blocks.move_to_end(key)
                found.append(block.rows)
        return found

    def store(
        self,
        tokens: Array,
        read: Callable[[int, int], Rows],
        computed_by: bytes = b"",
    ) -> None:
        """Keep the whole blocks of a prompt that are not there yet.

        Args:
            tokens: those of the prompt, as for ``find``.
            read: gives rows from one token to another; they are copied.
            computed_by: as for ``find``.
        """
        parent = b""
        for number, key in self._keys(tokens, computed_by):
            with self._lock:
                known = key in self._blocks
            if not known:
                begin = number * self.block_size
                rows = [part.copy() for part in read(begin, begin + self.block_size)]
                if not self._insert(key, _Block(parent, rows)):
                    return
            parent = key

    def _keys(self, tokens: Array, computed_by: bytes) -> Iterator[tuple[int, bytes]]:
        """The number and the key of each whole block."""
        begin_of_all = f"{self.block_size} {computed_by.hex()} "
        chain = hashlib.sha256(begin_of_all.encode())
        for number in range(len(tokens) // self.block_size):
            begin = number * self.block_size
            chain.update(tokens[begin : begin + self.block_size].tobytes())
            yield number, chain.digest()

    def _insert(self, key: bytes, block: _Block) -> bool:
        """Add a block; tell whether there was room, and its parent is still there."""
        with self._lock:
            if key in self._blocks:
                return True
            if block.parent and block.parent not in self._blocks:
                return False
            if not self._make_room(block):
                return False
            self._blocks[key] = block
            return True

    def _nbytes(self) -> int:
        return sum(block.nbytes for block in self._blocks.values())

    def _make_room(self, new: _Block) -> bool:
        """Evict leaves until a block fits; its own parent stays."""
        if new.nbytes > self._max_bytes:
            return False
        while (
            len(self._blocks) >= self._max_blocks or self._nbytes() + new.nbytes > self._max_bytes
        ):
            parents = {new.parent, *(block.parent for block in self._blocks.values())}
            leaf = next((key for key in self._blocks if key not in parents), None)
            if leaf is None:
                return False
            del self._blocks[leaf]
            self._evictions += 1
        return True
