"""Runs a static model, as OpenVINO's ``InferRequest`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.api.given_inputs import Given, Inputs
from npuw_layer.api.in_order import Place
from npuw_layer.api.model_port import PortKey, find_port
from npuw_layer.api.request import Request
from npuw_layer.api.results import Results
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.static.bound_tensor import BoundTensor
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.kinds.static.variable_state import VariableState
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor


class StaticInferRequest(Request):
    """One user of a compiled model; two of them share nothing that changes.

    Inputs and outputs are named as OpenVINO does: by tensor name, number or port. While it runs,
    everything but ``wait``, ``wait_for``, ``cancel`` and ``transfers`` raises RequestBusy.

    Args:
        compiled: the program.
        place: among other requests, if there is an order.
    """

    def __init__(self, compiled: CompiledStatic, place: Place | None = None) -> None:
        super().__init__(compiled.options, place)
        self._compiled = compiled
        self.transfers = Transfers()
        """What was copied, and what was used in place, in bytes."""
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
        """Its inputs, without variables."""
        return self._compiled.inputs

    @property
    def model_outputs(self) -> Sequence[StaticPort]:
        """Its outputs, without variables."""
        return self._compiled.outputs

    def infer(
        self, inputs: Inputs = None, share_inputs: bool = False, share_outputs: bool = False
    ) -> Results:
        """Run once.

        Args:
            inputs: tensors by name, number or port, or in the order of inputs; or that of the only
                one. Arrays are copied to the request's own memory; remote tensors are bound, as
                ``set_tensor`` does. What is not given stays as it was set.
            share_inputs: makes no difference: the caller waits until they were read.
            share_outputs: give views that the next inference overwrites in place of copies.

        Returns:
            The outputs by name, number or port, without those that are bound to remote tensors.

        Raises:
            TensorError, RemoteError: a tensor does not fit, or its memory is gone.
            RequestBusy: the request is running.
            InferenceCancelled: somebody cancelled it.
            DeviceError: the device failed.
        """

        def once() -> Results:
            self._take(self._given(inputs))
            self._infer()
            return self._results(share_outputs)

        return self._run.run(once)

    def start_async(
        self, inputs: Inputs = None, userdata: Any = None, share_inputs: bool = False
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``; tensors that were set are read when it runs.
            userdata: for the callback, in place of what ``set_callback`` was given.
            share_inputs: makes no difference: arrays are copied to where the device reads them.

        Raises:
            TensorError, RemoteError, RequestBusy: as ``infer``; the rest is raised by ``wait``.
        """
        self._start(self._infer, userdata, lambda: self._take(self._given(inputs)))

    def cancel(self) -> None:
        """Give up the running inference: then ``wait``, or ``infer``, raises InferenceCancelled.

        A blob that the device has begun runs to its end. Host tensors are not written any more, but
        what the device writes in place is: remote tensors, and variables.
        """
        self._run.cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Bind an input or output to a tensor of the caller's, until another is bound.

        A host tensor is copied at each inference; a remote tensor of the same Core is used in
        place.

        Raises:
            TensorError: there is no such input or output, or the tensor does not fit.
            RemoteError: it is a remote tensor for the other side.
        """
        self._run.check_idle()
        self._at(key).set(as_tensor(tensor))

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Give what an input or output is bound to.

        Unless a tensor was set, it is the request's own memory, which host and device share:
        what is read or written there is not copied.
        """
        self._run.check_idle()
        return self._at(key).tensor

    def query_state(self) -> Sequence[VariableState]:
        """The variables, in device memory."""
        return list(self._states)

    def reset_state(self) -> None:
        """Let all variables start anew."""
        for state in self._states:
            state.reset()

    def execution_report(self) -> Mapping[str, str]:
        """What was copied and what was not, for people."""
        compiled = self._compiled
        where = devices_report(compiled.submodels)
        return {"blob": str(compiled.origin), **where, **self.transfers.report()}

    def _infer(self) -> None:
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
        """Set inputs: all that are given, or none if one does not fit."""
        ports = self._compiled.inputs
        found = [(find_port(ports, name, "input"), tensor) for name, tensor in given.items()]
        pairs = [(self._bound[port], tensor) for port, tensor in found]
        for bound, tensor in pairs:
            bound.check(tensor)
        for bound, tensor in pairs:
            if isinstance(tensor, RemoteTensor):
                bound.set(tensor)
            else:
                bound.fill(tensor.data)

    def _values(self, shared: bool) -> dict[str, Array]:
        outputs = [self._bound[port] for port in self._compiled.outputs]
        values = ((o.port, o.value if shared else o.copied_value()) for o in outputs)
        return {port.any_name: value for port, value in values if value is not None}

    def _at(self, key: PortKey) -> BoundTensor:
        if isinstance(key, int):
            raise TensorError(
                f"{key} may be an input or an output; use set_input_tensor and the like"
            )
        ports = (*self._compiled.inputs, *self._compiled.outputs)
        return self._bound[find_port(ports, key, "tensor")]
