"""Adapters with their alphas, and the mode in which a model is adapted.

Source: openvino_genai.AdapterConfig.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self, cast, overload

import numpy as np

from genai_layer.checked import checked, read_as
from genai_layer.errors import ArgumentError, ConfigError
from genai_layer.kinds import brief
from genai_layer.lora.adapter import Adapter
from genai_layer.named_enum import NamedEnum


class Mode(NamedEnum):
    """Implementation of adapters in a model; fixed when the pipeline is created."""

    MODE_AUTO = 0
    """MODE_DYNAMIC for a pipeline; the pipeline's mode for a generation."""
    MODE_DYNAMIC = 1
    """Adapters and alphas may change with each generation, up to a largest rank."""
    MODE_STATIC_RANK = 2
    """Adapters and alphas may change, up to the total rank of the first adapters."""
    MODE_STATIC = 3
    """Adapters are constants in addition to the weights, which are stored unchanged."""
    MODE_FUSE = 4
    """Adapters are added to the weights."""

    @property
    def settled(self) -> Mode:
        """Mode of a pipeline, with MODE_AUTO resolved."""
        return Mode.MODE_DYNAMIC if self is Mode.MODE_AUTO else self


Several = Sequence[Adapter] | Sequence[tuple[Adapter, float]]


class AdapterConfig:
    """Adapters with their alphas, and a mode.

    Accepts a mode alone; one adapter, with or without its alpha; or a list of adapters or of pairs
    (adapter, alpha). The default alpha is 1.

    Raises:
        ConfigError: the arguments match none of these forms.
    """

    Mode = Mode

    @overload
    def __init__(self, mode: Mode = ...) -> None: ...
    @overload
    def __init__(self, adapter: Adapter, alpha: float, mode: Mode = ...) -> None: ...
    @overload
    def __init__(self, adapter: Adapter, mode: Mode = ...) -> None: ...
    @overload
    def __init__(self, adapters: Several, mode: Mode = ...) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _named(args, kwargs)
        self._mode: Mode = given.get("mode", Mode.MODE_AUTO)
        self._pairs: list[tuple[Adapter, float]] = []
        if "adapter" in given:
            self._pairs = [_pair((given["adapter"], given.get("alpha", 1.0)))]
        elif "adapters" in given:
            several = cast(Sequence[Any], given["adapters"])
            self._pairs = [_pair((x, 1.0) if isinstance(x, Adapter) else x) for x in several]

    @property
    def mode(self) -> Mode:
        """Mode in which a model is adapted."""
        return self._mode

    @checked
    def add(self, adapter: Adapter, alpha: float = 1.0) -> Self:
        """Add an adapter.

        Raises:
            ConfigError: the adapter was already added.
        """
        if any(each is adapter for each in self.get_adapters()):
            raise ConfigError(f"{adapter!r} was added already; use set_alpha")
        self._pairs.append(_pair((adapter, alpha)))
        return self

    @checked
    def remove(self, adapter: Adapter) -> Self:
        """Remove an adapter.

        Raises:
            ConfigError: the adapter was not added.
        """
        del self._pairs[self._index(adapter)]
        return self

    @checked
    def set_alpha(self, adapter: Adapter, alpha: float) -> Self:
        """Change an adapter's alpha.

        Raises:
            ConfigError: the adapter was not added.
        """
        self._pairs[self._index(adapter)] = _pair((adapter, alpha))
        return self

    @checked
    def get_alpha(self, adapter: Adapter) -> float:
        """Return an adapter's alpha.

        Raises:
            ConfigError: the adapter was not added.
        """
        return self._pairs[self._index(adapter)][1]

    def get_adapters(self) -> list[Adapter]:
        """Return the adapters in order."""
        return [adapter for adapter, _ in self._pairs]

    def get_adapters_and_alphas(self) -> list[tuple[Adapter, float]]:
        """Return the pairs (adapter, alpha) in order."""
        return list(self._pairs)

    @checked
    def set_adapters_and_alphas(self, adapters: Sequence[tuple[Adapter, float]]) -> None:
        """Replace all adapters."""
        self._pairs = [_pair(each) for each in adapters]

    def copy(self) -> AdapterConfig:
        """Return an independent copy."""
        return AdapterConfig(self.get_adapters_and_alphas(), self._mode)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def __copy__(self) -> AdapterConfig:
        return self.copy()

    def __deepcopy__(self, memo: object) -> AdapterConfig:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AdapterConfig):
            return NotImplemented
        return (self._mode, self._pairs) == (other._mode, other._pairs)

    __hash__ = None  # pyright: ignore[reportAssignmentType] (mutable)

    def __repr__(self) -> str:
        return f"AdapterConfig({self._pairs!r}, {self._mode.name})"

    def _index(self, adapter: Adapter) -> int:
        for index, each in enumerate(self.get_adapters()):
            if each is adapter:
                return index
        raise ConfigError(f"{adapter!r} is not in this AdapterConfig; add it first")


def _named(args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Name positional arguments by their types.

    Raises:
        ConfigError: the arguments match no constructor.
    """
    given = dict(kwargs)
    for index, value in enumerate(args):
        name = _name_of(index, value)
        if name in given:
            raise ConfigError(f"AdapterConfig: {name} is given twice")
        given[name] = value
    kinds = {"mode": Mode, "adapter": Adapter, "adapters": Sequence, "alpha": Real}
    for name, value in given.items():
        if name not in kinds or not isinstance(value, kinds[name]):
            raise ArgumentError(f"AdapterConfig: {name} = {brief(value)}: {_FORMS}")
    if ("alpha" in given) > ("adapter" in given) or {"adapter", "adapters"} <= given.keys():
        raise ConfigError(f"AdapterConfig: {_FORMS}")
    return given


_FORMS = (
    "pass a mode; or an adapter, its alpha and a mode; or a list of adapters or of pairs "
    "(adapter, alpha), and a mode"
)


def _name_of(index: int, value: object) -> str:
    if isinstance(value, Mode):
        return "mode"
    if index == 0:
        return "adapter" if isinstance(value, Adapter) else "adapters"
    return "alpha" if index == 1 else "mode"


def _pair(given: Any) -> tuple[Adapter, float]:
    """Check an adapter and its alpha, which is rounded to f32."""
    try:
        adapter, alpha = given
    except (TypeError, ValueError):
        adapter, alpha = given, None
    if not isinstance(adapter, Adapter) or not isinstance(alpha, Real):
        raise ArgumentError(f"AdapterConfig: {brief(given)}: {_FORMS}")
    return adapter, float(np.float32(read_as("AdapterConfig: alpha", alpha, float)))
