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
    """The variants; requests change nothing here.

    Attributes:
        variants: by how many tokens they take, ascending; they have their weights in common.
    """

    variants: dict[int, CompiledStatic]

    @property
    def largest(self) -> CompiledStatic:
        """The variant for the most tokens."""
        return self.variants[max(self.variants)]

    @property
    def device(self) -> Device:
        """What runs all but attention; it may be several."""
        return self.largest.device

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The variants by name."""
        every = (each.submodels for each in self.variants.values())
        return {name: loaded for submodels in every for name, loaded in submodels.items()}

    @property
    def options(self) -> Options:
        """What they were compiled with."""
        return self.largest.options

    @property
    def vocabulary(self) -> int | None:
        """How many token ids there are; None if it takes none, or does not look them up."""
        return vocabulary_of(port.any_name for port in self.largest.inputs)

    @property
    def origin(self) -> Origin:
        """Where all came from."""
        parts = [each.origin for each in self.variants.values()]
        return Origin(
            seconds=sum(part.seconds for part in parts),
            compiled=sum(part.compiled for part in parts),
            cached=sum(part.cached for part in parts),
        )

    @property
    def shared(self) -> None:
        """Weights are not shared with other processes."""
        return


def submodels(options: Options) -> Sequence[str]:
    """Give what the variants are called, ascending."""
    return [_name(size) for size in variant_sizes(options.max_prompt_len)]


def compile_paged(
    path: Path, device: Device, npu: ImportsMemory, options: Options
) -> CompiledPaged:
    """Compile, or load from the cache, all variants.

    Args:
        path: an IR's ``.xml``.
        device: where they will run, but for attention.
        npu: where remote tensors are.
        options: NPUW_LLM_MAX_PROMPT_LEN, and those of static models.

    Raises:
        ModelError: the model has no paged attention, or is not supported.
        DeviceError: a device refuses it.
    """
    if path.suffix != ".xml":
        raise ModelError(f"{OPTION} = YES: {path} is no IR; save the transformed model first")
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
