"""Adapters of a conversation: checked values, kept in the caller's form, with a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.lora.names import AdapterName, AdapterTensor, adapter_name

_TYPES = ("float32", "float16")
"""Element types in which adapters are set."""


class AdapterValues:
    """Values of the variables of adapters by id; at first without effect.

    Args:
        shapes: shapes of the programs' buffers, of the largest rank, by name.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._shapes = shapes
        self._given = {name: self._of_rank_0(name) for name in shapes}
        self._digest: bytes | None = b""
        self.version = 0
        """Number that changes with every change of a variable."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the variables."""
        return list(self._given)

    @property
    def digest(self) -> bytes:
        """Identity of the adapters; empty if none has an effect."""
        if self._digest is None:
            self._digest = self._digested()
        return self._digest

    def get(self, name: str) -> Array:
        """Return the value of a variable, of rank 0 if not set; it must not be written to."""
        return self._given[name]

    def set(self, name: str, values: Array) -> None:
        """Set a variable.

        Args:
            name: name of the variable.
            values: f32 or f16, of the adapter's own rank; they are copied. An empty array removes
                the effect.

        Raises:
            StateError: there is no such variable, or the values do not fit.
        """
        if name not in self._given:
            raise StateError(f"the model has no adapter state {name!r}")
        if values.size:
            self._check(name, values)
        self._given[name] = values.copy() if values.size else self._of_rank_0(name)
        self._digest = None
        self.version += 1

    def reset(self, name: str) -> None:
        """Remove the effect of a variable."""
        self.set(name, self._of_rank_0(name))

    def check(self) -> None:
        """Check the parts of all adapters against one another; raises as ``check_ranks``."""
        self.check_ranks(self.names)

    def check_ranks(self, names: Iterable[str]) -> None:
        """Check that the parts of each adapter have the same rank.

        Args:
            names: variables whose matmuls are checked.

        Raises:
            StateError: non-empty parts of an adapter have different ranks.
        """
        for product in {_role(name).product for name in names}:
            ranks = {part.value: self._rank(product, part) for part in AdapterTensor}
            if len({rank for rank in ranks.values() if rank}) > 1:
                listed = ", ".join(f"{part} {rank}" for part, rank in ranks.items())
                raise StateError(f"the states of {product} have different ranks: {listed}")

    def _check(self, name: str, values: Array) -> None:
        """Check that a tensor fits a variable."""
        axis, most = _role(name).part.rank_axis, self._shapes[name]
        wanted = f"[rank, {most[1]}]" if axis == 0 else f"[{most[0]}, rank]"
        if values.dtype.name not in _TYPES:
            raise StateError(f"state {name!r} is {' or '.join(_TYPES)}, not {values.dtype}")
        if values.ndim != 2 or values.shape[1 - axis] != most[1 - axis]:
            raise StateError(
                f"state {name!r} is {wanted}, not {list(values.shape)}; use an adapter of this "
                "model"
            )
        if values.shape[axis] > most[axis]:
            raise StateError(
                f"state {name!r} is {wanted} of rank {most[axis]} at most, not "
                f"{list(values.shape)}; raise NPUW_LLM_MAX_LORA_RANK"
            )

    def _rank(self, product: str, part: AdapterTensor) -> int:
        given = self._given.get(f"{product}.{part.value}")
        return 0 if given is None else given.shape[part.rank_axis]

    def _of_rank_0(self, name: str) -> Array:
        shape = list(self._shapes[name])
        shape[_role(name).part.rank_axis] = 0
        return np.empty(shape, np.float32)

    def _digested(self) -> bytes:
        digest, effective = hashlib.sha256(), sorted(self._effective())
        for name in effective:
            values = self._given[name]
            digest.update(f"{name} {values.dtype} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.digest() if effective else b""

    def _effective(self) -> Iterator[str]:
        """Yield the variables of adapters with an effect: no part is of rank 0 or all zeros."""
        for product in {_role(name).product for name in self._given}:
            names = [f"{product}.{part.value}" for part in AdapterTensor]
            if all(name in self._given and self._given[name].any() for name in names):
                yield from names


def _role(name: str) -> AdapterName:
    found = adapter_name(name)
    assert found is not None  # names were found by this
    return found


class AdapterVariableState:
    """One variable of a request's adapters.

    Args:
        name: id of the variable in the model.
        adapters: adapters that the variable belongs to.
        check_idle: raises if the request is running.
    """

    def __init__(self, name: str, adapters: AdapterValues, check_idle: Callable[[], None]) -> None:
        self._name = name
        self._adapters = adapters
        self._check_idle = check_idle

    @property
    def name(self) -> str:
        """Id of the variable, as in ReadValue and Assign."""
        return self._name

    @property
    def state(self) -> Tensor:
        """Value at its own rank, of rank 0 if not set; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._adapters.get(self._name).copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Set the variable for the next inferences; rows of stored tokens stay.

        Args:
            tensor: f32 or f16: A [rank, in], alpha [1, rank] or B [out, rank], with a rank of at
                most NPUW_LLM_MAX_LORA_RANK; an empty one disables the adapter of the matmul.
                The values are copied.

        Raises:
            StateError: the tensor does not fit. A rank other than that of the adapter's other
                tensors is an error of the next inference.
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.set(self._name, values_of(tensor))

    def reset(self) -> None:
        """Disable the adapter of the matmul.

        Only this method resets an adapter: ``InferRequest.reset_state`` begins a new conversation
        and keeps adapters. The effect is the same in NPUW, where the device keeps adapters and
        openvino_genai resets only caches when a chat begins.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._adapters.reset(self._name)
