"""Location of the weights in a blob: most of its bytes, if it contains weights.

The driver uses weights in place in the mapped file, so nothing reads them before the blob runs.

Source: docs/reference/elf.md#section-flags, docs/reference/elf.md#loading;
driver_layer.loader.place.
"""

from __future__ import annotations

import numpy as np

from driver_layer.abi.elf import EHDR, SHDR, SectionFlag, SectionType

_LEAST = 1 << 16
"""Minimum bytes of a section; smaller ones are not worth a separate digest."""

_CONSTANT = SectionFlag.SHF_ALLOC | SectionFlag.VPU_SHF_PROC_DMA


def constant_spans(program: bytes | memoryview) -> list[tuple[int, int]]:
    """Return offset and size of the sections that hold weights, ascending.

    Args:
        program: an untrusted blob; other bytes have no sections, and sections beyond the end or
            inside another are ignored.
    """
    if len(program) < EHDR.itemsize:
        return []
    header = np.frombuffer(program, EHDR, 1)[0]
    table, count = int(header["e_shoff"]), int(header["e_shnum"])
    if table + count * SHDR.itemsize > len(program):
        return []
    sections = np.frombuffer(program, SHDR, count, table)
    patched = set(sections["sh_info"][sections["sh_type"] == SectionType.SHT_RELA].tolist())
    spans = [
        (int(section["sh_offset"]), int(section["sh_size"]))
        for index, section in enumerate(sections)
        if section["sh_type"] == SectionType.SHT_PROGBITS
        and section["sh_flags"] == _CONSTANT
        and section["sh_size"] >= _LEAST
        and index not in patched
    ]
    kept: list[tuple[int, int]] = []
    end = 0
    for offset, size in sorted(spans):
        if end <= offset and offset + size <= len(program):
            kept.append((offset, size))
            end = offset + size
    return kept
