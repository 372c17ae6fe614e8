"""``npuc``: the compiler on the command line. Each command is a file; what they share is beside."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from compiler_layer.errors import CompilerError
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
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except CompilerError as error:
        print(f"npuc: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough; what is still buffered must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("npuc: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="npuc",
        description="Compiles stateful OpenVINO LLM graphs into static NPU blobs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return parser
