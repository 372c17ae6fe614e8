"""``npuw``: options and predictions on the command line. Each command is a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from npuw_layer.errors import NpuwError
from npuw_layer.tools.npuw import options, plan

_COMMANDS = (options, plan)

_EPILOG = """\
  npuw options                             every option there is, by groups
  npuw options NPUW_LLM_MAX_PROMPT_LEN     one of them
  npuw plan llama-70b --weights int4       memory and speed of a model that is not even here:
                                           its config.json is enough

npuw COMMAND --help has more examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; give the exit code: 2 for wrong usage and bad models."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except NpuwError as error:
        print(f"npuw: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough; what is still buffered must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("npuw: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="npuw",
        description="Explains the options of compiled models, and predicts what a model takes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return parser
