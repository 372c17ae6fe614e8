"""Adaptation: the adapters that a model is compiled with, and their mode."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import OptionError
from npuw_layer.options import Options
from npuw_layer.traits.lora.low_rank import LowRank, Mode

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True)
class Adaptation:
    """Adapters of a model, and their mode.

    Attributes:
        products: adapter of each matmul, by its name in ``products``. If requests set adapters,
            only types and widths matter here.
        mode: way of insertion.
    """

    products: Mapping[str, LowRank]
    mode: Mode

    @property
    def digest(self) -> str:
        """Identity of the adaptation, which distinguishes adapted models."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        found = hashlib.sha256(self.mode.value.encode())
        for name in sorted(self.products):
            found.update(_described(self.products[name], name))
            if not self.mode.is_settable:
                for part in _parts(self.products[name]):
                    found.update(np.ascontiguousarray(part).data)
        return found.hexdigest()

    @property
    def of_weights(self) -> str:
        """Identity of the adapters in the weights; empty if requests set adapters."""
        return "" if self.mode.is_settable else self.digest

    def apply(self, model: Model) -> None:
        """Insert the adapters into a model; see ``insert``."""
        # Imported here: a warm start compiles nothing, so it need not import ``insert``.
        from npuw_layer.traits.lora.insert import insert_adapters

        insert_adapters(model, self.products, self.mode)

    @property
    def rank(self) -> int:
        """Largest rank of all adapters."""
        return max((len(each.a) for each in self.products.values()), default=0)


def adapted_options(options: Options, adaptation: Adaptation) -> Options:
    """Return the options for an adapted model.

    Args:
        options: settled options of a language model.
        adaptation: adapters of the model.

    Raises:
        OptionError: a rank is too large.
    """
    if adaptation.mode is Mode.STATIC_RANK:
        return options.model_copy(update={"max_lora_rank": max(1, adaptation.rank)})
    if adaptation.mode is Mode.DYNAMIC and adaptation.rank > options.max_lora_rank:
        raise OptionError(
            f"NPUW_LLM_MAX_LORA_RANK = {options.max_lora_rank}: the adapters have rank "
            f"{adaptation.rank} together; raise the option"
        )
    return options


def _parts(added: LowRank) -> tuple[Array, Array, Array]:
    return added.a, added.alpha, added.b


def _described(added: LowRank, name: str) -> bytes:
    """Return name, types and widths; the rank is not a property of the model."""
    shapes = f"{added.a.dtype} {added.a.shape[1:]} {added.b.dtype} {added.b.shape[:1]}"
    return f"{len(name)} {name} {shapes};".encode()
