"""Base of stateless requests, whose inferences depend only on their inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from npuw_layer.api.given_inputs import Given, Inputs
from npuw_layer.api.in_order import Turn
from npuw_layer.api.model_port import ModelPort, PortKey
from npuw_layer.api.request import Request
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.options import Options
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor

AnyInput = Tensor | RemoteTensor

In = TypeVar("In", bound=ModelPort)
Out = TypeVar("Out", bound=ModelPort)


class StatelessRequest(Request, ABC, Generic[In, Out]):
    """Request of a compiled model without state.

    Args:
        options: options of the compilation.
        inputs, outputs: ports of the model.
        place: position among ordered requests, if requests are ordered.
    """

    def __init__(
        self,
        options: Options,
        inputs: Sequence[In],
        outputs: Sequence[Out],
        place: Turn | None = None,
    ) -> None:
        super().__init__(options, place)
        self._inputs, self._outputs = inputs, outputs
        self._set: dict[str, AnyInput] = {}
        self._found: dict[str, Array] = {}

    @property
    def model_inputs(self) -> Sequence[In]:
        """The model's inputs."""
        return self._inputs

    @property
    def model_outputs(self) -> Sequence[Out]:
        """The model's outputs."""
        return self._outputs

    @abstractmethod
    def _input(self, key: PortKey, tensor: AnyInput) -> tuple[str, AnyInput]:
        """Return the name of an input, and its checked tensor.

        Raises:
            TensorError: no such input exists, or the tensor does not fit.
        """

    @abstractmethod
    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        """Compute the outputs by name from inputs by name."""

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input for the following inferences; each reads its values.

        Raises:
            TensorError: no such input exists, or the tensor does not fit.
            RemoteError: the tensor was made for outputs.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._set |= self._checked({key: as_tensor(tensor)})

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Return the tensor set for an input, or an output of the last inference.

        Raises:
            TensorError: no such tensor exists.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = key.any_name if isinstance(key, ModelPort) else key
        if name in self._found:
            return Tensor(self._found[str(name)])
        if name in self._set:
            return self._set[str(name)]
        raise TensorError(f"no tensor {name!r} yet; set it, or run an inference first")

    def query_state(self) -> Sequence[Any]:
        """Return an empty list: no state outlives an inference, as in OpenVINO."""
        self._run.check_idle()
        return []

    def reset_state(self) -> None:
        """Do nothing: the model has none."""
        self._run.check_idle()

    def _values(self, shared: bool) -> dict[str, Array]:
        del shared  # no inference writes to earlier outputs
        return dict(self._found)

    def _given(self, inputs: Inputs, shared: bool = True) -> Given:
        return self._checked(super()._given(inputs, shared))

    def _checked(self, inputs: Mapping[Any, AnyInput]) -> dict[str, AnyInput]:
        """Return checked tensors by name."""
        named = dict(self._input(key, tensor) for key, tensor in inputs.items())
        for name, each in named.items():
            if isinstance(each, RemoteTensor) and each.properties.tensor_type is TensorType.OUTPUT:
                raise RemoteError(f"{name!r} is an input; its tensor has TENSOR_TYPE OUTPUT")
        return named

    def _infer(self, given: Mapping[str, AnyInput]) -> None:
        self._found = {}
        self._found = self._compute({**self._set, **given})
