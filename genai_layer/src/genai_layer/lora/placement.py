"""Assignment of adapters to a model's matmuls, and blending of several adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from genai_layer.abilities import LowRank
from genai_layer.errors import AdapterError
from genai_layer.lora.adapter import Adapter, Pair

AdaptableMatmuls = Mapping[str, tuple[int, int]]
"""Matmuls of a model by name, with their input and output widths."""

_PREFIX = "base_model.model."
"""Prefix of a language model's layer names in adapter files."""


def place(adapter: Adapter, products: AdaptableMatmuls) -> dict[str, Pair]:
    """Assign an adapter's pairs to matmuls.

    A layer name is part of its matmul's name, with dots or with underscores in their place; if
    several layers match, the first in the order of names is used. openvino_genai does the same, but
    ignores layers without a matmul.

    Raises:
        AdapterError: a layer matches no matmul, or a matmul of other widths.
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
                f"{list(pair.b.shape)}, but the model's has {inputs} inputs and "
                f"{outputs} outputs; is the adapter for this model?"
            )
        found[product] = pair
        unused.discard(layer)
    if unused:
        raise AdapterError(
            f"{adapter.source}: the model has no adaptable layer {min(unused)!r}"
            f"{f' (nor {len(unused) - 1} more)' if len(unused) > 1 else ''}; is the adapter for "
            "this model, and were its layers adapted when the pipeline was made?"
        )
    return found


def blend(
    adapters: Sequence[tuple[Adapter, float]], products: AdaptableMatmuls
) -> dict[str, LowRank]:
    """Concatenate the low-rank terms of several adapters along the rank, each with its alpha.

    Args:
        adapters: adapters with their alphas.
        products: the model's adaptable matmuls.

    Returns:
        The term to add to each adapted matmul; f16 if all its pairs are f16.

    Raises:
        AdapterError: an adapter belongs to another model.
    """
    several: dict[str, list[tuple[Pair, float]]] = {}
    for adapter, alpha in adapters:
        for product, pair in place(adapter, products).items():
            several.setdefault(product, []).append((pair, alpha))
    return {product: joined(parts) for product, parts in several.items()}


def joined(parts: Sequence[tuple[Pair, float]]) -> LowRank:
    """Concatenate pairs with alphas: ranks add up, and so do the terms."""
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
            f"{adapter.source}: layer {layer!r} does not begin with {_PREFIX!r}, as layers of "
            "language models do; rename the tensors"
        )
    return layer.removeprefix(_PREFIX)
