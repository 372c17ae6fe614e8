"""Fusion of compressed weights into Dequantize."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.dequantize import fuse_dequantize
from compiler_layer.rewriting.graph_pass import GraphPass


class FuseDequantize(GraphPass):
    """Fuse compressed weights into Dequantize.

    Before:  %w = ov.Convert(%stored : …xu4) : …xf16 ; %z = ov.Convert(%zero : …xu4) : …xf16
             %m = ov.Multiply(ov.Subtract(%w, %z), %scale) ; %y = ov.Convert(%m) : …xf32
    After:   %y = ov.Dequantize(%stored, %scale, %zero) : …xf32

    8-bit floats with scales are fused, too. Dequantize computes in f32 from end to end, as OpenVINO
    does for f32, even if several conversions share one multiplication.
    """

    name = "fuse-dequantize"

    def _rewrite(self, model: Model) -> None:
        fuse_dequantize(model.ops)
        remove_dead_code(model)
