"""Beside which products of a model adapters belong, and what several add to each together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from genai_layer.errors import AdapterError
from genai_layer.lora.adapter import Adapter, Pair
from genai_layer.runtime import LowRank

Products = Mapping[str, tuple[int, int]]
"""Products of a model by name, with the widths of what they take and of what they give."""

_PREFIX = "base_model.model."
"""With which files of adapters begin the names of a language model's layers."""


def place(adapter: Adapter, products: Products) -> dict[str, Pair]:
    """Find the products that an adapter's pairs belong beside.

    A layer is part of its product's name, with dots or with underscores in their place; if several
    are, the first in the order of names counts. So openvino_genai does it, too, but it leaves out
    what it does not find.

    Raises:
        AdapterError: a layer is not found, or of other widths than the product.
    """
    layers = {_stripped(adapter, name): pair for name, pair in adapter.layers.items()}
    found: dict[str, Pair] = {}
    unused = set(layers)
    for product, (inputs, outputs) in products.items():
        spellings = product, product.replace(".", "_")
        layer = next((one for one in layers if any(one in each for each in spellings)), None)
        if layer is None:
            continue
        pair = layers[layer]
        if (pair.a.shape[1], pair.b.shape[0]) != (inputs, outputs):
            raise AdapterError(
                f"{adapter.source}: layer {layer!r} has A {list(pair.a.shape)} and B "
                f"{list(pair.b.shape)}, but the model's takes {inputs} channels and gives "
                f"{outputs}; is the adapter one of this model?"
            )
        found[product] = pair
        unused.discard(layer)
    if unused:
        raise AdapterError(
            f"{adapter.source}: nothing to adapt is called {min(unused)!r}"
            f"{f' (nor {len(unused) - 1} more)' if len(unused) > 1 else ''}; is the adapter one of "
            "this model, and were its layers adapted when the pipeline was made?"
        )
    return found


def blend(adapters: Sequence[tuple[Adapter, float]], products: Products) -> dict[str, LowRank]:
    """Join what several adapters add, each at its alpha: their ranks lie side by side.

    Args:
        adapters: with their alphas.
        products: those of the model that can be adapted.

    Returns:
        What is added to each product that is adapted; of f16 if all pairs there are.

    Raises:
        AdapterError: one does not belong to the model.
    """
    several: dict[str, list[tuple[Pair, float]]] = {}
    for adapter, alpha in adapters:
        for product, pair in place(adapter, products).items():
            several.setdefault(product, []).append((pair, alpha))
    return {product: joined(parts) for product, parts in several.items()}


def joined(parts: Sequence[tuple[Pair, float]]) -> LowRank:
    """Put pairs with alphas side by side: their ranks add up, and so does what they add."""
    alphas = [np.full((1, pair.rank), alpha, np.float32) for pair, alpha in parts]
    kind = np.result_type(*(pair.a for pair, _ in parts))
    return LowRank(
        np.concatenate([pair.a for pair, _ in parts], 0, dtype=kind),
        np.concatenate(alphas, 1),
        np.concatenate([pair.b for pair, _ in parts], 1, dtype=kind),
    )


def _stripped(adapter: Adapter, layer: str) -> str:
    if not layer.startswith(_PREFIX) or layer == _PREFIX:
        raise AdapterError(
            f"{adapter.source}: layer {layer!r} does not begin with {_PREFIX!r}, as those of "
            "language models do; rename its tensors"
        )
    return layer.removeprefix(_PREFIX)
