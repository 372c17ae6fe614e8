"""Levels of processors with dot products of bytes, and types of matmuls with integer weights."""

from __future__ import annotations

from typing import Any

import pytest

from driver_layer.engines.native.jit.host import Isa, detect, native_isa

LEVELS = [isa for isa in Isa if isa <= native_isa() and detect(isa).dots_bytes]
needs_byte_dots = pytest.mark.skipif(not LEVELS, reason="the processor has no dots of bytes")

Kinds = tuple[str, str, str, dict[str, Any]]
"""Element types of activations, weights, results; and of the tables, None for absent ones."""


def named(kinds: Kinds) -> str:
    """Return the id of a test."""
    return "-".join([*kinds[:3], str(kinds[3]["zero"]), str(kinds[3]["scale"])])
