"""Programs: their origin, loading, and the spans that a device uses in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.backends.mapped import drop_pages
from npuw_layer.backends.protocols import Device, FindsConstants, LoadedModel, ability
from npuw_layer.storage.container import Span


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a model's programs: how many are compiled, cached or imported."""

    seconds: float
    compiled: int = 0
    cached: int = 0
    imported: int = 0

    @property
    def from_cache(self) -> bool:
        """True if all programs are from the cache."""
        return not self.compiled and not self.imported

    def __str__(self) -> str:
        counts = (
            (self.compiled, "compiled"),
            (self.cached, "loaded from cache"),
            (self.imported, "imported"),
        )
        parts = [f"{count} {what}" for count, what in counts if count]
        return f"{', '.join(parts)} in {self.seconds:.2f} s"


def load(device: Device, program: bytes | memoryview) -> LoadedModel:
    """Load a program; if it is mapped, only pages in use stay in memory."""
    loaded = device.load(program)
    drop_pages(program)
    return loaded


def constants_of(device: Device, program: bytes | memoryview) -> Sequence[Span]:
    """Return the spans of a program that the device uses in place; empty if it cannot find them."""
    finds = ability(device, FindsConstants)
    return () if finds is None else finds.constants(program)
