"""All variants of a model with paged attention, compiled or taken from the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device, ImportsMemory, LoadedModel
from npuw_layer.errors import ModelError
from npuw_layer.kinds.paged.lengths import variant_sizes
from npuw_layer.kinds.paged.names import OPTION, VARIANT
from npuw_layer.kinds.static.compiled import CompiledStatic, compile_static
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.options import Options
from npuw_layer.storage.programs import Origin
from npuw_layer.tensors.names import vocabulary_of

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True, slots=True)
class CompiledPaged:
    """All variants of a model; requests do not modify them.

    Attributes:
        variants: static models by number of tokens, ascending; they share their weights.
    """

    variants: dict[int, CompiledStatic]

    @property
    def largest(self) -> CompiledStatic:
        """The variant with the most tokens."""
        return self.variants[max(self.variants)]

    @property
    def device(self) -> Device:
        """Device, or group of devices, that runs all ops except attention."""
        return self.largest.device

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The variants by name."""
        every = (each.submodels for each in self.variants.values())
        return {name: loaded for submodels in every for name, loaded in submodels.items()}

    @property
    def options(self) -> Options:
        """Options of the compilation."""
        return self.largest.options

    @property
    def vocabulary(self) -> int | None:
        """Number of token ids; None if the model takes no ids, or does not look them up."""
        return vocabulary_of(port.any_name for port in self.largest.inputs)

    @property
    def origin(self) -> Origin:
        """Origin of the programs: compiled or cached."""
        parts = [each.origin for each in self.variants.values()]
        return Origin(
            seconds=sum(part.seconds for part in parts),
            compiled=sum(part.compiled for part in parts),
            cached=sum(part.cached for part in parts),
        )

    @property
    def shared(self) -> None:
        """None: weights are not shared with other processes."""
        return


def submodels(options: Options) -> Sequence[str]:
    """Return the names of the variants, ascending by tokens."""
    return [_name(size) for size in variant_sizes(options.max_prompt_len)]


def compile_paged(
    path: Path, device: Device, npu: ImportsMemory, options: Options
) -> CompiledPaged:
    """Compile all variants, or load them from the cache.

    Args:
        path: an IR's ``.xml``.
        device: the device that runs all ops except attention.
        npu: the NPU whose memory holds remote tensors.
        options: NPUW_LLM_MAX_PROMPT_LEN, and options of static models.

    Raises:
        ModelError: the model has no paged attention, or is not supported.
        DeviceError: a device rejects a variant.
    """
    if path.suffix != ".xml":
        raise ModelError(f"{OPTION} = YES: {path} is not an IR; save the transformed model first")
    whole = cache(GraphSource.whole(path).graph)

    def graph(size: int) -> Model:
        from npuw_layer.kinds.paged.variant import variant

        return variant(whole(), size, options.precision)

    def compiled(size: int) -> CompiledStatic:
        depends = {f"{OPTION}: tokens": str(size)}
        source = GraphSource(path, partial(graph, size), _name(size), depends)
        return compile_static(source, device, npu, options)

    variants = {size: compiled(size) for size in variant_sizes(options.max_prompt_len)}
    bank = variants[1].bank
    return CompiledPaged({size: replace(each, bank=bank) for size, each in variants.items()})


def _name(size: int) -> str:
    return f"{VARIANT}_{size}"
