"""Cache of K and V in blocks, so that a prefix shared by prompts is computed once.

The key of a block is a hash of its tokens (ids or embeddings, and positions), of all tokens before
them and of all else that rows depend on, so a hit is always right. Blocks form a tree. Only leaves
are evicted, the least recently used first, since a block is useless without its predecessors.

Source: NPUW's llm_prefix_caching (docs/reference/npuw.md#prefix-cache). Differences: hashes do not
collide and include adapters, which change K and V; a limit in bytes; blocks of any length.
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
"""Rows [variables, tokens, heads, width] of each group of caches of equal layout."""


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
        block_size: tokens per block.
        max_blocks: maximum number of blocks.
        max_bytes: maximum memory of all blocks; None limits their number alone.
    """

    def __init__(self, block_size: int, max_blocks: int, max_bytes: int | None) -> None:
        self.block_size = block_size
        self._max_blocks = max_blocks
        self._max_bytes = sys.maxsize if max_bytes is None else max_bytes
        self._blocks: OrderedDict[bytes, _Block] = OrderedDict()
        """Blocks by key, the least recently used first."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        with self._lock:
            return self._nbytes()

    def find(self, tokens: Array, computed_by: bytes = b"") -> list[Rows]:
        """Return the cached blocks that a prompt begins with.

        Args:
            tokens: identities of all tokens of the prompt (``NewTokens.identity``), [n, ...]. At
                least the last token is left to be computed.
            computed_by: key of all else that rows depend on, e.g. adapters.
        """
        found: list[Rows] = []
        with self._lock:
            for _, key in self._keys(tokens[:-1], computed_by):
                block = self._blocks.get(key)
                if block is None:
                    break
                self._blocks.move_to_end(key)
                found.append(block.rows)
        return found

    def store(
        self,
        tokens: Array,
        read: Callable[[int, int], Rows],
        computed_by: bytes = b"",
    ) -> None:
        """Store the complete blocks of a prompt that are not cached yet.

        Args:
            tokens: tokens of the prompt, as for ``find``.
            read: returns the rows of a range of tokens; they are copied.
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
        """Yield the number and the key of each complete block."""
        begin_of_all = f"{self.block_size} {computed_by.hex()} "
        chain = hashlib.sha256(begin_of_all.encode())
        for number in range(len(tokens) // self.block_size):
            begin = number * self.block_size
            chain.update(tokens[begin : begin + self.block_size].tobytes())
            yield number, chain.digest()

    def _insert(self, key: bytes, block: _Block) -> bool:
        """Add a block; return False if there is no room, or its parent was evicted."""
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
        """Evict leaves, but not the new block's parent, until the block fits."""
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
        return True
