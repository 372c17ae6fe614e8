"""``npuw``: options and predictions on the command line. Each command is a file."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.tools.command import make_parser, run_command
from npuw_layer.errors import NpuwError
from npuw_layer.tools.npuw import extract, graph, options, plan, show

_COMMANDS = (options, plan, show, extract, graph)

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; give the exit code: 2 for wrong usage and bad models."""
    commands = [command.add_to for command in _COMMANDS]
    parser = make_parser(
        "npuw",
        "Explains options, predicts what a model takes, and shows its graphs and compiled parts.",
        _EPILOG,
        commands,
    )
    return run_command(parser, argv, NpuwError)
