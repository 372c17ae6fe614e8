"""Fusion of compressed weights into Dequantize."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.dequantize import fuse_dequantize


@dataclass(frozen=True)
class FuseDequantize(ModulePass):
    """Fuse compressed weights into Dequantize.

    Before:  %w = ov.Convert(%stored : …xu4) : …xf16 ; %z = ov.Convert(%zero : …xu4) : …xf16
             %m = ov.Multiply(ov.Subtract(%w, %z), %scale) ; %y = ov.Convert(%m) : …xf32
    After:   %y = ov.Dequantize(%stored, %scale, %zero) : …xf32

    8-bit floats with scales are fused, too. Dequantize computes in f32 from end to end, as OpenVINO
    does for f32, even if several conversions share one multiplication.
    """

    name = "fuse-dequantize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        fuse_dequantize(model.ops)
        remove_dead_code(model)
