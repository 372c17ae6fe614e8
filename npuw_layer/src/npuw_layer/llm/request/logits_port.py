"""Logits output of a request: an array of the request, or the caller's tensor."""

from __future__ import annotations

import numpy as np

from npuw_layer.api.transfers import TensorTransfers
from npuw_layer.backends.protocols import (
    Array,
    ImportsMemory,
    ability,
)
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.lm_head import LogitsTarget
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor
from npuw_layer.tensors.names import LOGITS


class LogitsPort:
    """Logits output of a request.

    The LM head writes directly into a remote tensor of the same context, if one of
    its programs makes as many rows as the tensor has. Otherwise logits are copied once; also if
    each model has its own head (NPUW_LLM_SHARED_HEAD), or may run on several devices.

    Args:
        compiled: the static models.
        transfers: counters of bytes.
    """

    def __init__(self, compiled: CompiledLLM, transfers: TensorTransfers) -> None:
        outputs = (info for model in compiled.models.values() for info in model.outputs)
        self._width = next(info.shape[-1] for info in outputs if info.name == LOGITS)
        self._most = compiled.plan.generate[0].tokens
        self._device = compiled.device
        self._transfers = transfers
        self._given: Tensor | RemoteTensor | None = None
        self._last: Array | None = None

    @property
    def tensor(self) -> Tensor | RemoteTensor | None:
        """The caller's tensor; else the logits of the last inference, or None before the first."""
        if self._given is not None:
            return self._given
        return None if self._last is None else Tensor(self._last)

    @property
    def value(self) -> Array | None:
        """Logits of the last inference; None if they are in a remote tensor."""
        tensor = self.tensor
        return tensor.data if isinstance(tensor, Tensor) else None

    def set(self, value: AnyTensor) -> None:
        """Set the tensor for logits, from the next inference on.

        Raises:
            TensorError: the tensor is read-only, or not f32 [rows, n, V] with a possible n.
            RemoteError: the tensor was made for inputs.
        """
        tensor = as_tensor(value)
        remote = isinstance(tensor, RemoteTensor)
        element = tensor.element_type if remote else tensor.data.dtype
        shape = tensor.shape
        rows = shape[1] if len(shape) == 3 and shape[0] else 0
        if element not in ("f32", np.float32) or not rows or shape[2] != self._width:
            raise TensorError(f"{LOGITS} is f32 [B, n, {self._width}], not {element} {list(shape)}")
        if rows > self._most:
            raise TensorError(f"{LOGITS}: {rows} rows; an inference returns at most {self._most}")
        if remote and tensor.properties.tensor_type is TensorType.INPUT:
            raise RemoteError(
                f"{LOGITS!r} is an output; the tensor was made with TENSOR_TYPE INPUT"
            )
        if not remote and not tensor.data.flags.writeable:
            raise TensorError(f"output {LOGITS!r}: the array is read-only")
        self._given = tensor
        self._transfers.bound_to = self._described(tensor)

    def target(self, rows: int, sequences: int = 1) -> LogitsTarget | None:
        """Return the memory for the device to write logits to; called before an inference.

        Args:
            rows: number of logits that the inference will return for each sequence.
            sequences: number of sequences of the inference.

        Raises:
            TensorError: the tensor set by the caller has another number of rows.
            RemoteError: the memory of the tensor was freed.
        """
        given = self._given
        if given is None:
            return None
        shape = (sequences, rows, self._width)
        if given.shape != shape:
            raise TensorError(
                f"{LOGITS} will be {list(shape)}, but the tensor set for it is "
                f"{list(given.shape)}; set a tensor of that shape"
            )
        if not isinstance(given, RemoteTensor) or sequences > 1:
            return None
        span, device = given.span(), self._device
        bound = isinstance(device, ImportsMemory) and given.is_of(device)
        return LogitsTarget(span.memory, span.offset, rows) if bound else None

    def take(self, logits: Array | None) -> None:
        """Store an inference's logits.

        Args:
            logits: f32 [sequences, rows, V], copied once; None if the device wrote them to the
                target.

        Raises:
            RemoteError: the memory of the tensor was freed.
        """
        given, counts = self._given, self._transfers
        if logits is None:
            assert given is not None  # its memory was the target
            counts.in_place += given.byte_size
            return
        if given is None:
            self._last = np.array(logits)
        elif isinstance(given, RemoteTensor):
            given.copy_from(logits)
        else:
            given.data[...] = logits
        counts.device_to_host += logits.nbytes

    def _described(self, tensor: Tensor | RemoteTensor) -> str:
        if isinstance(tensor, Tensor):
            return "host tensor"
        npu = ability(self._device, ImportsMemory)
        far = npu is None or not tensor.is_of(npu)
        return f"{tensor.properties.mem_type} tensor{' of another context' if far else ''}"
