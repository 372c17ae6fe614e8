"""Inference request of a static model, with the interface of OpenVINO's ``InferRequest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.api.given_inputs import Given, Inputs
from npuw_layer.api.in_order import Turn
from npuw_layer.api.model_port import PortKey, find_port
from npuw_layer.api.request import Request
from npuw_layer.api.results import Results
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.static.bound_tensor import BoundTensor
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.port import StaticPort, tensor_port
from npuw_layer.kinds.static.variable_state import VariableState
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor


class StaticInferRequest(Request):
    """Request of a compiled model; requests share no mutable state.

    Inputs and outputs are identified as in OpenVINO: by tensor name, index or port. During an
    inference, all but ``wait``, ``wait_for``, ``cancel`` and ``transfers`` raise RequestBusy.

    Args:
        compiled: the loaded program.
        place: position among ordered requests, if requests are ordered.
    """

    def __init__(self, compiled: CompiledStatic, place: Turn | None = None) -> None:
        super().__init__(compiled.options, place)
        self._compiled = compiled
        self.transfers = Transfers()
        """Bytes copied, and bytes used in place."""
        program = self._program = compiled.programs.loaded.create_program()
        compiled.bank.bind(program, compiled.programs.loaded.inputs)
        ports = (*compiled.inputs, *compiled.outputs)
        self._bound = {
            port: BoundTensor(compiled.npu, program, port, self.transfers.of(port.any_name))
            for port in ports
        }
        self._states = [
            VariableState(
                compiled.npu,
                program,
                variable,
                self.transfers.of(f"variable {variable.port.any_name}"),
                self._run.check_idle,
            )
            for variable in compiled.variables
        ]

    @property
    def model_inputs(self) -> Sequence[StaticPort]:
        """Inputs of the model, without variables."""
        return self._compiled.inputs

    @property
    def model_outputs(self) -> Sequence[StaticPort]:
        """Outputs of the model, without variables."""
        return self._compiled.outputs

    def infer(
        self, inputs: Inputs = None, share_inputs: bool = False, share_outputs: bool = False
    ) -> Results:
        """Run one inference.

        Args:
            inputs: tensors by name, index or port, or in the order of the inputs; or the tensor of
                the only input. Arrays are copied to the request's own memory; remote tensors are
                bound, as by ``set_tensor``. Other inputs keep their tensors.
            share_inputs: no effect: the call returns after the inputs were read.
            share_outputs: return views, which the next inference overwrites, instead of copies.

        Returns:
            The outputs by name, index or port, without those bound to remote tensors.

        Raises:
            TensorError, RemoteError: a tensor does not fit, or its memory was freed.
            RequestBusy: the request is running.
            InferenceCancelled: the inference was cancelled.
            DeviceError: the device failed.
        """
        return super().infer(inputs, share_inputs, share_outputs)

    def start_async(
        self, inputs: Inputs = None, userdata: Any = None, share_inputs: bool = False
    ) -> None:
        """Start one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``; tensors that were set are read during the inference.
            userdata: argument of the callback, instead of the one given to ``set_callback``.
            share_inputs: no effect: arrays are copied to memory that the device reads.

        Raises:
            TensorError, RemoteError, RequestBusy: as for ``infer``; ``wait`` raises other errors.
        """
        super().start_async(inputs, userdata, share_inputs)

    def cancel(self) -> None:
        """Cancel the running inference; ``wait`` or ``infer`` then raises InferenceCancelled.

        A program that the device has started runs to its end. Host tensors are no longer written,
        but memory that the device writes in place is: remote tensors, and variables.
        """
        super().cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Bind an input or output to a caller's tensor, until another is bound.

        A host tensor is copied at each inference; a remote tensor of the same Core is used in
        place.

        Raises:
            TensorError: no such input or output exists, or the tensor does not fit.
            RemoteError: the remote tensor is for the other direction.
        """
        self._run.check_idle()
        self._at(key).set(as_tensor(tensor))

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Return the tensor that an input or output is bound to.

        Unless a tensor was set, this is a view of the request's own memory, which host and device
        share: reads and writes there need no copy.
        """
        self._run.check_idle()
        return self._at(key).tensor

    def query_state(self) -> Sequence[VariableState]:
        """Return the variables, which are stored in device memory."""
        return list(self._states)

    def reset_state(self) -> None:
        """Reset all variables to their initial values."""
        for state in self._states:
            state.reset()

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of copies and in-place uses."""
        compiled = self._compiled
        where = devices_report(compiled.submodels)
        return {"blob": str(compiled.origin), **where, **self.transfers.report()}

    def _given(self, inputs: Inputs, shared: bool = True) -> Given:
        """Set all given inputs; none are left to the inference."""
        self._take(super()._given(inputs))
        return {}

    def _infer(self, given: Given) -> None:
        self._run.check_wanted()
        for part in (*self._bound.values(), *self._states):
            part.before()
        self._run.check_wanted()
        self._program.run()
        self.transfers.inferences += 1
        self._run.check_wanted()
        for bound in self._bound.values():
            bound.after()

    def _take(self, given: Given) -> None:
        """Set all given inputs, or none if one does not fit."""
        ports = self._compiled.inputs
        found = [(find_port(ports, name, "input"), tensor) for name, tensor in given.items()]
        for port, tensor in found:
            port.check_tensor(tensor)
        for port, tensor in found:
            if isinstance(tensor, RemoteTensor):
                self._bound[port].set(tensor)
            else:
                self._bound[port].fill(tensor.data)

    def _values(self, shared: bool) -> dict[str, Array]:
        outputs = [self._bound[port] for port in self._compiled.outputs]
        values = ((output.port, output.value(shared)) for output in outputs)
        return {port.any_name: value for port, value in values if value is not None}

    def _at(self, key: PortKey) -> BoundTensor:
        return self._bound[tensor_port((*self._compiled.inputs, *self._compiled.outputs), key)]
