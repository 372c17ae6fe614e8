"""A request's inputs, as the caller sets them: arrays, or tensors that the NPU reaches.

How it works. Prompts are cut into chunks and padded, so the host copies what is set into the inputs
of the programs, at each inference; the original does so, too. It reads a remote tensor where it
lies; of memory that the host does not see it fetches a copy first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.llm.names import BEAMS, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.llm.submodel import NewTokens
from npuw_layer.ports import Array
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor, values_of
from npuw_layer.tensor import Tensor
from npuw_layer.transfers import Transfers

_NAMES = (IDS, MASK, POSITIONS, BEAMS)


class InputPorts:
    """What inputs are set to.

    Args:
        takes_positions: whether the model wants position_ids.
        transfers: where bytes are counted.
    """

    def __init__(self, takes_positions: bool, transfers: Transfers) -> None:
        self._takes_positions = takes_positions
        self._transfers = transfers
        self.were_remote = False
        """Whether any was a tensor that the NPU reaches."""
        self._set: dict[str, Tensor | RemoteTensor] = {}

    def set(self, name: str, value: AnyTensor) -> None:
        """Set an input, until it is set anew; its values are read at each inference.

        Raises:
            TensorError: there is no such input, or it is no tensor.
            RemoteError: the tensor was made for outputs.
        """
        self._set[name] = _checked(name, value)

    def get(self, name: str) -> Tensor | RemoteTensor | None:
        """Give what an input was set to."""
        return self._set.get(name)

    def take(self, given: Mapping[str, AnyTensor]) -> NewTokens:
        """Read the tokens of an inference.

        Args:
            given: inputs for this inference alone.

        Raises:
            TensorError: one is missing or does not fit.
            RemoteError: the memory of one was freed, or it was made for outputs.
        """
        tensors = self._set | {name: _checked(name, value) for name, value in given.items()}
        if POSITIONS not in tensors and not self._takes_positions:
            tensors |= _continued(tensors)
        missing = [name for name in (IDS, MASK, POSITIONS) if name not in tensors]
        if missing:
            raise TensorError(f"inputs are missing: {', '.join(missing)}")
        ids, mask, positions = (self._row(name, tensors[name]) for name in (IDS, MASK, POSITIONS))
        if not len(ids) or len(positions) != len(ids):
            raise TensorError(f"{len(ids)} input_ids with {len(positions)} position_ids")
        return NewTokens(ids, mask, positions)

    def _row(self, name: str, tensor: Tensor | RemoteTensor) -> Array:
        """The values of an input, i64 [n]."""
        element = tensor.element_type if isinstance(tensor, RemoteTensor) else tensor.data.dtype
        shape = tensor.shape
        if element not in ("i64", np.int64) or len(shape) != 2 or shape[0] != 1:
            raise TensorError(f"{name} is {element} {list(shape)}, not i64 [1, tokens]; batch is 1")
        counts = self._transfers.of(name)
        counts.bound_to = _described(tensor)
        counts.host_to_device += tensor.byte_size
        if isinstance(tensor, RemoteTensor):
            self.were_remote = True
            if not tensor.piece().memory.host_visible:
                counts.device_to_host += tensor.byte_size
        return values_of(tensor)[0]


def _described(tensor: Tensor | RemoteTensor) -> str:
    if isinstance(tensor, Tensor):
        return "host tensor"
    return f"{tensor.properties.mem_type} tensor"


def _checked(name: str, value: AnyTensor) -> Tensor | RemoteTensor:
    if name not in _NAMES:
        raise TensorError(
            f"no input {name!r}; there are {IDS}, {MASK}, {POSITIONS} and {BEAMS}, and an output "
            f"{LOGITS}"
        )
    tensor = as_tensor(value)
    if isinstance(tensor, RemoteTensor) and tensor.properties.tensor_type is TensorType.OUTPUT:
        raise RemoteError(f"{name!r} is an input; the tensor was made with TENSOR_TYPE OUTPUT")
    return tensor


def _continued(tensors: Mapping[str, Tensor | RemoteTensor]) -> dict[str, Tensor]:
    """Positions of the new tokens at the end of the mask, for models that do not want them."""
    if IDS not in tensors or MASK not in tensors:
        return {}
    total, new = (tensors[name].shape[-1] if tensors[name].shape else 0 for name in (MASK, IDS))
    return {POSITIONS: Tensor(np.arange(total - new, total, dtype=np.int64)[None])}
