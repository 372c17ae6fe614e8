"""Variables of a stateful model: its state between inferences, in device memory.

One buffer is bound to both the input that reads the old value and the output that writes the new
one, so nothing is copied between inferences. STATE_IN_PLACE requests this from the compiler, which
then orders each read before the write.

Source: docs/reference/npuw.md#variable-states (ZeroVariableState).
"""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.api.transfers import TensorTransfers
from npuw_layer.backends.protocols import (
    Array,
    ImportsMemory,
    Program,
)
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError
from npuw_layer.kinds.static.compiled import Variable
from npuw_layer.remote.memory import MemoryRange, make_memory
from npuw_layer.remote.properties import RemoteProperties, TensorType
from npuw_layer.remote.tensor import RemoteTensor


class VariableState:
    """A variable of one request.

    Args:
        device: the device of the request.
        program: the program that the variable is bound to.
        variable: the variable's ports and initial value.
        transfers: counters of the variable's bytes.
        check_idle: raises if the request is running.
    """

    def __init__(
        self,
        device: ImportsMemory,
        program: Program,
        variable: Variable,
        transfers: TensorTransfers,
        check_idle: Callable[[], None],
    ) -> None:
        self._device = device
        self._program = program
        self._variable = variable
        self._transfers = transfers
        self._check_idle = check_idle
        self._bound: MemoryRange | None = None
        port, properties = variable.port, RemoteProperties()
        span = make_memory(device, properties, port.byte_size)
        self._tensor = RemoteTensor(device, port.element_type, port.shape, span, properties)
        transfers.bound_to = "state in device memory"
        self._tensor.copy_from(variable.initial)

    @property
    def name(self) -> str:
        """The variable's id, as in ReadValue and Assign."""
        return self._variable.port.any_name

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of the variable."""
        return self._variable.port.shape

    @property
    def state(self) -> Tensor | RemoteTensor:
        """The current value in place, in the device's type (bf16 as raw bits).

        The value may be set: host values are copied; a remote tensor of the same context replaces
        the buffer.

        Raises:
            TensorError: the value does not fit.
            RemoteError: the tensor is of another context, or not made for input and output.
            RequestBusy: the request is running.
        """
        self._check_idle()
        held = self._tensor
        return Tensor(held.data) if held.span().memory.host_visible else held

    @state.setter
    def state(self, value: Tensor | RemoteTensor | Array) -> None:
        self._check_idle()
        if isinstance(value, RemoteTensor):
            self._variable.port.check(value.element_type, value.shape)
            self._tensor = self._checked(value)
            return
        values = value.data if isinstance(value, Tensor) else value
        self._variable.port.check_array(values)
        self._tensor.copy_from(values)
        self._transfers.host_to_device += self._variable.port.byte_size

    def reset(self) -> None:
        """Reset the variable to its initial value.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._tensor.copy_from(self._variable.initial)

    def before(self) -> None:
        """Bind the buffer for an inference, if it has changed.

        Raises:
            RemoteError: the memory of a remote tensor was freed.
        """
        span = self._tensor.span()
        if span is not self._bound:
            self._bound = None  # stays None if a binding fails
            for argument in self._variable.arguments:
                self._program.bind(argument, span.memory, span.offset)
            self._bound = span
        self._transfers.in_place += self._variable.port.byte_size

    def _checked(self, tensor: RemoteTensor) -> RemoteTensor:
        if not tensor.is_of(self._device):
            raise RemoteError(
                f"variable {self.name!r}: the tensor is of another context; set its values instead"
            )
        if tensor.properties.tensor_type is not TensorType.BINDED:
            raise RemoteError(
                f"variable {self.name!r} is read and written; TENSOR_TYPE is BINDED, not "
                f"{tensor.properties.tensor_type}"
            )
        return tensor
