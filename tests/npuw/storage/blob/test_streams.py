"""What else than files models are exported to and imported from; and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import BlobError, NpuwFault, NpuwUsageError

NO_BLOBS = [
    (None, "not None"),
    (5, "a blob is a path, a stream of bytes, or bytes, also as an array or a tensor, not 5"),
    ([b"blob"], r"not \[b'blob'\]"),
    (io.StringIO("blob"), "not <_io.StringIO"),
    (np.array([None]), "not array"),
    (memoryview(b"blob")[::2], r"bytes in one piece: .*contiguous.*; give bytes\(…\) of it"),
]


@pytest.mark.parametrize(("given", "why"), NO_BLOBS, ids=[why for _, why in NO_BLOBS])
def test_what_is_no_blob_is_named_with_what_may_be(given, why: str) -> None:
    with pytest.raises(BlobError, match=why):
        Core().import_model(given)


def test_files_that_give_no_bytes_are_no_blobs(blobs, tmp_path) -> None:
    blob = blobs["OPTIMIZE_SPEED"]
    with blob.open(encoding="latin-1") as text, pytest.raises(BlobError, match=r"not <_io\.Text"):
        Core().import_model(text)
    with (tmp_path / "new").open("wb", buffering=0) as new:
        new.write(b"blob")
        with pytest.raises(BlobError, match="cannot be read: File not open for reading"):
            Core().import_model(new)
    for closed in (blob.open("rb"), blob.open("rb", buffering=0), io.BytesIO(b"blob")):
        closed.close()
        with pytest.raises(BlobError, match=r"cannot be read: .*closed file"):
            Core().import_model(closed)


def test_there_is_no_exporting_to_what_takes_no_bytes(exporters, blobs, tmp_path) -> None:
    compiled = exporters["OPTIMIZE_SIZE"]
    closed = io.BytesIO()
    closed.close()
    with blobs["OPTIMIZE_SIZE"].open("rb") as read_only:
        for target, why in (
            (5, "to a path or a stream of bytes, not to 5; None gives its bytes"),
            (io.StringIO(), "not to <_io.StringIO"),
            (read_only, "cannot be exported to <_io.BufferedReader.*: write"),
            (closed, "cannot be exported to <_io.BytesIO.*: I/O operation on closed file"),
        ):
            with pytest.raises(NpuwUsageError, match=why):
                compiled.export_model(target)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_stream_to_a_full_disk_says_so(exporters) -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(NpuwFault, match="No space"):
        exporters["OPTIMIZE_SIZE"].export_model(full)
