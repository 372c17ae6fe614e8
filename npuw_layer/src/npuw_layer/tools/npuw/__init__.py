"""``npuw``: options, predictions and compiled models on the command line.

Each command declares its options; begin with ``options``.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver_layer.support.command import Group, run
from npuw_layer.errors import NpuwError
from npuw_layer.tools.npuw.graph import graph_command, passes_command
from npuw_layer.tools.npuw.options import options_command
from npuw_layer.tools.npuw.plan import plan_command
from npuw_layer.tools.npuw.show import extract_command, show_command

_COMMANDS = (
    options_command,
    plan_command,
    show_command,
    extract_command,
    passes_command,
    graph_command,
)

_EPILOG = """\
  npuw options                             all options, by group
  npuw options NPUW_LLM_MAX_PROMPT_LEN     one option
  npuw plan llama-70b --weights int4       memory and speed of a model whose weights are not
                                           here: its config.json suffices
  npuw show model.blob                     contents of a blob: versions, metadata, parts
  npuw extract model.blob blobs            the programs of an exported model, as files
  npuw passes                              the passes that make a stateful language model static
  npuw graph models/demo --stage lm_head   the graph of one static model, after any pass

npuw COMMAND --help has more examples.
"""


_NPUW = Group(
    "npuw",
    {command.name or "": command for command in _COMMANDS},
    help="Explains options, predicts memory and speed, and shows graphs and compiled parts.",
    epilog=_EPILOG,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code: 2 for wrong usage and invalid models."""
    return run(_NPUW, argv, NpuwError)
