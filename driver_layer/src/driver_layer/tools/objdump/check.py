"""Validation of a blob by the loader's rules and its digest, and comparison with LIEF."""

from __future__ import annotations

import io
from collections.abc import Iterator

import lief
import numpy as np

from driver_layer.abi.elf import EHDR, SHDR, SYM, SectionType
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import BlobError, OutOfMemory
from driver_layer.loader.content import check_content
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import read_arch
from driver_layer.loader.read import Blob, read_blob
from driver_layer.npu.memory import AddressSpace


def deviations(data: bytes) -> Iterator[str]:
    """Return the problems, a line each; none if the blob is valid."""
    try:
        blob = read_blob(data)
        check_content(data)
        yield from _load(blob)
    except BlobError as error:
        yield str(error)
        return
    yield from compare_with_lief(data, blob)


def _load(blob: Blob) -> Iterator[str]:
    """Load the blob on the platform that it is for; return the problems."""
    arch = read_arch(blob)
    platform = next((p for p in PLATFORMS.values() if p.arch == arch), None)
    if platform is None:
        yield f"the blob is for unknown architecture {arch}"
        return
    inference = HostParsedInference(blob, platform)
    try:
        inference.load(AddressSpace())
    except OutOfMemory as error:
        yield str(error)


def compare_with_lief(data: bytes, blob: Blob) -> Iterator[str]:
    """Return the differences between LIEF's reading and ours."""
    lief.logging.disable()
    other = lief.ELF.parse(io.BytesIO(data))  # pyright: ignore[reportUnknownMemberType] (its stubs)
    if other is None:
        yield "LIEF cannot parse the blob"
        return
    theirs = list(other.sections)
    if len(theirs) != len(blob.sections):
        yield f"LIEF reads {len(theirs)} sections, the loader {len(blob.sections)}"
        return
    headers = np.frombuffer(
        data, SHDR, len(theirs), int(np.frombuffer(data, EHDR, 1)["e_shoff"][0])
    )
    for mine, its, header in zip(blob.sections, theirs, headers, strict=True):
        seen = (str(its.name) or f"#{mine.index}", its.offset, its.size)
        ours = (mine.name, mine.offset, mine.size)
        if seen != ours:
            yield f"section {mine.index}: LIEF reads {seen}, the loader {ours}"
        if int(header["sh_link"]) != its.link or int(header["sh_info"]) != its.information:
            yield f"section {mine.name}: LIEF reads different links"
    tables = blob.of_type(SectionType.SHT_SYMTAB)
    symbols = sum(table.size // SYM.itemsize for table in tables)
    # LIEF merges the symbol tables into one list, which may be shorter than their sum.
    if len(list(other.symbols)) > symbols:
        yield f"LIEF reads {len(list(other.symbols))} symbols, the loader {symbols}"
