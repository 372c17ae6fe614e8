"""``npuc``: the compiler on the command line.

Each command is a file and declares its options; ``options`` has the options that several commands
share. Begin with ``compile``.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.errors import CompilerError
from compiler_layer.tools.npuc.compile import compile_command
from compiler_layer.tools.npuc.explain import explain_command
from compiler_layer.tools.npuc.export import export_command
from compiler_layer.tools.npuc.passes import passes_command, print_command, run_pass_command
from compiler_layer.tools.npuc.quantize import quantize_command
from driver_layer.support.command import Group, run

_COMMANDS = (
    compile_command,
    explain_command,
    export_command,
    quantize_command,
    print_command,
    run_pass_command,
    passes_command,
)


_EPILOG = """\
A model is an openvino_model.xml or a folder with one, a Hugging Face folder, or IR as text (.mlir).

  npuc export llama out --weight-format int4      write a model folder with 4-bit weights
  npuc quantize llama --report                    print the error of 8-bit weights
  npuc print models/demo | less                   print the graph
  npuc run-pass fuse-rms models/demo | less       ... after a pass
  npuc compile models/demo --shape ...            write a blob; see npuc compile --help for shapes
  npuc explain demo.blob                          print what the blob executes, and its time

npuc COMMAND --help has more examples.
"""


_NPUC = Group(
    "npuc",
    {command.name or "": command for command in _COMMANDS},
    help="Compile stateful OpenVINO LLM graphs to static NPU blobs.",
    epilog=_EPILOG,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code: 2 for wrong usage and invalid models."""
    return run(_NPUC, argv, CompilerError)
