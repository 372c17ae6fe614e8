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
  npuw options                             every option there is, by groups
  npuw options NPUW_LLM_MAX_PROMPT_LEN     one of them
  npuw plan llama-70b --weights int4       memory and speed of a model that is not even here:
                                           its config.json is enough
  npuw show model.blob                     what a blob says of itself: versions, metadata, parts
  npuw extract model.blob blobs            the programs of an exported model, to look into
  npuw passes                              how a stateful language model becomes static ones
  npuw graph models/demo --stage lm_head   the graph of one of them, after any pass

npuw COMMAND --help has more examples.
"""


_NPUW = Group(
    "npuw",
    {command.name or "": command for command in _COMMANDS},
    help="Explains options, predicts what a model takes, and shows its graphs and compiled parts.",
    epilog=_EPILOG,
    no_args_is_help=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code: 2 for wrong usage and bad models."""
    return run(_NPUW, argv, NpuwError)
