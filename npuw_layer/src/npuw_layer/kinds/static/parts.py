"""What a static model is made of, wherever it is kept."""

from __future__ import annotations

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, TensorInfo

PROGRAM, VALUES = PARTS = ("program", "initial values")
"""What its parts are called in files; values are what variables start as."""


def is_port(info: TensorInfo) -> bool:
    """Whether a program's input or output is the model's, not a variable's or a weight."""
    return not info.name.startswith((READ_PREFIX, ASSIGN_PREFIX, WEIGHT_PREFIX))
