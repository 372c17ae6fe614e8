"""Locations of weights in a blob, from its section table, whose content is untrusted."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi.elf import EHDR, SHDR, SectionFlag, SectionType
from npuw_layer.backends.blob_constants import constant_spans
from npuw_layer.storage.container import describe

SIZE = 1 << 20
LARGE = 1 << 16


def blob(*spans: tuple[int, int]) -> bytes:
    """Return a file with sections of weights."""
    header, sections = np.zeros(1, EHDR), np.zeros(len(spans), SHDR)
    header["e_shoff"], header["e_shnum"] = EHDR.itemsize, len(spans)
    for section, (offset, size) in zip(sections, spans, strict=True):
        section["sh_offset"], section["sh_size"] = offset, size
        section["sh_type"] = SectionType.SHT_PROGBITS
        section["sh_flags"] = SectionFlag.SHF_ALLOC | SectionFlag.VPU_SHF_PROC_DMA
    return (header.tobytes() + sections.tobytes()).ljust(SIZE, b"\0")


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(4 * LARGE, LARGE), (LARGE, LARGE)], [(LARGE, LARGE), (4 * LARGE, LARGE)]),
        ([(LARGE, LARGE - 1)], []),
        ([(LARGE, LARGE), (LARGE + 9, LARGE)], [(LARGE, LARGE)]),
        ([(SIZE - 9, LARGE)], []),
        ([(1 << 63, LARGE), (LARGE, 1 << 63)], []),
    ],
    ids=["in order", "small", "within another", "beyond the end", "huge"],
)
def test_invalid_spans_are_ignored(spans, expected) -> None:
    """A custom compiler may produce any bytes, and the cache must not fail on them."""
    program = blob(*spans)
    assert constant_spans(program) == expected
    describe("one", program, constant_spans(program))
