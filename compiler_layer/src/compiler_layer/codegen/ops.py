"""How each row-wise op is emitted: all families in one table."""

from __future__ import annotations

from compiler_layer.codegen.activations import ACTIVATIONS
from compiler_layer.codegen.arithmetic import ARITHMETIC
from compiler_layer.codegen.rows import ROWS
from compiler_layer.codegen.table import Emit
from compiler_layer.dialects.ov.op import OvOp

EMIT: dict[type[OvOp], Emit] = {**ARITHMETIC, **ACTIVATIONS, **ROWS}
"""The emitter of each op."""
