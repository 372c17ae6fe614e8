"""``npuc``: the compiler on the command line; begin with ``compile``.

Each command is a file: ``compile``, ``explain``, ``export``, ``quantize``, ``run_pass``,
``list_passes``, ``print_model``. The other files have what they share.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.errors import CompilerError
from compiler_layer.tools.command import make_parser, run_command
from compiler_layer.tools.npuc import (
    compile,
    explain,
    export,
    list_passes,
    print_model,
    quantize,
    run_pass,
)

_COMMANDS = (compile, explain, export, quantize, print_model, run_pass, list_passes)

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; give the exit code: 2 for wrong usage and bad models."""
    commands = [command.add_to for command in _COMMANDS]
    parser = make_parser(
        "npuc", "Compiles stateful OpenVINO LLM graphs into static NPU blobs.", _EPILOG, commands
    )
    return run_command(parser, argv, CompilerError)
