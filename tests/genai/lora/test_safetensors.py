"""Files of tensors: read as they are, or refused; whatever is in them."""

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
        (b"", "it is cut off: 0 bytes"),
        (b"\1\0\0\0\0\0\0\0", "it is cut off: 8 bytes, and a header of 1"),
        (b"\xff" * 16, "it is cut off: 16 bytes, and a header of 18446744073709551615"),
        (file_of(b"{"), "no JSON header"),
        (file_of(b"[" * 100_000), "no JSON header"),
        (file_of(b"\xff\xfe{"), "no JSON header"),
        (file_of([]), "no JSON object"),
        (file_of({"x": 3}), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(shape=[-2, 3])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(shape=[2.0, 3])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(shape=[True, 3])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(shape=[1] * 9)), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(shape=[1 << 62, 1 << 62])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(span=[0])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(span=[-24, 0])), "dtype, shape or data_offsets of 'x'"),
        (file_of(entry(span=[24, 0])), "'x' has -24 bytes for F32 "),
        (file_of(entry(span=[0, 20])), "'x' has 20 bytes for F32 "),
        (file_of(entry(), bytes(23)), "it is cut off: 'x' ends at 24 of 23 bytes"),
        (file_of(entry(shape=[1 << 40, 3], span=[0, 12 << 40])), "it is cut off: 'x' ends"),
        (file_of(entry("I64", span=[0, 48]), bytes(48)), "'x' is I64; adapters are F32, F16, BF16"),
        (file_of({**entry(), "y": entry()["x"]}, bytes(24)), "'x' and 'y' share bytes"),
    ],
)
def test_what_is_damaged_is_refused(content, why) -> None:
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
def test_no_beginning_of_a_file_is_one(length) -> None:
    with pytest.raises(ValueError, match=r"it (is cut off|has no JSON)"):
        read_tensors(WHOLE[:length])


@many
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4))
def test_any_bytes_are_read_or_refused(changes) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    try:
        found = read_tensors(bytes(content))
    except ValueError:
        return
    assert sum(each.nbytes for each in found.values()) <= 2 * len(content)
