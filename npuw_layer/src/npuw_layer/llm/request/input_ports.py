"""Inputs of a request as the caller sets them: arrays or remote tensors.

Prompts are cut into chunks and padded, so at each inference the host copies the values into the
programs' inputs, as NPUW does. The host reads a remote tensor in place; memory that the host cannot
access is copied first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import CallerInput, Instance
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor, values_of
from npuw_layer.tensors.names import BEAMS, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.tensors.token_inputs import TokenInput, check_ids, ignored_inputs


class InputPorts:
    """Inputs of a request, and their values.

    Args:
        inputs: inputs of the model that follow tokens.
        transfers: counters of bytes.
        traits: traits of the model, which add inputs.
        vocabulary: number of token ids; None if unknown.
    """

    def __init__(
        self,
        inputs: Sequence[TokenInput],
        transfers: Transfers,
        traits: Sequence[Instance] = (),
        vocabulary: int | None = None,
    ) -> None:
        self._token_inputs = {one.name: one for one in inputs}
        self._takes_positions = POSITIONS in self._token_inputs
        self._token_inputs.setdefault(POSITIONS, TokenInput(POSITIONS, "i64"))
        self._inputs: dict[str, CallerInput] = {**self._token_inputs}
        for trait in traits:
            self._inputs |= {one.name: one for one in trait.caller_inputs(inputs)}
        self._traits, self._vocabulary = traits, vocabulary
        self._pairs = [one for trait in traits for one in trait.pair_inputs()]
        self._beside = (MASK, *(one.name for one in self._pairs))
        self._names = {*self._inputs, *self._beside, BEAMS, *ignored_inputs()}
        self._transfers = transfers
        self.were_remote = False
        """True if any value was a remote tensor."""
        self._set: dict[str, Tensor | RemoteTensor] = {}

    def set(self, name: str, value: AnyTensor) -> None:
        """Set an input until it is set again; each inference reads its values.

        Raises:
            TensorError: there is no such input, or the value is not a tensor.
            RemoteError: the tensor was made for outputs.
        """
        self._set[name] = self._checked(name, value)

    def get(self, name: str) -> Tensor | RemoteTensor | None:
        """Return the tensor that an input was set to; None if it was not set."""
        return self._set.get(name)

    def sources(self, given: Mapping[str, Tensor | RemoteTensor]) -> tuple[int, ...]:
        """Return the row of the last inference that each row continues; 0 without beam_idx.

        Args:
            given: inputs for this inference only.

        Raises:
            TensorError: beam_idx is not i32 [rows], or is missing for several rows.
        """
        first = next(iter(self._token_inputs.values()))
        tokens, beams = (given.get(name, self._set.get(name)) for name in (first.name, BEAMS))
        count = 1 if tokens is None else first.sequences(tokens.shape) or 1
        if beams is None and count == 1:
            return (0,)
        if beams is None:
            raise TensorError(f"inputs are missing: {BEAMS}, which {count} rows of tokens require")
        values = values_of(beams)
        if values.shape != (count,) or values.dtype.kind != "i":
            raise TensorError(
                f"{BEAMS} is {values.dtype} {list(values.shape)}, not int32 [{count}], a number "
                f"for each row of {first.name}"
            )
        return tuple(values.tolist())

    def take_rows(self, given: Mapping[str, AnyTensor], count: int) -> list[NewTokens]:
        """Read the tokens of each row of an inference.

        Args:
            given: inputs for this inference only.
            count: number of rows.

        Raises:
            TensorError, RemoteError: as ``take``, or an input has another number of rows.
        """
        tensors = self._set | {name: self._checked(name, value) for name, value in given.items()}
        values: dict[TokenInput, Array] = {}
        for port in (_MASK, *self._token_inputs.values()):
            if port.name not in tensors:
                continue  # ``take`` names what is missing
            shape = tensors[port.name].shape
            if port.sequences(shape) != count:
                first = next(iter(self._token_inputs))
                raise TensorError(f"{first} has {count} rows, but {port.name} is {list(shape)}")
            self.were_remote |= isinstance(tensors[port.name], RemoteTensor)
            values[port] = values_of(tensors[port.name])
        return [
            self.take(
                {port.name: Tensor(port.sequence(each, row)) for port, each in values.items()}
            )
            for row in range(count)
        ]

    def take(self, given: Mapping[str, AnyTensor]) -> NewTokens:
        """Read the tokens of an inference of one row.

        Args:
            given: inputs for this inference only.

        Raises:
            TensorError: an input is missing or does not fit, or an id is not in the vocabulary.
            RemoteError: the memory of a tensor was freed, or it was made for outputs.
        """
        tensors = self._set | {name: self._checked(name, value) for name, value in given.items()}
        first, *others = self._inputs
        if POSITIONS not in tensors and not self._takes_positions:
            tensors |= _continued(tensors, first)
        missing = [name for name in (first, *self._beside, *others) if name not in tensors]
        if missing:
            raise TensorError(f"inputs are missing: {', '.join(missing)}")
        mask = self._values(_MASK, tensors[MASK])
        rows = {name: self._values(one, tensors[name]) for name, one in self._inputs.items()}
        count = len(rows[first])
        if not count:
            raise TensorError(f"no new tokens: {first} is {list(tensors[first].shape)}")
        for name in others:
            if self._inputs[name].per_token and len(rows[name]) != count:
                raise TensorError(f"{first} has {count} tokens, but {name} has {len(rows[name])}")
        if IDS in rows:
            check_ids(rows[IDS], self._vocabulary, (0,))
        for trait in self._traits:
            trait.join(rows)
        pairs: dict[str, Array] = {}
        for port in self._pairs:
            values = port.whole(self._values(port, tensors[port.name]), count, len(mask))
            if values is not None:
                pairs[port.name] = values
        return NewTokens(rows, mask, pairs)

    def _values(self, port: CallerInput, tensor: Tensor | RemoteTensor) -> Array:
        """Return the values of an input, ordered by token."""
        remote = isinstance(tensor, RemoteTensor)
        element = tensor.element_type if remote else tensor.data.dtype
        fits = element in (port.element, ELEMENT_TYPES[port.element])
        if not fits or not port.fits(tensor.shape):
            raise TensorError(
                f"{port.name} is {element} {list(tensor.shape)}, not {port.described}; batch is 1"
            )
        counts = self._transfers.of(port.name)
        counts.bound_to = _described(tensor)
        counts.host_to_device += tensor.byte_size
        if isinstance(tensor, RemoteTensor):
            self.were_remote = True
            if not tensor.span().memory.host_visible:
                counts.device_to_host += tensor.byte_size
        return port.rows(values_of(tensor))

    def _checked(self, name: str, value: AnyTensor) -> Tensor | RemoteTensor:
        if name not in self._names:
            first, *others = self._inputs
            *listed, last = (first, *self._beside, *others, BEAMS)
            raise TensorError(
                f"no input {name!r}; the inputs are {', '.join(listed)} and {last}, the output is "
                f"{LOGITS}"
            )
        tensor = as_tensor(value)
        if isinstance(tensor, RemoteTensor) and tensor.properties.tensor_type is TensorType.OUTPUT:
            raise RemoteError(f"{name!r} is an input; the tensor was made with TENSOR_TYPE OUTPUT")
        return tensor


_MASK = TokenInput(MASK, "i64")


def _described(tensor: Tensor | RemoteTensor) -> str:
    if isinstance(tensor, Tensor):
        return "host tensor"
    return f"{tensor.properties.mem_type} tensor"


def _continued(tensors: Mapping[str, Tensor | RemoteTensor], tokens: str) -> dict[str, Tensor]:
    """Return positions of new tokens, at the mask's end, for models without position_ids."""
    if tokens not in tensors or MASK not in tensors:
        return {}
    total, new = (
        tensors[name].shape[1] if len(tensors[name].shape) > 1 else 0 for name in (MASK, tokens)
    )
    return {POSITIONS: Tensor(np.arange(total - new, total, dtype=np.int64)[None])}
