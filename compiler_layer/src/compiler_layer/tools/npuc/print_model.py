"""``npuc print``."""

from __future__ import annotations

import argparse
import sys

from compiler_layer.tools.command import Commands, declare
from compiler_layer.tools.npuc.models import add_model, add_shapes, read_model, specialize

_EXAMPLES = """\
  npuc print models/demo | less
  npuc print openvino_model.xml > model.mlir     every command takes the text as a model as well

With --shape the graph is made static first; then every input and variable needs a shape.
Weights are not in the text: it says where they are.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(commands, "print", _run, "print a model's graph as text", _EXAMPLES)
    add_model(parser)
    add_shapes(parser)


def _run(arguments: argparse.Namespace) -> int:
    model = read_model(arguments.model)
    specialize(model, arguments.shape)
    sys.stdout.write(model.text())
    return 0
