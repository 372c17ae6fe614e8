"""The layer map: its section is read back as written, or rejected if damaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.layer_map import (
    QUEUE_KINDS,
    Layer,
    LayerMapError,
    decode_layer_map,
    encode_layer_map,
)

LAYERS = st.lists(
    st.builds(Layer, st.text(), st.integers(0, 1 << 40), st.text()), min_size=1, max_size=6
)


@given(layers=LAYERS, data=st.data())
def test_a_written_layer_map_is_read_back(layers: list[Layer], data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, len(layers) - 1), max_size=9)
    keys = st.tuples(st.sampled_from(QUEUE_KINDS), st.integers(0, 5))
    tasks = data.draw(st.dictionaries(keys, numbers))
    found = decode_layer_map(encode_layer_map(layers, tasks))
    assert list(found.layers) == layers
    assert {key: list(value) for key, value in found.tasks.items()} == tasks


@given(cut=st.integers(1, 60), place=st.integers(0, 200), value=st.integers(0, 255))
def test_a_damaged_section_is_read_or_rejected(cut: int, place: int, value: int) -> None:
    data = bytearray(
        encode_layer_map([Layer("a", 1, "Add"), Layer("bc", 2)], {("dpu", 0): [0, 1, 1]})
    )
    with pytest.raises(LayerMapError):
        decode_layer_map(bytes(data[: max(0, len(data) - cut)]))
    data[place % len(data)] = value
    try:
        found = decode_layer_map(bytes(data))
    except LayerMapError:
        return
    assert all(np.all(numbers < len(found.layers)) for numbers in found.tasks.values())
