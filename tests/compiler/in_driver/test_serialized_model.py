"""Serialized models: each length is checked, as the bytes may come from anywhere."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.errors import BadModel
from compiler_layer.in_driver.serialized_model import read_serialized_model, write_serialized_model

WHOLE = write_serialized_model((7, 6), b"<net/>", b"weights")


def test_a_model_is_read_as_it_was_written() -> None:
    model = read_serialized_model(memoryview(WHOLE))
    assert (model.version, model.xml, model.weights) == ((7, 6), b"<net/>", b"weights")


def test_weights_stay_where_they_are() -> None:
    buffer = bytearray(WHOLE)
    model = read_serialized_model(memoryview(buffer))
    buffer[-1:] = b"!"
    assert bytes(model.weights) == b"weight!"


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "0 bytes are too few"),
        (WHOLE[:7], "7 bytes are too few"),
        (WHOLE[:12], "before the size of the XML"),
        (WHOLE[:20], "6 bytes of XML, but 4 follow"),
        (WHOLE[:25], "before the size of the weights"),
        (WHOLE[:-1], "7 bytes of weights, but 6 follow"),
        (WHOLE + b"?", "1 bytes follow the weights"),
        (struct.pack("<HHI", 7, 6, 3) + WHOLE[8:], "3 elements instead of 2"),
        (WHOLE[:8] + b"\xff" * 8 + WHOLE[16:], "18446744073709551615 bytes of XML"),
    ],
)
def test_a_damaged_model_is_rejected(damaged: bytes, reason: str) -> None:
    with pytest.raises(BadModel, match=reason):
        read_serialized_model(memoryview(damaged))


@given(st.binary(max_size=64))
def test_any_bytes_are_rejected_or_read(content: bytes) -> None:
    try:
        model = read_serialized_model(memoryview(content))
    except BadModel:
        return
    assert write_serialized_model(model.version, model.xml, bytes(model.weights)) == content
