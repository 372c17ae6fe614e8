"""Compiled parts of a model: blobs, and the names of their ports.

This module does not depend on graphs: running compiled parts does not load the compiler. A model
cut at its repeated block has three parts:

    prologue   inputs                        → hidden_out_…, shared_…
    block      hidden_in_…, shared_…         → hidden_out_…        (once for each repetition)
    epilogue   hidden_in_…, shared_…         → the model's outputs

Each repetition passes hidden values to the next. The prologue computes shared values (masks, cos
and sin tables) once. All other ports are weights, or the model's own inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN_IN, HIDDEN_OUT, SHARED = "hidden_in_", "hidden_out_", "shared_"
"""Prefixes of ports between prologue, block and epilogue; a number follows."""

LINK_PREFIX = "link_"
"""Prefix of values between parts that are cut around ops; a number follows."""

LITERAL_PREFIX = "vpux_literal_"
"""Prefix of inputs for weights that no file stores; a number follows."""

ROWS = "rows"
"""Input of one expert's graph: rows of some tokens, [n, C]."""

WEIGHT = "weight"
"""Input of one expert's graph: the expert's weight for each row, [n, 1]."""

OUTPUT = "output"
"""Output of one expert's graph: the weighted rows, [n, H]."""


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """Blob that several calls share, and its weights in each call.

    Attributes:
        blob: without weights.
        weights: names of the weights in each call, as in ``CompiledParts``.
        literals: bytes of the weights in each call, as in ``CompiledParts``.
    """

    blob: bytes | memoryview
    weights: Mapping[str, tuple[str, ...]]
    literals: Mapping[str, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class CompiledParts:
    """Prologue, block and epilogue, and the block's inputs and outputs in each repetition.

    Attributes:
        prologue: the blob that runs first.
        block: the blob that runs ``count`` times.
        epilogue: the blob that runs last.
        count: number of repetitions.
        states: for each variable port of the block, the model's names in each repetition.
        weights: for each weight of the block that differs, its names in files
            (``compiler_layer.weights``) in each repetition.
        literals: for each weight that no file stores, its bytes in each repetition.
    """

    prologue: bytes | memoryview
    block: bytes | memoryview
    epilogue: bytes | memoryview
    count: int
    states: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, tuple[str, ...]]
    literals: Mapping[str, tuple[bytes, ...]]
