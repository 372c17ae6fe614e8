"""A variable of an adapter as OpenVINO shows it."""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.backends.tensor import Tensor
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.lora.values import AdapterValues


class AdapterVariableState:
    """One variable of a request's adapters.

    Args:
        name: its id in the model.
        adapters: whose.
        check_idle: raises if the request is running.
    """

    def __init__(self, name: str, adapters: AdapterValues, check_idle: Callable[[], None]) -> None:
        self._name = name
        self._adapters = adapters
        self._check_idle = check_idle

    @property
    def name(self) -> str:
        """The variable's id, as in ReadValue and Assign."""
        return self._name

    @property
    def state(self) -> Tensor:
        """What it was set to, at its own rank; of rank 0 if to nothing. A copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._adapters.get(self._name).copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Set it for the next inferences; tokens that are stored stay as they were computed.

        Args:
            tensor: f32 or f16: A [rank, in], alpha [1, rank] or B [out, rank], with a rank of
                NPUW_LLM_MAX_LORA_RANK at most; an empty one switches what is added to the product
                off. The values are copied.

        Raises:
            StateError: it does not fit. If its rank is not that of the other two, the next
                inference says so.
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.set(self._name, values_of(tensor))

    def reset(self) -> None:
        """Switch what is added to the product off.

        Only this resets an adapter: ``InferRequest.reset_state`` begins a new conversation and
        keeps adapters. So it is, in effect, in NPUW, where the device keeps what it was given, and
        openvino_genai resets caches alone when a chat begins.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.reset(self._name)
