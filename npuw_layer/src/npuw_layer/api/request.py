"""Base of requests to models of all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.api.async_run import AsyncRequest
from npuw_layer.api.given_inputs import Given, Inputs, copied, named_inputs
from npuw_layer.api.model_port import ModelPort, only_port
from npuw_layer.api.results import Results
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import (
    Tensor,
    Uncopied,
)
from npuw_layer.errors import TensorError
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor


class Request(Uncopied, AsyncRequest, ABC):
    """Request of a compiled model."""

    @property
    @abstractmethod
    def model_inputs(self) -> Sequence[ModelPort]:
        """Inputs of the model."""

    @property
    @abstractmethod
    def model_outputs(self) -> Sequence[ModelPort]:
        """Outputs of the model."""

    @abstractmethod
    def infer(
        self, inputs: Inputs = None, share_inputs: bool = False, share_outputs: bool = False
    ) -> Results:
        """Run one inference synchronously."""

    @abstractmethod
    def set_tensor(self, key: Any, tensor: AnyTensor, /) -> None:
        """Set an input or output for the following inferences."""

    @abstractmethod
    def get_tensor(self, key: Any, /) -> Tensor | RemoteTensor:
        """Return the tensor of an input or output."""

    @abstractmethod
    def _values(self, shared: bool) -> Mapping[str, Array]:
        """Return the outputs of the last inference by name; views if ``shared`` allows them."""

    def __call__(
        self, inputs: Inputs = None, share_inputs: bool = True, share_outputs: bool = False
    ) -> Results:
        """Run one inference, as ``infer`` does."""
        return self.infer(inputs, share_inputs, share_outputs)

    @property
    def results(self) -> Results:
        """Outputs of the last inference; the next one may overwrite them.

        Raises:
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        return self._results(shared=True)

    def set_input_tensor(self, *index_and_tensor: Any) -> None:
        """Set an input: ``(index, tensor)``, or ``(tensor)`` for the only one."""
        self._set_by_index(self.model_inputs, "input", index_and_tensor)

    def set_output_tensor(self, *index_and_tensor: Any) -> None:
        """Set an output: ``(index, tensor)``, or ``(tensor)`` for the only one."""
        self._set_by_index(self.model_outputs, "output", index_and_tensor)

    def get_input_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Return an input's tensor; without an index, that of the only input."""
        return self.get_tensor(only_port(self.model_inputs, index, "input"))

    def get_output_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Return an output's tensor; without an index, that of the only output."""
        return self.get_tensor(only_port(self.model_outputs, index, "output"))

    def _given(self, inputs: Inputs, shared: bool = True) -> Given:
        """Return inputs by name; arrays that are not shared are copied.

        Raises:
            TensorError: a value is not a tensor, or no such input exists.
        """
        given = named_inputs(inputs, self.model_inputs)
        return given if shared else copied(given)

    def _results(self, shared: bool) -> Results:
        return Results(self.model_outputs, self._values(shared))

    def _set_by_index(self, ports: Sequence[ModelPort], side: str, given: Sequence[Any]) -> None:
        if len(given) not in (1, 2):
            raise TensorError(f"set_{side}_tensor accepts (index, tensor) or (tensor)")
        index = given[0] if len(given) == 2 else None
        self.set_tensor(only_port(ports, index, side), given[-1])
