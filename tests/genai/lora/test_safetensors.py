"""safetensors files: tensors are read, or the file is rejected, for any content."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer.lora.safetensors import read_tensors

many = settings(max_examples=30, deadline=None)


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str = "F32", shape: object = (2, 3), span: object = (0, 24)) -> object:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": span}}


def test_tensors_are_read_in_their_types_and_bf16_as_f32() -> None:
    data = np.arange(6, dtype=np.float32)
    bits = (data.view(np.uint32) >> 16).astype(np.uint16)
    content = data.tobytes() + data.astype(np.float16).tobytes() + bits.tobytes()
    header = {
        "__metadata__": {"format": "pt"},
        "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "y": {"dtype": "F16", "shape": [6], "data_offsets": [24, 36]},
        "z": {"dtype": "BF16", "shape": [3, 2], "data_offsets": [36, 48]},
        "none": {"dtype": "F32", "shape": [0, 2], "data_offsets": [48, 48]},
        "number": {"dtype": "F16", "shape": [], "data_offsets": [48, 50]},
    }
    found = read_tensors(file_of(header, content + b"\0\0"))
    assert [(v.dtype.name, v.shape) for v in found.values()] == [
        ("float32", (2, 3)),
        ("float16", (6,)),
        ("float32", (3, 2)),
        ("float32", (0, 2)),
        ("float16", ()),
    ]
    for name in "xyz":
        assert np.array_equal(found[name].reshape(-1), data)
    with pytest.raises(ValueError, match="read-only"):
        found["x"][0, 0] = 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is truncated: 0 bytes"),
        (b"\1\0\0\0\0\0\0\0", "the file is truncated: 8 bytes, a header of 1"),
        (b"\xff" * 16, "the file is truncated: 16 bytes, a header of 18446744073709551615"),
        (file_of(b"{"), "no JSON header"),
        (file_of(b"[" * 100_000), "no JSON header"),
        (file_of(b"\xff\xfe{"), "no JSON header"),
        (file_of([]), "not a JSON object"),
        (file_of({"x": 3}), "'x': dtype, shape or data_offsets"),
        (file_of(entry(shape=[-2, 3])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(shape=[2.0, 3])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(shape=[True, 3])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(shape=[1] * 9)), "'x': dtype, shape or data_offsets"),
        (file_of(entry(shape=[1 << 62, 1 << 62])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(span=[0])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(span=[-24, 0])), "'x': dtype, shape or data_offsets"),
        (file_of(entry(span=[24, 0])), "'x' has -24 bytes for F32 "),
        (file_of(entry(span=[0, 20])), "'x' has 20 bytes for F32 "),
        (file_of(entry(), bytes(23)), "the file is truncated: 'x' ends at 24 of 23 bytes"),
        (file_of(entry(shape=[1 << 40, 3], span=[0, 12 << 40])), "the file is truncated: 'x' ends"),
        (file_of(entry("I64", span=[0, 48]), bytes(48)), "'x' is I64; supported: F32, F16, BF16"),
        (file_of({**entry(), "y": entry()["x"]}, bytes(24)), "'x' and 'y' share bytes"),
    ],
)
def test_a_damaged_file_is_rejected(content, why) -> None:
    with pytest.raises(ValueError, match=why):
        read_tensors(content)


WHOLE = file_of(
    {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "F16", "shape": [3], "data_offsets": [24, 30]},
    },
    bytes(30),
)


@many
@given(st.integers(0, len(WHOLE) - 1))
def test_a_truncated_file_is_rejected(length) -> None:
    with pytest.raises(ValueError, match=r"the file (is truncated|has no JSON)"):
        read_tensors(WHOLE[:length])


@many
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4))
def test_any_bytes_are_read_or_rejected(changes) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    try:
        found = read_tensors(bytes(content))
    except ValueError:
        return
    assert sum(each.nbytes for each in found.values()) <= 2 * len(content)
