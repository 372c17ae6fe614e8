"""Initial values of variables in untrusted files, whose digests may be forged."""

from __future__ import annotations

import io
import random
import zipfile

import numpy as np
import pytest

from npuw_layer.errors import BlobError
from npuw_layer.kinds.static.initial_values import pack_values, unpack_values

VALUES = {
    "memory": np.arange(64, dtype=np.float32).reshape(4, 16),
    "counts": np.ones((2, 3), np.int64),
}


def test_packed_values_are_unpacked_unchanged() -> None:
    found = unpack_values(memoryview(pack_values(VALUES)))
    assert list(found) == list(VALUES)
    assert all(np.array_equal(found[name], VALUES[name]) for name in VALUES)
    assert unpack_values(pack_values({})) == {}


def test_modified_bytes_give_values_or_an_error() -> None:
    draw, whole = random.Random(1), pack_values(VALUES)
    outcomes: set[str] = set()
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(draw.choice((1, 1, 2, 3))):
            at, width = draw.randrange(len(content)), draw.choice((1, 2, 4))
            value = draw.choice((0, 2 ** (8 * width) - 1, draw.getrandbits(8 * width)))
            content[at : at + width] = value.to_bytes(width, "little")
        try:
            unpack_values(bytes(content))
        except BlobError:
            outcomes.add("refused")
        else:
            outcomes.add("values")
    assert outcomes == {"refused", "values"}


def of_files(files: dict[str, bytes], flags: int = 0, **options: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
            packed.getinfo(name).flag_bits |= flags
    return made.getvalue()


def array(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        np.lib.format.magic(1, 0),
        of_files({}),
        of_files({"names.npy": bytes(1 << 20)}, compression=zipfile.ZIP_DEFLATED),
        of_files({"names.npy": b"x"}, flags=1),
        of_files({"names.npy": array("{'descr': '<f4'")}),
        of_files({"names.npy": array("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")}),
        of_files(
            {"names.npy": array(f"{{'descr': 'f8', 'fortran_order': 0, 'shape': ({9**40},)}}")}
        ),
    ],
)
def test_invalid_content_is_rejected_without_allocating_its_stated_size(content: bytes) -> None:
    with pytest.raises(BlobError, match="invalid initial values"):
        unpack_values(content)
