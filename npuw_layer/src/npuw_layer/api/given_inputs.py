"""The forms in which OpenVINO's users give inputs: by name, by number, by port, in order, alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from npuw_layer.api.model_port import ModelPort, PortKey, find_port, only_port
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor

Inputs = Mapping[Any, AnyTensor] | Sequence[AnyTensor] | AnyTensor | None
"""Tensors by name, number or port; those of the first inputs, in their order; that of the only
input; or none, so that all are what they were set to."""

Given = dict[str, Tensor | RemoteTensor]
"""Tensors by the names of inputs."""


def named_inputs(inputs: Inputs, ports: Sequence[ModelPort]) -> Given:
    """Name what is given.

    Args:
        inputs: in any form; each tensor is an array, a tensor, or one of another runtime's.
        ports: the model's inputs.

    Raises:
        TensorError: there is no such input; a tensor is none; or it is one alone, and the model has
            several inputs. A name that no input has is left to whoever knows more names.
    """
    if inputs is None:
        return {}
    if isinstance(inputs, Mapping):
        return {input_name(key, ports): as_tensor(value) for key, value in inputs.items()}
    if isinstance(inputs, list | tuple):
        listed = cast(Sequence[AnyTensor], inputs)
        if len(listed) > len(ports):
            raise TensorError(f"{len(listed)} tensors for {_counted(ports)}")
        pairs = zip(ports, listed, strict=False)
        return {port.any_name: as_tensor(value) for port, value in pairs}
    tensor = as_tensor(cast(AnyTensor, inputs))
    return {only_port(ports, None, "input").any_name: tensor}


def input_name(key: object, ports: Sequence[ModelPort]) -> str:
    """Give the name that a caller means by a name, a number or a port, of whichever runtime.

    Raises:
        TensorError: no input is that.
    """
    if isinstance(key, str):
        return key
    if not isinstance(key, int | ModelPort):
        key = getattr(key, "any_name", key)
    return find_port(ports, cast(PortKey, key), "input").any_name


def copied(given: Given) -> Given:
    """The same, with arrays that nobody else writes to; remote tensors stay what they are."""
    return {
        name: Tensor(one.data.copy()) if isinstance(one, Tensor) else one
        for name, one in given.items()
    }


def _counted(ports: Sequence[ModelPort]) -> str:
    names = ", ".join(port.any_name for port in ports)
    return f"{len(ports)} inputs: {names}" if len(ports) != 1 else f"one input: {names}"
