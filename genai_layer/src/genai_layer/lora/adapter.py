"""LoRA adapter: the pairs of A and B in a file, by layer, and their assignment to matmuls.

Several adapters are blended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from genai_layer.abilities import LowRank
from genai_layer.checked import checked
from genai_layer.errors import AdapterError
from genai_layer.files import is_file
from genai_layer.lora.safetensors import read_tensors
from genai_layer.runtime import Array
from genai_layer.tensor import HasData, array_of

_SUFFIX = ".safetensors"
_PART = re.compile(r"(?P<layer>.+)[_.]lora[_.](?P<part>A|B|down|up)\.weight", re.DOTALL)
"""PEFT's names, and kohya's."""
_IGNORED = re.compile(r".*\.alpha", re.DOTALL)
"""Alpha in the file: ignored, as in openvino_genai; AdapterConfig sets alpha."""
_WHOLE = re.compile(r".*(lm_head|embed_tokens)\.weight", re.DOTALL)
_PARTS = {"A": "A", "down": "A", "B": "B", "up": "B"}


Bytes = HasData | npt.NDArray[Any]
Content = str | bytes | os.PathLike[Any] | Bytes
"""An adapter's file, or its content."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The two matrices of an adapted layer."""

    a: Array
    """A [rank, in], f32 or f16."""
    b: Array
    """B [out, rank], of the same type."""

    @property
    def rank(self) -> int:
        """Number of rows of A."""
        return len(self.a)


class Adapter:
    """LoRA adapter from a file; immutable, and equal only to itself.

    Args:
        path: a safetensors file with PEFT's names (``….lora_A.weight``) or kohya's
            (``….lora_down.weight``); or the file's bytes as a numpy array or an
            ``openvino.Tensor``. Without an argument the adapter is empty, and false.
        safetensor: the bytes, as a keyword argument.

    Raises:
        AdapterError: the file is missing, damaged or not an adapter; the message names the file.
    """

    @checked
    def __init__(self, path: Content | None = None, *, safetensor: Bytes | None = None) -> None:
        self._source = ""
        self._layers: Mapping[str, Pair] = {}
        if isinstance(path, str | bytes | os.PathLike):
            file = Path(os.fsdecode(path))
            self._source = str(file)
            self._layers = self._read(_file_content(file))
        elif (given := safetensor if path is None else path) is not None:
            self._source = "the adapter that was given as a tensor"
            self._layers = self._read(array_of(given).tobytes())

    @property
    def source(self) -> str:
        """Name of the file, for messages."""
        return self._source or "the empty adapter"

    @property
    def layers(self) -> Mapping[str, Pair]:
        """Pairs by the layer names of the file, sorted."""
        return self._layers

    def __bool__(self) -> bool:
        return bool(self._source)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"Adapter({self._source!r})"

    def _read(self, content: bytes) -> Mapping[str, Pair]:
        try:
            return _pairs(read_tensors(content))
        except ValueError as error:
            raise AdapterError(f"{self._source}: {error}") from None


def _file_content(path: Path) -> bytes:
    if path.suffix != _SUFFIX:
        raise AdapterError(f"{path}: adapters must be {_SUFFIX} files; convert the file")
    if not is_file(path, AdapterError):
        raise AdapterError(f"{path}: no such file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise AdapterError(f"{path}: cannot be read: {error.strerror}") from None


def _pairs(tensors: Mapping[str, Array]) -> Mapping[str, Pair]:
    """Group tensors by layer.

    Raises:
        ValueError: a tensor belongs to no pair, or a pair is incomplete.
    """
    layers: dict[str, dict[str, Array]] = {}
    for name, values in sorted(tensors.items()):
        found = _PART.fullmatch(name)
        if found is not None:
            layers.setdefault(found["layer"], {})[_PARTS[found["part"]]] = values
        elif _WHOLE.fullmatch(name):
            raise ValueError(
                f"{name!r} replaces a full weight matrix (modules_to_save): not supported; "
                "train the adapter without modules_to_save, or merge it into the model"
            )
        elif not _IGNORED.fullmatch(name):
            raise ValueError(
                f"{name!r} belongs to no LoRA pair (….lora_A.weight and ….lora_B.weight)"
            )
    if not layers:
        raise ValueError("the file has no LoRA pair (….lora_A.weight and ….lora_B.weight)")
    return {layer: _pair(layer, parts) for layer, parts in sorted(layers.items())}


def _pair(layer: str, parts: Mapping[str, Array]) -> Pair:
    for part in ("A", "B"):
        if part not in parts:
            raise ValueError(f"layer {layer!r} has no lora_{part}")
    a, b = parts["A"], parts["B"]
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1] or not a.size or not b.size:
        raise ValueError(
            f"layer {layer!r} has A {list(a.shape)} and B {list(b.shape)}; expected [rank, in] and "
            "[out, rank] of equal rank"
        )
    kind = np.result_type(a, b)
    return Pair(a.astype(kind, copy=False), b.astype(kind, copy=False))


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
