"""Requests of which nothing stays: each inference has its inputs, and forgets them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.async_run import AsyncRequest
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.model_port import ModelPort, PortKey, only_port
from npuw_layer.options import Options
from npuw_layer.ports import Array
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor
from npuw_layer.tensor import Tensor

AnyInput = Tensor | RemoteTensor


class StatelessRequest(AsyncRequest, ABC):
    """One user of a compiled model without state.

    Args:
        outputs: the model's.
        options: that it was compiled with.
    """

    def __init__(self, outputs: Sequence[ModelPort], options: Options) -> None:
        super().__init__(options)
        self._ports = outputs
        self._set: dict[str, AnyInput] = {}
        self._found: dict[str, Array] = {}

    @abstractmethod
    def _input(self, key: PortKey, tensor: AnyTensor) -> tuple[str, AnyInput]:
        """Name a tensor that is given.

        Raises:
            TensorError: there is no such input, or it does not fit.
        """

    @abstractmethod
    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        """Give the outputs, by name, of inputs by name."""

    def infer(self, inputs: Mapping[Any, AnyTensor] | None = None, /) -> dict[str, Array]:
        """Compute once, and wait.

        Args:
            inputs: by name, number or port. What is missing is taken from ``set_tensor``.

        Returns:
            The outputs by name.

        Raises:
            TensorError: an input is missing or does not fit.
            RemoteError: the memory of a remote tensor was freed, or is for outputs.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: a device failed.
        """

        def once() -> dict[str, Array]:
            self._infer(self._checked(inputs))
            return dict(self._found)

        return self._run.run(once)

    def start_async(
        self, inputs: Mapping[Any, AnyTensor] | None = None, /, userdata: Any = None
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``.
            userdata: for the callback, in place of what ``set_callback`` was given.

        Raises:
            RequestBusy, TensorError: as ``infer``; the rest is raised by ``wait``.
        """
        given: dict[str, AnyInput] = {}
        self._start(
            lambda: self._infer(given), userdata, lambda: given.update(self._checked(inputs))
        )

    def cancel(self) -> None:
        """Give up the running inference before its next program runs."""
        self._run.cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input for the next inferences; its values are read at each.

        Raises:
            TensorError: there is no such input, or the tensor does not fit.
            RemoteError: the tensor was made for outputs.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._set |= self._checked({key: tensor})

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Give what an input was set to, or an output of the last inference.

        Raises:
            TensorError: there is none of that name.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = key.any_name if isinstance(key, ModelPort) else key
        if name in self._found:
            return Tensor(self._found[str(name)])
        if name in self._set:
            return self._set[str(name)]
        raise TensorError(f"no tensor {name!r} yet")

    def get_output_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Give an output of the last inference by its number; the only one without."""
        return self.get_tensor(only_port(self._ports, index, "output"))

    def query_state(self) -> Sequence[Any]:
        """Nothing: no state outlives an inference, as in the original."""
        self._run.check_idle()
        return []

    def reset_state(self) -> None:
        """Nothing is to be forgotten."""
        self._run.check_idle()

    def _checked(self, inputs: Mapping[Any, AnyTensor] | None) -> dict[str, AnyInput]:
        """Name the tensors that are given."""
        named = dict(self._input(key, tensor) for key, tensor in (inputs or {}).items())
        for name, each in named.items():
            if isinstance(each, RemoteTensor) and each.properties.tensor_type is TensorType.OUTPUT:
                raise RemoteError(
                    f"{name!r} is an input; the tensor was made with TENSOR_TYPE OUTPUT"
                )
        return named

    def _infer(self, given: Mapping[str, AnyInput]) -> None:
        self._found = {}
        self._found = self._compute({**self._set, **given})
