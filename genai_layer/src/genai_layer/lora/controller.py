"""Compilation of a model with adapters, and the current ones, from one generation to the next.

States of a request hold adapters. They are named ``lora_state_<n><product>.A``, ``.alpha`` and
``.B``, as in openvino_genai.

Source: openvino_genai's AdapterController: a generation without ``adapters`` keeps those of the
generation before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from genai_layer.abilities import AdapterVariable, LowRank, SupportsAdapters
from genai_layer.errors import AdapterError, ConfigError, PropertyError
from genai_layer.lora.adapter import blend
from genai_layer.lora.adapter_config import AdapterConfig, Mode
from genai_layer.runtime import AnyModel, Array, CompiledModel, Core, InferRequest, VariableState

_NAME = re.compile(r"lora_state_\d+(?P<product>.+)\.(?P<part>A|alpha|B)", re.DOTALL)


class AdapterStates:
    """Adapter states of one request.

    Args:
        states: all states of the request.
    """

    def __init__(self, states: Iterable[VariableState]) -> None:
        every: dict[str, dict[str, AdapterVariable]] = {}
        for state in states:
            found = _NAME.fullmatch(state.name)
            if found is not None and isinstance(state, AdapterVariable):
                every.setdefault(found["product"], {})[found["part"]] = state
        self._states = {name: parts for name, parts in every.items() if parts.keys() == _OFF.keys()}

    def __bool__(self) -> bool:
        return bool(self._states)

    def products(self) -> dict[str, tuple[int, int]]:
        """Return the adapted matmuls, with their input and output widths."""
        return {
            name: (parts["A"].state.data.shape[1], parts["B"].state.data.shape[0])
            for name, parts in self._states.items()
        }

    def set(self, added: Mapping[str, LowRank]) -> None:
        """Set the adapters of all matmuls; those without one are switched off.

        Raises:
            RuntimeError: the runtime rejects the values, e.g. for their rank.
        """
        for product, parts in self._states.items():
            values = _tensors(added[product]) if product in added else _OFF
            for part, state in parts.items():
                state.state = values[part]

    def values(self) -> dict[str, Array]:
        """Return the values of the states that are not empty, by name."""
        states = [state for parts in self._states.values() for state in parts.values()]
        values = {state.name: state.state.data for state in states}
        return {name: value for name, value in values.items() if value.size}

    def set_alphas(self, added: Mapping[str, LowRank]) -> None:
        """Set only the alphas of the current adapters.

        Raises:
            RuntimeError: the runtime rejects the values.
        """
        for product, low_rank in added.items():
            self._states[product]["alpha"].state = low_rank.alpha


_NOTHING: Array = np.empty((0, 0), np.float32)
_OFF: Mapping[str, Array] = {"A": _NOTHING, "alpha": _NOTHING, "B": _NOTHING}
"""An empty tensor adds nothing."""


def _tensors(added: LowRank) -> Mapping[str, Array]:
    return {"A": added.a, "alpha": added.alpha, "B": added.b}


def compile_with(
    core: Core,
    model: AnyModel,
    device: str,
    properties: Mapping[str, Any],
    config: AdapterConfig | None,
) -> CompiledModel:
    """Compile a model so that it supports adapters.

    Args:
        core: the runtime.
        model: its IR or folder, or a model that the runtime has read.
        device: e.g. "NPU".
        properties: of the runtime.
        config: the first adapters; later ones may adapt only the same layers. None if the
            pipeline has no adapters, or the model is already compiled.

    Raises:
        PropertyError: the runtime does not support adapters.
        AdapterError: an adapter belongs to another model.
        RuntimeError: the runtime cannot compile the model.
    """
    if config is None:
        return core.compile_model(model, device, properties)
    if not isinstance(core, SupportsAdapters):
        raise PropertyError(
            f"adapters: device {device} does not support them (SupportsAdapters); leave them out"
        )
    added = blend(config.get_adapters_and_alphas(), core.adaptable_matmuls(model))
    mode = config.mode.settled.name.removeprefix("MODE_")
    return core.compile_adapted(model, device, properties, added, mode)


_FIXED = (Mode.MODE_STATIC, Mode.MODE_FUSE)


def control(
    request: InferRequest, config: AdapterConfig | None, from_blob: bool
) -> AdapterController | NoAdapters:
    """Return the controller of a request's adapters.

    Args:
        request: the pipeline's only request.
        config: the first adapters, set immediately; None for a pipeline without adapters.
        from_blob: True if the model was imported from a blob.

    Raises:
        AdapterError: the adapters do not fit the compiled model.
    """
    if config is None:
        return NoAdapters()
    make = AdapterController.of_blob if from_blob else AdapterController
    return make(request.query_state(), config)


class NoAdapters:
    """Controller of a pipeline that was created without adapters."""

    def changes(self, config: AdapterConfig | None) -> bool:
        """Return False: no adapters ever change."""
        del config
        return False

    def apply(self, config: AdapterConfig | None) -> None:
        """Check that no adapters are requested.

        Raises:
            ConfigError: adapters are requested.
        """
        if config:
            raise ConfigError(
                "adapters: the pipeline was created without; list all adapters when creating it, "
                "LLMPipeline(..., adapters=...)"
            )

    def values(self) -> dict[str, Array]:
        """Return no values of states."""
        return {}


class AdapterController:
    """Controller of one request's adapters.

    Args:
        states: all states of the request; those of adapters are identified by name.
        config: the first adapters, set immediately, and the mode.

    Raises:
        AdapterError: the adapters do not fit the compiled model.
    """

    def __init__(self, states: Iterable[VariableState], config: AdapterConfig) -> None:
        self._states = AdapterStates(states)
        self._products = self._states.products()
        self._wanted = AdapterConfig(config.get_adapters_and_alphas(), config.mode.settled)
        self._held: AdapterConfig | None = None
        """Adapters in the states; None while only some of the states are set."""
        self._rank: int | None = None
        if config.mode not in _FIXED:
            self._set(self._wanted)
        if config.mode is Mode.MODE_STATIC_RANK:
            self._rank = self._total(config)

    @classmethod
    def of_blob(cls, states: Iterable[VariableState], config: AdapterConfig) -> Self:
        """Create a controller for a model from a blob.

        Raises:
            AdapterError: the model has no states for adapters, or the mode is not MODE_DYNAMIC.
        """
        controller = cls(states, AdapterConfig())
        settable = config.mode.settled is Mode.MODE_DYNAMIC
        if not controller._states or not settable:
            raise AdapterError(
                "adapters: the model of BLOB_PATH has no states for them, or the mode is not "
                "MODE_DYNAMIC; export it again with adapters in MODE_DYNAMIC, or leave them out"
            )
        controller.apply(AdapterConfig(config.get_adapters_and_alphas()))
        return controller

    def changes(self, config: AdapterConfig | None) -> bool:
        """Return whether ``apply`` would change the model's results; errors as ``apply``."""
        wanted = self._wanted if config is None else self._checked(config)
        return self._wanted.mode not in _FIXED and wanted != self._held

    def apply(self, config: AdapterConfig | None) -> None:
        """Set the adapters of the next generation.

        Args:
            config: the requested adapters; None keeps the current ones.

        Raises:
            ConfigError: the mode differs from the pipeline's; or fixed adapters would change.
            AdapterError: an adapter has layers that were not compiled for it, or too large a rank.
        """
        wanted = self._wanted if config is None else self._checked(config)
        if self.changes(config):
            self._set(wanted)
        self._wanted = wanted

    def values(self) -> dict[str, Array]:
        """Return the values of the states of the current adapters, by name."""
        return self._states.values()

    def _checked(self, config: AdapterConfig) -> AdapterConfig:
        mode = self._wanted.mode
        if config.mode not in (Mode.MODE_AUTO, mode):
            raise ConfigError(
                f"adapters: the pipeline was created in {mode.name}, which cannot change to "
                f"{config.mode.name}; leave the mode out"
            )
        wanted = AdapterConfig(config.get_adapters_and_alphas(), mode)
        if mode in _FIXED and wanted != self._wanted:
            raise ConfigError(
                f"adapters: adapters and alphas in {mode.name} are fixed when the pipeline is "
                "created; use MODE_DYNAMIC"
            )
        if self._rank is not None and self._total(config) > self._rank:
            raise ConfigError(
                "adapters: in MODE_STATIC_RANK the total rank is limited to that of the first "
                f"adapters, {self._rank}; use MODE_DYNAMIC"
            )
        return wanted

    def _set(self, config: AdapterConfig) -> None:
        pairs = config.get_adapters_and_alphas()
        added = blend(pairs, self._products)
        before, self._held = self._held, None
        try:
            if before is not None and before.get_adapters() == config.get_adapters():
                self._states.set_alphas(added)
            else:
                self._states.set(added)
        except RuntimeError as error:
            files = ", ".join(adapter.source for adapter, _ in pairs)
            raise AdapterError(f"{files}: {error}") from error
        self._held = config

    def _total(self, config: AdapterConfig) -> int:
        """Return the largest total rank of any matmul."""
        added = blend(config.get_adapters_and_alphas(), self._products)
        return max(map(_rank, added.values()), default=0)


def _rank(added: LowRank) -> int:
    return len(added.a)
