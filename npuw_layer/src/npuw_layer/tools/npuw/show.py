"""``npuw show``."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler_layer.tools.command import Commands, declare

_EXAMPLES = """\
  npuw show model.blob                     what a blob says of itself, whoever wrote it
  npuw show model.blob --json | jq .openvino

Nothing is verified but what is shown. A native blob (a static model for the NPU itself) begins with
an ELF, which readelf, npu-objdump and npuc explain read where it is.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(commands, "show", _run, "show what a blob says of itself", _EXAMPLES)
    parser.add_argument("file", type=Path, help="an exported model, or a file of CACHE_DIR")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _run(arguments: argparse.Namespace) -> int:
    # Imported here: other commands have no use for what reads blobs.
    from npuw_layer.tools.npuw.blob_facts import show_blob

    return show_blob(arguments.file, arguments.json)
