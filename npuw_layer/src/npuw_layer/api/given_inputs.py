"""Forms of inputs in OpenVINO: by name, by index, by port, in order, or a single tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from npuw_layer.api.model_port import ModelPort, PortKey, find_port, only_port
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor

Inputs = Mapping[Any, AnyTensor] | Sequence[AnyTensor] | AnyTensor | None
"""Tensors by name, index or port; a sequence for the first inputs, in order; the tensor of the
only input; or None to use the tensors that were set."""

_INTEGERS = {
    f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)
}
"""numpy's types of integers, by OpenVINO's names."""

Given = dict[str, Tensor | RemoteTensor]
"""Tensors by the names of inputs."""


def named_inputs(inputs: Inputs, ports: Sequence[ModelPort]) -> Given:
    """Return given inputs by name.

    Args:
        inputs: in any form; each tensor is an array, a tensor, or a tensor of another runtime.
        ports: the model's inputs.

    Raises:
        TensorError: no such input exists, a value is not a tensor, or a single tensor is given and
            the model has several inputs. Unknown names pass: callers may accept more names.
    """
    if inputs is None:
        return {}
    if isinstance(inputs, Mapping):
        by_name = {port.any_name: port for port in ports}
        return {
            (name := input_name(key, ports)): _read(value, by_name.get(name))
            for key, value in inputs.items()
        }
    if isinstance(inputs, list | tuple):
        listed = cast(Sequence[AnyTensor], inputs)
        if len(listed) > len(ports):
            raise TensorError(f"{len(listed)} tensors for {_counted(ports)}")
        pairs = zip(ports, listed, strict=False)
        return {port.any_name: _read(value, port) for port, value in pairs}
    tensor = as_tensor(cast(AnyTensor, inputs))
    return {only_port(ports, None, "input").any_name: tensor}


def _read(value: AnyTensor, port: ModelPort | None) -> Tensor | RemoteTensor:
    """Return a value as a tensor; an array of integers in the port's type of integers.

    OpenVINO converts arrays of any type, and no tensors. Here, numbers stay the same.

    Raises:
        TensorError: the value is not a tensor, or the port's type has no such number.
    """
    if port is None or not isinstance(value, np.ndarray):
        return as_tensor(value)
    kind = _INTEGERS.get(port.element_type)
    if kind is None or value.dtype == kind or value.dtype.kind not in "iu":
        return as_tensor(value)
    limits = np.iinfo(kind)
    if value.size and not limits.min <= int(value.min()) <= int(value.max()) <= limits.max:
        raise TensorError(
            f"{port.any_name}: {value.dtype} from {value.min()} to {value.max()} does not fit "
            f"{port.element_type}; pass smaller numbers"
        )
    return as_tensor(value.astype(kind))


def input_name(key: object, ports: Sequence[ModelPort]) -> str:
    """Return the name of an input from a name, an index, or a port of any runtime.

    Raises:
        TensorError: no such input exists.
    """
    if isinstance(key, str):
        return key
    if not isinstance(key, int | ModelPort):
        key = getattr(key, "any_name", key)
    return find_port(ports, cast(PortKey, key), "input").any_name


def copied(given: Given) -> Given:
    """Return the inputs with private copies of arrays; remote tensors are not copied."""
    return {
        name: Tensor(one.data.copy()) if isinstance(one, Tensor) else one
        for name, one in given.items()
    }


def _counted(ports: Sequence[ModelPort]) -> str:
    names = ", ".join(port.any_name for port in ports)
    return f"{len(ports)} inputs: {names}" if len(ports) != 1 else f"one input: {names}"
