"""States of adapters without a model: padding, checks, and digests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.protocols import READ_PREFIX, Array, Memory, TensorInfo
from npuw_layer.errors import StateError
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.names import AdapterTensor, adapter_name
from npuw_layer.traits.lora.values import AdapterValues

PRODUCT = "lora_state_4__module.model.layers.0.mlp.up_proj/aten::linear/MatMul"
A, ALPHA, B = (f"{PRODUCT}.{part}" for part in ("A", "alpha", "B"))
SHAPES = {A: (6, 5), ALPHA: (1, 6), B: (7, 6)}
many = settings(max_examples=18, deadline=None)


class Reader:
    """A program that records the bindings of its inputs."""

    def __init__(self) -> None:
        self.bound: dict[str, tuple[Memory, int]] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        self.bound[name] = memory, offset

    def prepare(self) -> None:
        """Do nothing."""

    def run(self) -> None:
        """Do nothing."""

    def read(self, name: str, element: str = "<f4") -> Array:
        memory, offset = self.bound[READ_PREFIX + name]
        count = int(np.prod(SHAPES[name])) * np.dtype(element).itemsize
        return memory.data[offset : offset + count].view(element).reshape(SHAPES[name])


def infos(element: str = "f32") -> list[TensorInfo]:
    return [TensorInfo(READ_PREFIX + name, element, shape) for name, shape in SHAPES.items()]


class States(AdapterValues):
    """Adapter values, with buffers that a program reads."""

    def __init__(self, element: str = "f32") -> None:
        super().__init__(SHAPES)
        variables = [TensorInfo(name, element, shape) for name, shape in SHAPES.items()]
        self.buffers = AdapterBuffers(InterpreterDevice(), variables, self)

    def apply(self) -> None:
        self.buffers.begin()


def states(element: str = "f32") -> tuple[States, Reader]:
    made, reader = States(element), Reader()
    made.buffers.bind(reader, infos(element))
    return made, reader


def of_rank(name: str, rank: int) -> tuple[int, ...]:
    full = list(SHAPES[name])
    full[0 if name == A else 1] = rank
    return tuple(full)


values = st.floats(-4, 4, width=16)
adapters = st.integers(0, 6).flatmap(
    lambda rank: st.fixed_dictionaries(
        {name: arrays(np.float32, of_rank(name, rank), elements=values) for name in SHAPES}
    )
)


def wear(made: States, adapter: dict[str, Array]) -> None:
    for name, each in adapter.items():
        made.set(name, each)
    made.apply()


@many
@given(st.lists(adapters, min_size=1, max_size=3), st.sampled_from(["f32", "f16", "bf16"]))
def test_programs_read_the_last_values_padded_with_zeros(several, element) -> None:
    """Older values do not matter; the element type is that of the programs."""
    made, reader = states(element)
    for adapter in several:
        wear(made, adapter)
    for name, given_values in several[-1].items():
        bits = reader.read(name, {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}[element])
        found = (bits.astype(np.uint32) << 16).view(np.float32) if element == "bf16" else bits
        used = tuple(map(slice, given_values.shape))
        expected = np.zeros(SHAPES[name], np.float32)
        expected[used] = given_values
        assert np.allclose(found, expected, atol=0, rtol=2**-8 if element == "bf16" else 0)
        assert np.array_equal(made.get(name), given_values)


@many
@given(adapters, adapters)
def test_adapters_of_equal_effect_have_one_digest(first, second) -> None:
    """Adapters without effect have none, so that they share prompts with unadapted requests."""
    made, other = states()[0], states()[0]
    assert made.digest == b""
    wear(made, first)
    wear(other, second)
    nothing = [not all(each.any() for each in adapter.values()) for adapter in (first, second)]
    assert [made.digest == b"", other.digest == b""] == nothing
    same = all(np.array_equal(first[name], second[name]) for name in SHAPES)
    assert (made.digest == other.digest) == (same or all(nothing))


def test_only_changed_values_are_copied_and_only_when_applied() -> None:
    made, reader = states()
    ones = {name: np.ones(of_rank(name, 2), np.float32) for name in SHAPES}
    for name, each in ones.items():
        made.set(name, each)
    assert not any(reader.read(name).any() for name in SHAPES)
    made.apply()
    reader.read(A)[...] = 9
    made.set(ALPHA, ones[ALPHA] * 2)
    made.apply()
    assert (reader.read(A) == 9).all(), "A was not copied again"
    assert (reader.read(ALPHA)[:, :2] == 2).all()


def test_set_values_are_copies() -> None:
    made, reader = states()
    given_values = np.ones(of_rank(A, 2), np.float32)
    made.set(A, given_values)
    given_values[...] = 5
    made.apply()
    assert reader.read(A).max() == 1


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        (A, (7, 5), r"\.A' is \[rank, 5\] of rank 6 at most, not \[7, 5\].*NPUW_LLM_MAX_LORA_RANK"),
        (ALPHA, (1, 7), r"alpha' is \[1, rank\] of rank 6 at most.*NPUW_LLM_MAX_LORA_RANK"),
        (B, (7, 8), r"\.B' is \[7, rank\] of rank 6 at most.*NPUW_LLM_MAX_LORA_RANK"),
        (A, (2, 4), r"\.A' is \[rank, 5\], not \[2, 4\]; use an adapter of this model"),
        (ALPHA, (2, 2), r"is \[1, rank\], not \[2, 2\]"),
        (B, (6, 2), r"is \[7, rank\], not \[6, 2\]"),
        (ALPHA, (2,), r"is \[1, rank\], not \[2\]"),
    ],
)
def test_the_error_for_a_wrong_shape_states_name_and_shape(name, shape, why) -> None:
    made, _ = states()
    made.set(name, np.ones(of_rank(name, 1), np.float32))
    with pytest.raises(StateError, match=why):
        made.set(name, np.ones(shape, np.float32))
    assert made.get(name).shape == of_rank(name, 1), "the previous value stays"


def test_values_of_other_types_are_rejected() -> None:
    with pytest.raises(StateError, match="is float32 or float16, not int64"):
        states()[0].set(A, np.ones((1, 5), np.int64))


def test_parts_of_different_ranks_are_rejected_until_they_fit() -> None:
    made, reader = states()
    for name, rank in ((A, 3), (ALPHA, 2), (B, 3)):
        made.set(name, np.ones(of_rank(name, rank), np.float32))
    for _ in range(2):
        with pytest.raises(StateError, match="MatMul have different ranks: A 3, alpha 2, B 3"):
            made.apply()
        assert not reader.read(A).any()
    made.set(ALPHA, np.ones((1, 3), np.float32))
    made.apply()
    assert reader.read(A).any()


@pytest.mark.parametrize("empty", [(0,), (0, 5), (1, 0), (0, 0)])
def test_any_empty_tensor_has_no_effect(empty) -> None:
    made, reader = states()
    made.set(A, np.ones(of_rank(A, 3), np.float32))
    made.apply()
    made.set(A, np.empty(empty, np.float32))
    made.apply()
    assert not reader.read(A).any()
    assert made.get(A).shape == (0, 5)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (A, AdapterTensor.A),
        (ALPHA, AdapterTensor.ALPHA),
        (B, AdapterTensor.B),
        ("past_key_values.0.keypresent.0.key", None),
        ("lora_state_4_MatMul.C", None),
        ("lora_state_4_Convolution.A", None),
        ("my_lora_state_4_MatMul.A", None),
        ("lora_state_4_MatMul.A@slot1", None),
    ],
)
def test_variables_are_identified_by_their_names(name, part) -> None:
    found = adapter_name(name)
    assert (None if found is None else found.part) == part
