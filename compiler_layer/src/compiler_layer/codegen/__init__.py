"""From the body of a kernel to a SHAVE program."""

from compiler_layer.codegen.kernel import kernel_program

__all__ = ["kernel_program"]
