"""Runs a static model, as OpenVINO's ``InferRequest`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.async_run import AsyncRequest
from npuw_layer.devices.report import devices_report
from npuw_layer.errors import TensorError
from npuw_layer.model_port import PortKey, find_port
from npuw_layer.ports import Array
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor
from npuw_layer.static.bound_tensor import BoundTensor
from npuw_layer.static.compiled import CompiledStatic
from npuw_layer.static.port import StaticPort
from npuw_layer.static.variable_state import VariableState
from npuw_layer.tensor import Tensor
from npuw_layer.transfers import Transfers


class StaticInferRequest(AsyncRequest):
    """One user of a compiled model; two of them share nothing that changes.

    Inputs and outputs are named as OpenVINO does: by tensor name, number or port. While it runs,
    everything but ``wait``, ``wait_for``, ``cancel`` and ``transfers`` raises RequestBusy.

    Args:
        compiled: the program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        super().__init__(compiled.options)
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

    def infer(
        self,
        inputs: Mapping[Any, AnyTensor] | AnyTensor | None = None,
        /,
        *,
        share_outputs: bool = False,
    ) -> dict[str, Array]:
        """Run once.

        Args:
            inputs: values by name, number or port; or those of the only input. Arrays are copied to
                the request's own memory; remote tensors are bound, as ``set_tensor`` does. What is
                not given stays as it was set.
            share_outputs: give views that the next inference overwrites in place of copies.

        Returns:
            The outputs by name, without those that are bound to remote tensors.

        Raises:
            TensorError, RemoteError: a tensor does not fit, or its memory is gone.
            RequestBusy: the request is running.
            InferenceCancelled: somebody cancelled it.
            DeviceError: the device failed.
        """

        def once() -> dict[str, Array]:
            self._take(inputs)
            self._infer()
            return self._outputs(share_outputs)

        return self._run.run(once)

    def start_async(
        self,
        inputs: Mapping[Any, AnyTensor] | AnyTensor | None = None,
        /,
        userdata: Any = None,
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``; tensors that were set are read when it runs.
            userdata: for the callback, in place of what ``set_callback`` was given.

        Raises:
            TensorError, RemoteError, RequestBusy: as ``infer``; the rest is raised by ``wait``.
        """
        self._start(self._infer, userdata, lambda: self._take(inputs))

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

    def set_input_tensor(self, *index_and_tensor: Any) -> None:
        """Bind an input: ``(index, tensor)``, or ``(tensor)`` for the only one."""
        self._set_by_index(self._compiled.inputs, "input", index_and_tensor)

    def set_output_tensor(self, *index_and_tensor: Any) -> None:
        """Bind an output: ``(index, tensor)``, or ``(tensor)`` for the only one."""
        self._set_by_index(self._compiled.outputs, "output", index_and_tensor)

    def get_input_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Give what an input is bound to; that of the only one without an index."""
        return self.get_tensor(_numbered(self._compiled.inputs, index, "input"))

    def get_output_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Give what an output is bound to; that of the only one without an index."""
        return self.get_tensor(_numbered(self._compiled.outputs, index, "output"))

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

    def _take(self, inputs: Mapping[Any, AnyTensor] | AnyTensor | None) -> None:
        """Set inputs: all that are given, or none if one does not fit."""
        if inputs is None:
            return
        given: Mapping[Any, AnyTensor]
        if isinstance(inputs, Mapping):
            given = inputs
        else:
            given = {_numbered(self._compiled.inputs, None, "input"): inputs}
        ports = self._compiled.inputs
        found = [(find_port(ports, key, "input"), as_tensor(x)) for key, x in given.items()]
        pairs = [(self._bound[port], tensor) for port, tensor in found]
        for bound, tensor in pairs:
            bound.check(tensor)
        for bound, tensor in pairs:
            if isinstance(tensor, RemoteTensor):
                bound.set(tensor)
            else:
                bound.fill(tensor.data)

    def _outputs(self, shared: bool) -> dict[str, Array]:
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

    def _set_by_index(self, ports: Sequence[StaticPort], side: str, given: Sequence[Any]) -> None:
        if len(given) not in (1, 2):
            raise TensorError(f"set_{side}_tensor takes (index, tensor) or (tensor)")
        index = given[0] if len(given) == 2 else None
        self.set_tensor(_numbered(ports, index, side), given[-1])


def _numbered(ports: Sequence[StaticPort], index: int | None, side: str) -> StaticPort:
    if index is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; say which by its number")
    return find_port(ports, index or 0, side)
