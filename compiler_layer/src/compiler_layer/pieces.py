"""A model in pieces: blobs, and what those that run more than once are bound to each time.

Nothing here knows graphs: who runs the pieces does not load the compiler. A model that is cut at
its repeated block has three:

    prologue   inputs                        → hidden_out_…, shared_…
    block      hidden_in_…, shared_…         → hidden_out_…        (again and again)
    epilogue   hidden_in_…, shared_…         → the model's outputs

Hidden values go from one repetition to the next; shared ones (masks, rotary tables) are computed
once, by the prologue. Other inputs and outputs are the model's own, and weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN_IN, HIDDEN_OUT, SHARED = "hidden_in_", "hidden_out_", "shared_"
"""Begin the names of ports between pieces; a number follows."""

LINK_PREFIX = "link_"
"""Begins the name of what goes from part to part of a model that is cut around groups of ops."""

LITERAL_PREFIX = "vpux_literal_"
"""Begins the name of an input for a weight that is in no file; a number follows."""


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A blob that several calls share, and what its weights are in each of them.

    Attributes:
        blob: without weights.
        weights: as those of ``CompiledPieces``, in each call.
        literals: as those of ``CompiledPieces``, in each call.
    """

    blob: bytes | memoryview
    weights: Mapping[str, tuple[str, ...]]
    literals: Mapping[str, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class CompiledPieces:
    """The blobs, and what the block's inputs and outputs are in each repetition.

    Attributes:
        prologue: runs first.
        block: runs ``count`` times.
        epilogue: runs last.
        count: repetitions.
        states: for the block's variables, inputs and outputs, the model's names of them.
        weights: for the block's weights the names by which they are found in files
            (``compiler_layer.weights``); what is not here is the same in each repetition.
        literals: for weights that are in no file their bytes.
    """

    prologue: bytes | memoryview
    block: bytes | memoryview
    epilogue: bytes | memoryview
    count: int
    states: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, tuple[str, ...]]
    literals: Mapping[str, tuple[bytes, ...]]
