"""``npuc``: the compiler on the command line.

Each command is a file, and lists its options; ``options`` has those that several share. Begin with
``compile``.
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

  npuc export llama out --weight-format int4      a model folder with its weights in 4 bits
  npuc quantize llama --report                    what 8 bits would do to each weight
  npuc print models/demo | less                   the graph
  npuc run-pass fuse-rms models/demo | less       ... after a pass
  npuc compile models/demo --shape ...            a blob; npuc compile --help says which shapes
  npuc explain demo.blob                          what the blob does, and how long it takes

npuc COMMAND --help has more examples.
"""


_NPUC = Group(
    "npuc",
    {command.name or "": command for command in _COMMANDS},
    help="Compiles stateful OpenVINO LLM graphs into static NPU blobs.",
    epilog=_EPILOG,
    no_args_is_help=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code: 2 for wrong usage and bad models."""
    return run(_NPUC, argv, CompilerError)
