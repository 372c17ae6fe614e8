"""Weights outside of a blob: names encode their location, and a damaged name is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.errors import BadModel, CompilerUsageError
from compiler_layer.files import FileView, mapped_file
from compiler_layer.weights import WeightRef

VALUES = np.arange(12, dtype=np.float32)


@pytest.fixture
def ref(tmp_path: Path) -> WeightRef:
    file = tmp_path / "model.bin"
    file.write_bytes(b"head" + VALUES.tobytes())
    return WeightRef.of(FileView(str(file), 4, VALUES.nbytes, "f32"), "f16")


def test_a_name_resolves_to_the_bytes_in_the_requested_type(ref: WeightRef, tmp_path: Path) -> None:
    again = WeightRef.parse(ref.name)
    assert again == ref
    assert bytes(again.read(tmp_path, (3, 4))) == VALUES.astype(np.float16).tobytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@model.bin", "@../model.bin"),
        ("_f32_", "_f33_"),
        ("vpux_ow_", "vpux_"),
        ("_48_", "_x_"),
        ("_48_", f"_{'1' * 5000}_"),
    ],
)
def test_a_name_that_is_not_a_weight_of_the_folder_is_refused(
    ref: WeightRef, old: str, new: str
) -> None:
    with pytest.raises(CompilerUsageError):
        WeightRef.parse(ref.name.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [("@model.bin", "@other.bin"), ("_48_", "_44_"), ("vpux_ow_4_", "vpux_ow_9_")],
)
def test_a_missing_weight_is_one_clear_error(
    ref: WeightRef, tmp_path: Path, old: str, new: str
) -> None:
    with pytest.raises(BadModel, match=r"\.bin"):
        WeightRef.parse(ref.name.replace(old, new)).read(tmp_path, (3, 4))


def test_a_replaced_file_is_mapped_again(tmp_path: Path) -> None:
    """The new file may have the same size and time, as copies that keep times have."""
    path, other = tmp_path / "model.bin", tmp_path / "other.bin"
    for file, byte in ((path, b"a"), (other, b"b")):
        file.write_bytes(byte * 8)
        os.utime(file, ns=(1, 1))
    assert bytes(mapped_file(str(path))) == b"a" * 8
    other.replace(path)
    assert bytes(mapped_file(str(path))) == b"b" * 8
