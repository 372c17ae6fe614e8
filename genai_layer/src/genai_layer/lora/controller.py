"""What a pipeline's adapters are set to, from one generation to the next.

Source: openvino_genai's AdapterController: a generation that says nothing of adapters keeps those
of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from genai_layer.errors import AdapterError, ConfigError
from genai_layer.lora.adapter_config import AdapterConfig, AdapterMode
from genai_layer.lora.placement import blend
from genai_layer.lora.states import AdapterStates
from genai_layer.runtime import InferRequest, LowRank, VariableState

_FIXED = (AdapterMode.MODE_STATIC, AdapterMode.MODE_FUSE)


def control(
    request: InferRequest, config: AdapterConfig | None, from_blob: bool
) -> AdapterController | NoAdapters:
    """Control the adapters of a pipeline's request.

    Args:
        request: the pipeline's only one.
        config: the first adapters, which are set at once; None if it was made without.
        from_blob: whether its model was compiled before.

    Raises:
        AdapterError: they do not fit what was compiled.
    """
    if config is None:
        return NoAdapters()
    make = AdapterController.of_blob if from_blob else AdapterController
    return make(request.query_state(), config)


class NoAdapters:
    """In place of a controller, where a pipeline was made without adapters."""

    def apply(self, config: AdapterConfig | None) -> None:
        """See that none are wanted.

        Raises:
            ConfigError: some are.
        """
        if config:
            raise ConfigError(
                "adapters: the pipeline was made without; name all that may be wanted when it is "
                "made, LLMPipeline(..., adapters=...)"
            )


class AdapterController:
    """The adapters of one request.

    Args:
        states: all of the request; those of adapters are told by their names.
        config: the first adapters, which are set at once, and the mode.

    Raises:
        AdapterError: they do not fit what was compiled.
    """

    def __init__(self, states: Iterable[VariableState], config: AdapterConfig) -> None:
        self._states = AdapterStates(states)
        self._products = self._states.products()
        self._wanted = AdapterConfig(config.get_adapters_and_alphas(), config.mode.settled)
        self._held: AdapterConfig | None = None
        """What the states hold; unknown while some are set and others not yet."""
        self._rank: int | None = None
        if config.mode not in _FIXED:
            self._set(self._wanted)
        if config.mode is AdapterMode.MODE_STATIC_RANK:
            self._rank = self._total(config)

    @classmethod
    def of_blob(cls, states: Iterable[VariableState], config: AdapterConfig) -> Self:
        """Control a request of a model that was compiled before.

        Raises:
            AdapterError: it has no states for adapters, or they are to be set in another way.
        """
        controller = cls(states, AdapterConfig())
        settable = config.mode.settled is AdapterMode.MODE_DYNAMIC
        if not controller._states or not settable:
            raise AdapterError(
                "adapters: the model of BLOB_PATH has no states for them, or not in this mode; "
                "export it anew with adapters in MODE_DYNAMIC, or leave them out"
            )
        controller.apply(AdapterConfig(config.get_adapters_and_alphas()))
        return controller

    def apply(self, config: AdapterConfig | None) -> None:
        """Set the adapters of the next generation.

        Args:
            config: those wanted; None keeps what there is.

        Raises:
            ConfigError: the mode is another than the pipeline's; or they differ, and are fixed.
            AdapterError: one has layers that were not compiled to be adapted, or too large a rank.
        """
        wanted = self._wanted if config is None else self._checked(config)
        if self._wanted.mode not in _FIXED and wanted != self._held:
            self._set(wanted)
        self._wanted = wanted

    def _checked(self, config: AdapterConfig) -> AdapterConfig:
        mode = self._wanted.mode
        if config.mode not in (AdapterMode.MODE_AUTO, mode):
            raise ConfigError(
                f"adapters: the mode is {mode.name} since the pipeline was made, and cannot become "
                f"{config.mode.name}; leave it out"
            )
        wanted = AdapterConfig(config.get_adapters_and_alphas(), mode)
        if mode in _FIXED and wanted != self._wanted:
            raise ConfigError(
                f"adapters: in {mode.name} they and their alphas are fixed when the pipeline is "
                "made; use MODE_DYNAMIC"
            )
        if self._rank is not None and self._total(config) > self._rank:
            raise ConfigError(
                f"adapters: in MODE_STATIC_RANK all together have at most the first ones' rank, "
                f"{self._rank}; use MODE_DYNAMIC"
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
        """The largest rank of any product."""
        added = blend(config.get_adapters_and_alphas(), self._products)
        return max(map(_rank, added.values()), default=0)


def _rank(added: LowRank) -> int:
    return len(added.a)
