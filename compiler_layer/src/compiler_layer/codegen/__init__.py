"""SHAVE programs of kernels; begin with ``kernel``, which generates a program from a kernel's body.

activations, arithmetic, rows  instructions of each row-wise op
program                        builder with unlimited virtual registers, and register allocation
"""

from compiler_layer.codegen.kernel import kernel_program, kernel_refusal

__all__ = ["kernel_program", "kernel_refusal"]
