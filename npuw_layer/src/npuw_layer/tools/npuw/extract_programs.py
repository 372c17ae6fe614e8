"""Extraction of the programs of a compiled model to files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from driver_layer.support.files import looking_at
from npuw_layer.errors import BlobError, NpuwFault
from npuw_layer.kinds.static.initial_values import VALUES
from npuw_layer.options import parse_options
from npuw_layer.storage.cache.replace import remove_leftovers, replacing
from npuw_layer.storage.container import kind_of
from npuw_layer.storage.native_blob.container import ends_natively
from npuw_layer.storage.native_blob.payload import open_payload
from npuw_layer.storage.source import open_blob
from npuw_layer.tools.npuw.read_programs import read_programs
from npuw_layer.weights.stored_weights import PART


def extract_programs(source: Path, folder: Path) -> int:
    """Write each program to a separate file, or none; return the exit code.

    Args:
        source: an exported model, or an entry of the cache.
        folder: target folder, created if needed.

    Raises:
        BlobError: the source is another file.
        NpuwFault: a file already exists, or cannot be written.
    """
    content, _ = open_blob(source)
    try:
        found = list(_programs(content))
    except BlobError as error:
        raise BlobError(f"{source}: {error}") from None
    programs = [(folder / f"{name}.blob", program) for name, program in found]
    _write(folder, programs)
    for path, program in programs:
        print(f"{path}  {len(program):,} bytes")
    return 0


def _write(folder: Path, programs: Sequence[tuple[Path, memoryview]]) -> None:
    """Write all files to a folder, or none: partial results would block the next run.

    Raises:
        NpuwFault: a file already exists, or cannot be written.
    """
    names = {path.name for path, _ in programs}
    with looking_at(folder, NpuwFault):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, names.__contains__, locks=False)
    with ExitStack() as taken_back:
        for path, program in programs:
            with looking_at(path, NpuwFault):
                if os.path.lexists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                with replacing(path) as file:
                    file.write(program)
            taken_back.callback(path.unlink, missing_ok=True)
        taken_back.pop_all()


def _programs(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Yield names and bytes of the programs, without weights and initial values."""
    if not kind_of(content) and ends_natively(content):
        yield "program", open_payload(content, parse_options({})).place.view
        return
    found = read_programs(content)
    found.check_programs()
    for part, program in zip(found.manifest.parts, found.programs, strict=True):
        if part.name not in (PART, VALUES):
            # The name is untrusted, and must not be a path.
            (name,) = re.findall(r"^\w+", part.name) or ["program"]
            yield name, program
