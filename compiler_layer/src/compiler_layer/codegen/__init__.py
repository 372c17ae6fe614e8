"""From the body of a kernel to a SHAVE program."""

from compiler_layer.codegen.kernel import kernel_program, kernel_refusal

__all__ = ["kernel_program", "kernel_refusal"]
