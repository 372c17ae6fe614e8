"""Base of requests to models of all kinds."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

from npuw_layer.api.async_run import AsyncRun
from npuw_layer.api.given_inputs import Given, Inputs, copied, named_inputs
from npuw_layer.api.in_order import Turn
from npuw_layer.api.model_port import ModelPort, only_port
from npuw_layer.api.results import Results
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import (
    Tensor,
    Uncopied,
)
from npuw_layer.errors import NpuwUsageError, TensorError
from npuw_layer.execution.profiling.info import ProfilingInfo
from npuw_layer.execution.profiling.profile import make_profile
from npuw_layer.options import Options
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor


class Request(Uncopied, ABC):
    """Request of a compiled model.

    Args:
        options: PERF_COUNT and NPU_PROFILING_TYPE select the profile of inferences.
        place: position among ordered requests; by default, inferences run at any time.
    """

    def __init__(self, options: Options, place: Turn | None = None) -> None:
        self._profile = make_profile(options)
        self._run = AsyncRun(self._profile.inference, place)
        self._callback: Callable[[Any], object] | None = None
        self._userdata: Any = None

    def wait(self) -> None:
        """Wait for the inference started by ``start_async``; raise its error."""
        self._run.wait()

    def wait_for(self, timeout: float, /) -> bool:
        """Wait at most ``timeout`` milliseconds; return whether the inference has ended.

        Raises:
            NpuwUsageError: the timeout is not a number, or negative.
        """
        if not isinstance(timeout, Real) or not timeout >= 0:  # also rejects NaN
            raise NpuwUsageError(
                f"wait_for: {timeout!r} is no timeout; pass 0 or more milliseconds"
            )
        # Threads cannot wait longer than this; a longer timeout has no limit.
        longest = threading.TIMEOUT_MAX * 1000
        return self._run.wait(None if timeout > longest else timeout)

    def set_callback(
        self, callback: Callable[[Any], object] | None, userdata: Any = None, /
    ) -> None:
        """Set a callback, ``callback(userdata)``, for the end of each ``start_async`` inference.

        None removes the callback.
        It is called on the request's thread, also after a failure, when the request is idle, so it
        may start the next inference. ``wait`` returns after the callback, and raises its errors.

        Raises:
            NpuwUsageError: the callback is not callable.
            RequestBusy: the request is running.
        """
        if callback is not None and not callable(callback):
            raise NpuwUsageError(f"callback {callback!r} is not callable; pass a function or None")
        self._run.check_idle()
        self._callback, self._userdata = callback, userdata

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """Times of inferences on the simulated device; same as ``get_profiling_info``."""
        return self.get_profiling_info()

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """Return the times of inferences on the simulated device.

        Returns:
            With NPU_PROFILING_TYPE = MODEL, the layers of the last inference: programs in the order
            of their runs, layers in the order of their start. With INFER, average, minimum and
            maximum (AVG, MIN, MAX) over all inferences. An empty list without PERF_COUNT = YES, and
            for devices without profiling.

        Raises:
            NpuwUsageError: no inference has run yet.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        return self._profile.info()

    @property
    @abstractmethod
    def model_inputs(self) -> Sequence[ModelPort]:
        """Inputs of the model."""

    @property
    @abstractmethod
    def model_outputs(self) -> Sequence[ModelPort]:
        """Outputs of the model."""

    def infer(
        self, inputs: Inputs = None, share_inputs: bool = False, share_outputs: bool = False
    ) -> Results:
        """Run one inference synchronously.

        Args:
            inputs: tensors by name, index or port, or in the order of inputs. ``set_tensor``
                provides missing inputs.
            share_inputs: no effect: the caller waits until the inputs are read.
            share_outputs: allow views of the outputs, which the next inference overwrites.

        Returns:
            The outputs by name, index or port.

        Raises:
            TensorError: an input is missing or does not fit.
            RemoteError: the memory of a remote tensor was freed, or is for outputs.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: a device failed.
        """

        def once() -> Results:
            self._infer(self._given(inputs))
            return self._results(share_outputs)

        return self._run.run(once)

    def start_async(
        self, inputs: Inputs = None, userdata: Any = None, share_inputs: bool = False
    ) -> None:
        """Start an inference on the request's own thread; ``wait`` waits for its end.

        Args:
            inputs: as for ``infer``.
            userdata: argument of the callback, in place of that of ``set_callback``.
            share_inputs: read the caller's arrays during the inference, instead of copies.

        Raises:
            TensorError: inputs are not tensors, are too many, or do not fit.
            RequestBusy: the request is running. ``wait`` raises all other errors.
        """
        given: Given = {}
        callback, own = self._callback, self._userdata if userdata is None else userdata

        def read() -> None:
            given.update(self._given(inputs, shared=share_inputs))

        call = None if callback is None else partial(callback, own)
        self._run.start(lambda: self._infer(given), call, read)

    def cancel(self) -> None:
        """Cancel the running inference before its next program runs."""
        self._run.cancel()

    @abstractmethod
    def _infer(self, given: Given) -> None:
        """Run one inference."""

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
