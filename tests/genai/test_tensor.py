"""Tensors: openvino.Tensor's reading interface, and the objects that are accepted as tensors."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

from genai_layer import PromptError, Tensor


def openvinos(tensor: Tensor | openvino.Tensor) -> list[object]:
    """Return all that a script reads of a tensor."""
    return [
        repr(tensor),
        str(tensor),
        repr(tensor.shape),
        str(tensor.get_shape()),
        list(tensor.shape),
        tensor.shape == [2, 3],
        tensor.shape == (2, 3),
        tensor.shape != [2, 4],
        len(tensor.get_shape()),
        repr(tensor.element_type),
        tensor.get_element_type().get_type_name(),
        tensor.size,
        tensor.get_size(),
        tensor.byte_size,
        tensor.get_byte_size(),
        tensor.data.tolist(),
        tensor.data.dtype,
        tensor.data.flags.writeable,
    ]


@pytest.mark.parametrize(
    "kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
)
def test_a_tensor_reads_like_openvinos(kind: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind)
    assert openvinos(Tensor(array)) == openvinos(openvino.Tensor(array))


def test_a_tensor_copies_its_elements_and_shares_them_by_data() -> None:
    array = np.array([[1, 2]])
    tensor = Tensor(array)
    array[0, 0] = 9
    tensor.data[0, 1] = 7
    assert tensor.data.tolist() == [[1, 7]]


def test_a_tensor_converts_to_an_array() -> None:
    tensor = Tensor([[1, 2]])
    assert np.array(tensor).tolist() == [[1, 2]]
    assert np.asarray(tensor, np.float32).dtype == np.float32
    assert np.asarray(tensor) is tensor.data


@pytest.mark.parametrize(
    "given", [[[1, 2]], ((1, 2),), np.array([[1, 2]]), openvino.Tensor(np.array([[1, 2]]))]
)
def test_lists_arrays_and_openvinos_tensors_make_a_tensor(given) -> None:
    assert Tensor(given).data.tolist() == [[1, 2]]
    assert Tensor(Tensor(given)).get_element_type().get_type_name() == "i64"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1], [2, 3]], "different lengths"),
        (5, "array = 5: pass a tensor"),
        ("ab", "array = 'ab': pass a tensor"),
        (np.zeros(2, np.complex64), "complex64"),
        (["ab"], "element type"),
    ],
)
def test_other_objects_are_rejected(given, message) -> None:
    with pytest.raises(PromptError, match=message):
        Tensor(given)
