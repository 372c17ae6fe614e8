"""SHAVE programs of kernels; begin with ``kernel``, which writes one from a kernel's body.

activations, arithmetic, rows  the instructions of each row-wise op
program                        a builder with unlimited registers, fitted into the real ones
"""

from compiler_layer.codegen.kernel import kernel_program, kernel_refusal

__all__ = ["kernel_program", "kernel_refusal"]
