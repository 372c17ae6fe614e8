"""Request that runs a static model for each item of a batch; see ``kinds.static.batch``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npuw_layer.api.given_inputs import copied
from npuw_layer.api.in_order import Turn
from npuw_layer.api.model_port import OPEN, PortKey, find_port, only_port
from npuw_layer.api.stateless_request import AnyInput, StatelessRequest
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.static.bound_tensor import BoundTensor
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.port import StaticPort, tensor_port
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor, values_of


class BatchedInferRequest(StatelessRequest[StaticPort, StaticPort]):
    """Request of a model whose batches run item by item.

    For each item, an inference copies the inputs to device memory, runs the program, and copies the
    outputs to their place in the batch. Items run sequentially, in device memory for one item.

    Args:
        compiled: the program of one item.
        inputs, outputs: ports of the model, with their batch.
        place: position among ordered requests, if requests are ordered.
    """

    def __init__(
        self,
        compiled: CompiledStatic,
        inputs: Sequence[StaticPort],
        outputs: Sequence[StaticPort],
        place: Turn | None = None,
    ) -> None:
        super().__init__(compiled.options, inputs, outputs, place)
        self._compiled = compiled
        self.transfers = Transfers()
        """Bytes copied."""
        program = self._program = compiled.programs.loaded.create_program()
        compiled.bank.bind(program, compiled.programs.loaded.inputs)
        self._bound = {
            port.any_name: BoundTensor(
                compiled.npu, program, port, self.transfers.of(port.any_name)
            )
            for port in (*compiled.inputs, *compiled.outputs)
        }
        """Bindings of one item, by port name."""
        self._lists: dict[str, list[AnyInput]] = {}
        """Inputs set item by item."""
        self._targets: dict[str, AnyInput] = {}
        """Destinations of outputs."""

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input or output; each following inference reads or writes its values.

        Raises:
            TensorError: no such input or output exists, or the tensor does not fit.
            RemoteError: the remote tensor is for the other direction.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        port = self._at(key)
        given = as_tensor(tensor)
        if port.is_input:
            super().set_tensor(port, tensor)
            self._lists.pop(port.any_name, None)
            return
        port.check_tensor(given)
        self._targets[port.any_name] = given

    def set_tensors(self, key: PortKey, tensors: Sequence[AnyTensor], /) -> None:
        """Set an input to one tensor [1, …] per item, for the following inferences.

        Raises:
            TensorError: no such input exists, or a tensor does not fit.
            RemoteError: a remote tensor was made for outputs.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        port = find_port(self._inputs, key, "input")
        given = [as_tensor(tensor) for tensor in tensors]
        batch = port.partial_shape[0]
        if not given or batch not in (OPEN, len(given)):
            wanted = "a tensor" if batch == OPEN else f"{batch} tensors, one"
            raise TensorError(
                f"input {port.any_name!r} takes {wanted} for each item, not {len(given)} tensors"
            )
        for tensor in given:
            self._bound[port.any_name].port.check_tensor(tensor)
        self._set.pop(port.any_name, None)
        self._lists[port.any_name] = given

    def set_input_tensors(self, *index_and_tensors: Any) -> None:
        """Set an input by index, ``(index, tensors)``, or the only input, ``(tensors)``."""
        if len(index_and_tensors) not in (1, 2):
            raise TensorError("set_input_tensors takes (index, tensors) or (tensors)")
        index = index_and_tensors[0] if len(index_and_tensors) == 2 else None
        self.set_tensors(only_port(self._inputs, index, "input"), index_and_tensors[-1])

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Return the tensor set for an input, or an output of the last inference.

        Raises:
            TensorError: the tensor is not set yet, or was set item by item.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = self._at(key).any_name
        return self._targets[name] if name in self._targets else super().get_tensor(name)

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the copies."""
        compiled = self._compiled
        where = devices_report(compiled.submodels)
        return {"blob": str(compiled.origin), **where, **self.transfers.report()}

    def _at(self, key: PortKey) -> StaticPort:
        return tensor_port((*self._inputs, *self._outputs), key)

    def _input(self, key: PortKey, tensor: AnyInput) -> tuple[str, AnyInput]:
        port = find_port(self._inputs, key, "input")
        port.check_tensor(tensor)
        return port.any_name, tensor

    def _infer(self, given: Mapping[str, AnyInput]) -> None:
        """Keep given inputs as set inputs, as OpenVINO does, and run."""
        kept = copied(dict(given))
        self._set |= kept
        for name in kept:
            self._lists.pop(name, None)
        super()._infer({})

    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        batches = {port.any_name: self._batch(port, inputs) for port in self._inputs}
        counts = {name: len(items) for name, items in batches.items()}
        if len({*counts.values()}) != 1:
            listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            raise TensorError(f"the inputs differ in their numbers of items: {listed}")
        (count,) = {*counts.values()}
        found = {
            port.any_name: self._place(port, count, self._targets.get(port.any_name))
            for port in self._outputs
        }
        for number in range(count):
            self._run.check_wanted()
            self._run_item({name: items[number] for name, items in batches.items()})
            for name, values in found.items():
                values[number] = self._bound[name].tensor.data[0]
                self.transfers.of(name).device_to_host += values[number].nbytes
        self._deliver(found)
        return found

    def _batch(self, port: StaticPort, inputs: Mapping[str, AnyInput]) -> Sequence[Array]:
        """Return the items of an input, without the batch dimension."""
        name = port.any_name
        if name in inputs:
            return list(values_of(inputs[name]))
        if name in self._lists:
            return [values_of(one)[0] for one in self._lists[name]]
        raise TensorError(f"input {name!r} is not set")

    def _run_item(self, item: Mapping[str, Array]) -> None:
        for name, values in item.items():
            self._bound[name].fill(values[None])
        for bound in self._bound.values():
            bound.before()
        self._program.run()
        self.transfers.inferences += 1

    def _place(self, port: StaticPort, count: int, target: AnyInput | None) -> Array:
        """Return the array that gathers an output: the caller's own array, if set.

        Raises:
            TensorError: the set tensor is for another number of items.
        """
        shape = (count, *port.partial_shape[1:])
        if target is not None and target.shape != shape:
            raise TensorError(
                f"output {port.any_name!r} is {list(shape)}, but its tensor is {list(target.shape)}"
            )
        if isinstance(target, Tensor):
            return target.data
        item = self._bound[port.any_name].tensor.data
        return np.empty(shape, item.dtype)

    def _deliver(self, found: dict[str, Array]) -> None:
        """Copy outputs to their remote tensors, and remove these outputs from the results."""
        for name, target in self._targets.items():
            if isinstance(target, RemoteTensor):
                target.copy_from(found.pop(name))
