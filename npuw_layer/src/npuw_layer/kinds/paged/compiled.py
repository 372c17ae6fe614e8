"""All variants of a model with paged attention, compiled or taken from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device, ImportsMemory
from npuw_layer.errors import ModelError
from npuw_layer.kinds.paged.lengths import variant_sizes
from npuw_layer.kinds.paged.names import OPTION, VARIANT
from npuw_layer.kinds.static.compiled import CompiledStatic, compile_static
from npuw_layer.kinds.static.parts import CompiledParts
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True, slots=True)
class CompiledPaged(CompiledParts):
    """All variants of a model; requests do not modify them.

    Attributes:
        variants: static models by number of tokens, ascending; they share their weights.
    """

    variants: dict[int, CompiledStatic]

    @property
    def parts(self) -> Sequence[CompiledStatic]:
        """The variants; the last one takes the most tokens."""
        return [*self.variants.values()]


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
