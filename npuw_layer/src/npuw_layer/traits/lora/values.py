"""What a conversation's adapters are set to: checked, kept as it was given, told from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import StateError
from npuw_layer.traits.lora.names import AdapterName, Part, adapter_name

_TYPES = ("float32", "float16")
"""What adapters are set as."""


class AdapterValues:
    """The variables of adapters by their ids; at first none has an effect.

    Args:
        shapes: of the buffers that programs read, by name: those of the largest rank.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._shapes = shapes
        self._given = {name: self._of_rank_0(name) for name in shapes}
        self._digest: bytes | None = b""
        self.version = 0
        """Changes when a variable does."""

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        return list(self._given)

    @property
    def digest(self) -> bytes:
        """Tells these adapters from others; empty if none has an effect."""
        if self._digest is None:
            self._digest = self._digested()
        return self._digest

    def get(self, name: str) -> Array:
        """What a variable was set to; of rank 0 if to nothing. It is never written to."""
        return self._given[name]

    def set(self, name: str, values: Array) -> None:
        """Set a variable.

        Args:
            name: which.
            values: f32 or f16, of the adapter's own rank; they are copied. What is empty has no
                effect.

        Raises:
            StateError: there is no such variable, or it does not fit.
        """
        if name not in self._given:
            raise StateError(f"the model has no adapter state {name!r}")
        if values.size:
            self._check(name, values)
        self._given[name] = values.copy() if values.size else self._of_rank_0(name)
        self._digest = None
        self.version += 1

    def reset(self, name: str) -> None:
        """Let a variable have no effect."""
        self.set(name, self._of_rank_0(name))

    def check(self) -> None:
        """Check the parts of all adapters against one another; raises as ``check_ranks``."""
        self.check_ranks(self.names)

    def check_ranks(self, names: Iterable[str]) -> None:
        """Refuse parts of one adapter beside parts of another.

        Args:
            names: those whose products are looked at.

        Raises:
            StateError: parts that are not empty have different ranks.
        """
        for product in {_role(name).product for name in names}:
            ranks = {part.value: self._rank(product, part) for part in Part}
            if len({rank for rank in ranks.values() if rank}) > 1:
                told = ", ".join(f"{part} {rank}" for part, rank in ranks.items())
                raise StateError(f"the states of {product} have different ranks: {told}")

    def _check(self, name: str, values: Array) -> None:
        """Check that a tensor fits a variable."""
        axis, most = _role(name).part.rank_axis, self._shapes[name]
        wanted = f"[rank, {most[1]}]" if axis == 0 else f"[{most[0]}, rank]"
        if values.dtype.name not in _TYPES:
            raise StateError(f"state {name!r} is {' or '.join(_TYPES)}, not {values.dtype}")
        if values.ndim != 2 or values.shape[1 - axis] != most[1 - axis]:
            raise StateError(
                f"state {name!r} is {wanted}, not {list(values.shape)}; is the adapter one of "
                "this model?"
            )
        if values.shape[axis] > most[axis]:
            raise StateError(
                f"state {name!r} is {wanted} of rank {most[axis]} at most, not "
                f"{list(values.shape)}; raise NPUW_LLM_MAX_LORA_RANK"
            )

    def _rank(self, product: str, part: Part) -> int:
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
        """What adds something to a product: none of its parts is of rank 0, or all zeros."""
        for product in {_role(name).product for name in self._given}:
            names = [f"{product}.{part.value}" for part in Part]
            if all(name in self._given and self._given[name].any() for name in names):
                yield from names


def _role(name: str) -> AdapterName:
    found = adapter_name(name)
    assert found is not None  # names were found by this
    return found
