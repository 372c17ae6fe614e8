"""Metadata of OpenVINO's NPU plugin, byte by byte: versions 2.0 to 2.7 are supported, no others.

The bytes are written by hand, from the layouts in the plugin's metadata.cpp.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.errors import BlobError, BlobVersionError
from npuw_layer.storage.native_blob.metadata import (
    ADDED,
    BlobType,
    Cursor,
    Metadata,
    read_metadata,
)

ROWS = [
    (struct.pack("<3H", 2025, 2, 1), {"openvino": (2025, 2, 1)}),
    (struct.pack("<3Q", 2, 4096, 8192), {"init_sizes": (4096, 8192)}),
    (struct.pack("<q", 4), {"batch": 4}),
    (
        struct.pack("<2Q", 1, 2) + b"\4\0NCHW" + b"\5\0[...]" + b"\0\0",
        {"input_layouts": ("NCHW",), "output_layouts": ("[...]", "")},
    ),
    (struct.pack("<I", 7 << 16 | 22), {"compiler": 7 << 16 | 22}),
    (b"\1", {"encrypted": True}),
    (struct.pack("<Q", 6) + b"tiles\0", {"compatibility": b"tiles\0"}),
    (b"\1", {"blob_type": BlobType.LLVM}),
]
"""Fields that each minor version added."""

VERSIONS = range(len(ROWS))


def golden(minor: int) -> bytes:
    return struct.pack("<HH", minor, 2) + b"".join(row for row, _ in ROWS[: minor + 1])


def read(content: bytes, any_minor: bool = False) -> Metadata | None:
    return read_metadata(Cursor(memoryview(content)), any_minor)


@pytest.mark.parametrize("minor", VERSIONS)
def test_each_version_is_read_and_written_as_in_the_plugin(minor: int) -> None:
    fields = {name: value for _, row in ROWS[: minor + 1] for name, value in row.items()}
    assert read(golden(minor)) == Metadata(minor, **fields)
    assert Metadata(minor, **fields).write() == golden(minor)
    assert len(ADDED) == len(ROWS)


@pytest.mark.parametrize("minor", VERSIONS)
def test_absent_values_are_written_as_zeros(minor: int) -> None:
    """After OpenVINO's version: a count, a number, two counts, a number, a flag, a length, ELF."""
    sizes = [0, 8, 8, 16, 4, 1, 8, 1]
    written = Metadata(minor).write()
    assert written == struct.pack("<HH3H", minor, 2, 2026, 4, 1) + bytes(sum(sizes[: minor + 1]))
    assert read(written) == Metadata(minor)


LAYOUTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=3).map(tuple)


@st.composite
def metadata(draw: st.DrawFn) -> Metadata:
    """Draw any metadata of a version."""
    u16, u64 = st.integers(0, 2**16 - 1), st.integers(0, 2**64 - 1)
    fields = [
        {"openvino": st.tuples(u16, u16, u16)},
        {"init_sizes": st.lists(u64, max_size=4).map(tuple)},
        {"batch": st.integers(-(2**63), 2**63 - 1).map(lambda batch: batch or None)},
        {"input_layouts": LAYOUTS, "output_layouts": LAYOUTS},
        {"compiler": st.integers(0, 2**32 - 1).map(lambda number: number or None)},
        {"encrypted": st.booleans()},
        {"compatibility": st.binary(max_size=20)},
        {"blob_type": st.sampled_from(BlobType)},
    ]
    minor = draw(st.integers(0, len(fields) - 1))
    known = {name: one for row in fields[: minor + 1] for name, one in row.items()}
    return Metadata(minor, **{name: draw(one) for name, one in known.items()})


@settings(max_examples=50, deadline=None)
@given(metadata(), st.binary(max_size=20))
def test_written_metadata_is_read_and_following_bytes_remain(said: Metadata, more: bytes) -> None:
    cursor = Cursor(memoryview(said.write() + more))
    assert read_metadata(cursor) == said
    assert cursor.remaining == len(more)


@settings(max_examples=50, deadline=None)
@given(metadata(), st.data())
def test_truncated_metadata_is_rejected(said: Metadata, data: st.DataObject) -> None:
    content = said.write()
    with pytest.raises(BlobError):
        read(content[: data.draw(st.integers(0, len(content) - 1))])


@settings(max_examples=70, deadline=None)
@given(metadata(), st.data())
def test_changed_metadata_is_other_metadata_or_rejected(said: Metadata, data) -> None:
    content = bytearray(said.write())
    at = data.draw(st.integers(4, len(content) - 1))
    content[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    try:
        found = read(bytes(content))
    except BlobError:
        return
    assert isinstance(found, Metadata)


@pytest.mark.parametrize(
    ("where", "what", "problem"),
    [
        (10, struct.pack("<Q", 2**64 - 1), "18446744073709551615 init schedules do not fit"),
        (10, struct.pack("<Q", 2**61), "2305843009213693952 init schedules do not fit"),
        (42, struct.pack("<2Q", 2**64 - 1, 1), "input layouts do not fit"),
        (42, struct.pack("<2Q", 1, 2**64 - 1), "output layouts do not fit"),
        (42, struct.pack("<2Q", 17, 17), "34 layouts do not fit"),
        (58, b"\xff\xff", "a layout takes 65535 bytes, [0-9]+ remain"),
        (78, struct.pack("<Q", 2**63), "bytes of the payload's requirements do not fit"),
        (92, b"\3", "the blob's type 3 is unknown"),
    ],
)
def test_impossible_sizes_are_rejected_first(where: int, what: bytes, problem: str) -> None:
    content = bytearray(golden(7))
    content[where : where + len(what)] = what
    with pytest.raises(BlobError, match=problem):
        read(bytes(content))


@pytest.mark.parametrize(("major", "minor"), [(2, 8), (3, 0), (1, 0), (0, 7), (2, 65535)])
def test_unknown_versions_are_rejected_with_the_remedy(major, minor) -> None:
    content = struct.pack("<HH", minor, major) + golden(7)[4:] + b"what they added"
    with pytest.raises(
        BlobVersionError, match=rf"metadata {major}\.{minor}, installed is 2\.0 to 2\.7"
    ):
        read(content)
    with pytest.raises(BlobVersionError, match="or set NPU_DISABLE_VERSION_CHECK to YES"):
        read(content)
    found = read(content, any_minor=True)
    assert found == (read(golden(7)) if major == 2 else None)
