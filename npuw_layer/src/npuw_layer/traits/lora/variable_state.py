"""Tensor of an adapter as an OpenVINO variable."""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.backends.tensor import Tensor
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.lora.values import AdapterValues


class AdapterVariableState:
    """One variable of a request's adapters.

    Args:
        name: id of the variable in the model.
        adapters: adapters that the variable belongs to.
        check_idle: raises if the request is running.
    """

    def __init__(self, name: str, adapters: AdapterValues, check_idle: Callable[[], None]) -> None:
        self._name = name
        self._adapters = adapters
        self._check_idle = check_idle

    @property
    def name(self) -> str:
        """Id of the variable, as in ReadValue and Assign."""
        return self._name

    @property
    def state(self) -> Tensor:
        """Value at its own rank, of rank 0 if not set; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._adapters.get(self._name).copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Set the variable for the next inferences; rows of stored tokens stay.

        Args:
            tensor: f32 or f16: A [rank, in], alpha [1, rank] or B [out, rank], with a rank of at
                most NPUW_LLM_MAX_LORA_RANK; an empty one disables the adapter of the matmul.
                The values are copied.

        Raises:
            StateError: the tensor does not fit. A rank other than that of the adapter's other
                tensors is an error of the next inference.
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.set(self._name, values_of(tensor))

    def reset(self) -> None:
        """Disable the adapter of the matmul.

        Only this method resets an adapter: ``InferRequest.reset_state`` begins a new conversation
        and keeps adapters. The effect is the same in NPUW, where the device keeps adapters and
        openvino_genai resets only caches when a chat begins.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.reset(self._name)
