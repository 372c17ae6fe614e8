"""``npuw extract``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from compiler_layer.tools.command import Commands, declare
from npuw_layer.blob.container import MODEL, STAGE, Container, read_container
from npuw_layer.blob.encryption import decrypt
from npuw_layer.blob.manifest import EntryManifest, ModelManifest
from npuw_layer.blob.source import open_blob
from npuw_layer.errors import BlobError, NpuwFault
from npuw_layer.stored_weights import PART

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
        found = _read(decrypt(content, ()))
        found.check_programs()
    except BlobError as error:
        raise BlobError(f"{arguments.file}: {error}") from None
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for part, program in zip(found.manifest.parts, found.programs, strict=True):
            if part.name == PART:
                continue
            # A name is no path, whatever the file says.
            (name,) = re.findall(r"^\w+", part.name) or ["program"]
            path = arguments.folder / f"{name}.blob"
            with path.open("xb") as file:
                file.write(program)
            print(f"{path}  {len(program):,} bytes")
    except OSError as error:
        raise NpuwFault(f"{error.filename}: {error.strerror}") from None
    return 0


def _read(content: memoryview) -> Container[EntryManifest] | Container[ModelManifest]:
    try:
        return read_container(content, STAGE, EntryManifest)
    except BlobError:
        return read_container(content, MODEL, ModelManifest)
