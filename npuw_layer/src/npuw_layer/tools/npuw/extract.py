"""``npuw extract``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from compiler_layer.tools.command import Commands, declare
from npuw_layer.blob.container import kind_of
from npuw_layer.blob.source import open_blob
from npuw_layer.errors import BlobError, NpuwFault
from npuw_layer.native_blob.container import ends_natively
from npuw_layer.native_blob.payload import open_payload
from npuw_layer.options import parse_options
from npuw_layer.static.parts import VALUES
from npuw_layer.stored_weights import PART
from npuw_layer.tools.npuw.read_programs import read_programs

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
    content, _ = open_blob(arguments.file)
    try:
        found = list(_programs(content))
    except BlobError as error:
        raise BlobError(f"{arguments.file}: {error}") from None
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, program in found:
            path = arguments.folder / f"{name}.blob"
            with path.open("xb") as file:
                file.write(program)
            print(f"{path}  {len(program):,} bytes")
    except OSError as error:
        raise NpuwFault(f"{error.filename}: {error.strerror}") from None
    return 0


def _programs(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Names and bytes of the programs, weights and initial values left out."""
    if not kind_of(content) and ends_natively(content):
        yield "program", open_payload(content, parse_options({})).place.view
        return
    found = read_programs(content)
    found.check_programs()
    for part, program in zip(found.manifest.parts, found.programs, strict=True):
        if part.name not in (PART, VALUES):
            # A name is no path, whatever the file says.
            (name,) = re.findall(r"^\w+", part.name) or ["program"]
            yield name, program
