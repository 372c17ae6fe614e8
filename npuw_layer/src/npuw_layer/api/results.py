"""Results of one inference, as OpenVINO's ``OVDict``: outputs in the model's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npuw_layer.api.model_port import ModelPort, find_port
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import NoResult, TensorError


class Results(Mapping[Any, Array]):
    """Arrays by name, by index and by port.

    Args:
        ports: the model's outputs.
        values: arrays by name, without outputs that went to remote tensors.
    """

    def __init__(self, ports: Sequence[ModelPort], values: Mapping[str, Array]) -> None:
        self._ports = ports
        names = [port.any_name for port in ports if port.any_name in values]
        self._values = {name: values[name] for name in (*names, *values)}

    def __getitem__(self, key: Any, /) -> Array:
        """Return an output's values.

        Raises:
            NoResult: no such output exists, or it went to a remote tensor; also a KeyError.
        """
        name = key if isinstance(key, str) else self._name_of(key)
        if name not in self._values:
            raise NoResult(
                f"no result {name!r}; the results are {', '.join(self._values) or 'none'}"
            )
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return a text of names and values."""
        return f"Results({self._values!r})"

    def to_dict(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return dict(self._values)

    def to_tuple(self) -> tuple[Array, ...]:
        """Return the arrays in order."""
        return tuple(self._values.values())

    def names(self) -> tuple[set[str], ...]:
        """Return the names of each output."""
        return tuple({name} for name in self._values)

    def _name_of(self, key: Any) -> str:
        known = key if isinstance(key, int | ModelPort) else getattr(key, "any_name", key)
        try:
            return find_port(self._ports, known, "result").any_name
        except TensorError as error:
            raise NoResult(str(error)) from None
