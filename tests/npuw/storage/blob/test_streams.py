"""Targets of exports and sources of imports other than files, and rejected objects."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import BlobError, NpuwFault, NpuwUsageError

NO_BLOBS = [
    (None, "None is not a blob"),
    (5, "5 is not a blob; pass a path, a stream of bytes, or bytes, also as an array or a tensor"),
    ([b"blob"], r"\[b'blob'\] is not a blob"),
    (io.StringIO("blob"), "<_io.StringIO.*is not a blob"),
    (np.array([None]), "array.*is not a blob"),
    (memoryview(b"blob")[::2], r"must be contiguous bytes: .*; pass bytes\(…\) of it"),
]


@pytest.mark.parametrize(("given", "why"), NO_BLOBS, ids=[why for _, why in NO_BLOBS])
def test_the_error_of_an_invalid_source_lists_the_valid_ones(given, why: str) -> None:
    with pytest.raises(BlobError, match=why):
        Core().import_model(given)


def test_streams_that_return_no_bytes_are_rejected(blobs, tmp_path) -> None:
    blob = blobs["OPTIMIZE_SPEED"]
    with (
        blob.open(encoding="latin-1") as text,
        pytest.raises(BlobError, match=r"<_io\.Text.* is not a blob"),
    ):
        Core().import_model(text)
    with (tmp_path / "new").open("wb", buffering=0) as new:
        new.write(b"blob")
        with pytest.raises(BlobError, match="cannot be read: File not open for reading"):
            Core().import_model(new)
    for closed in (blob.open("rb"), blob.open("rb", buffering=0), io.BytesIO(b"blob")):
        closed.close()
        with pytest.raises(BlobError, match=r"cannot be read: .*closed file"):
            Core().import_model(closed)


def test_targets_that_do_not_accept_bytes_are_rejected(exporters, blobs, tmp_path) -> None:
    compiled = exporters["OPTIMIZE_SIZE"]
    closed = io.BytesIO()
    closed.close()
    with blobs["OPTIMIZE_SIZE"].open("rb") as read_only:
        for target, why in (
            (5, "exported to 5; pass a path or a stream of bytes, or None to get its bytes"),
            (io.StringIO(), "exported to <_io.StringIO"),
            (read_only, "cannot be exported to <_io.BufferedReader.*: write"),
            (closed, "cannot be exported to <_io.BytesIO.*: I/O operation on closed file"),
        ):
            with pytest.raises(NpuwUsageError, match=why):
                compiled.export_model(target)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_is_an_error_of_the_stream(exporters) -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(NpuwFault, match="No space"):
        exporters["OPTIMIZE_SIZE"].export_model(full)
