"""The programs of a compiled model as files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from npuw_layer.blob.container import kind_of
from npuw_layer.blob.source import open_blob
from npuw_layer.errors import BlobError, NpuwFault
from npuw_layer.native_blob.container import ends_natively
from npuw_layer.native_blob.payload import open_payload
from npuw_layer.options import parse_options
from npuw_layer.static.parts import VALUES
from npuw_layer.stored_weights import PART
from npuw_layer.tools.npuw.read_programs import read_programs


def extract_programs(source: Path, folder: Path) -> int:
    """Write each program to a file of its own; give the exit code.

    Args:
        source: an exported model, or an entry of the cache.
        folder: where they go; made if it is not there.

    Raises:
        BlobError: it is neither.
        NpuwFault: a file cannot be written.
    """
    content, _ = open_blob(source)
    try:
        found = list(_programs(content))
    except BlobError as error:
        raise BlobError(f"{source}: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, program in found:
            path = folder / f"{name}.blob"
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
