"""``npuw extract``."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler_layer.tools.command import Commands, declare

_EXAMPLES = """\
  npuw extract model.blob blobs            what EXPORT_BLOB wrote, a file for each static model
  npuw extract cache/1f0c….blob blobs      an entry of CACHE_DIR
  npuc explain blobs/generate_256.blob     ... and what such a program does

A program is an ELF file: readelf, npu-objdump and npuc explain read it.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(commands, "extract", _run, "take programs out of a compiled model", _EXAMPLES)
    parser.add_argument("file", type=Path, help="an exported model, or a file of CACHE_DIR")
    parser.add_argument("folder", type=Path, help="where programs go; made if it is not there")


def _run(arguments: argparse.Namespace) -> int:
    # Imported here: other commands have no use for what reads blobs.
    from npuw_layer.tools.npuw.extract_programs import extract_programs

    return extract_programs(arguments.file, arguments.folder)
