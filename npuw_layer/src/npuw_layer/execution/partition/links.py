"""Memory of links between parts, reused after the last read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A link: its bytes, the call that writes it, and the last one that reads it."""

    nbytes: int
    made: int
    read: int


@dataclass(frozen=True, slots=True)
class LinkLayout:
    """Offsets of links in one allocation of memory, and its size."""

    offsets: Mapping[str, int]
    nbytes: int


def place_links(links: Mapping[str, Lifetime]) -> LinkLayout:
    """Place links so that those with overlapping lifetimes do not overlap in memory.

    The largest come first, each at the lowest offset that is free during its lifetime.
    """
    placed: list[tuple[int, Lifetime]] = []
    offsets: dict[str, int] = {}
    order = sorted(links.items(), key=lambda item: (-item[1].nbytes, item[1].made, item[0]))
    for name, link in order:
        offsets[name] = _lowest(link, placed)
        placed.append((offsets[name], link))
    return LinkLayout(offsets, max((at + link.nbytes for at, link in placed), default=0))


def _lowest(link: Lifetime, placed: Sequence[tuple[int, Lifetime]]) -> int:
    """Return the lowest offset that is free during a link's lifetime."""
    at = 0
    together = (
        (begin, begin + other.nbytes)
        for begin, other in placed
        if other.made <= link.read and link.made <= other.read
    )
    for begin, end in sorted(together):
        if at + link.nbytes <= begin:
            break
        at = max(at, end)
    return at
