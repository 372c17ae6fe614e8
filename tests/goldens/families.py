"""Folders of tiny models of many families, with seeded random weights that are equal everywhere.

``families.json`` has each model's config as transformers writes it, and names and shapes of the
tensors that transformers stores; ``tools/make_family_goldens.py`` writes it. Weights are drawn
again, as numpy's RandomState returns equal numbers in every version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

DESCRIPTIONS = Path(__file__).with_name("families.json")

LENGTHS = (1, 7, 100)
"""Prompt lengths in tokens; the longest is longer than any sliding window."""

PADDING = 5
"""Number of zeros at the beginning of a padded prompt's attention mask."""

PADDED = 40
"""Length of a padded prompt, padding included."""

GREEDY_TOKENS = 32


def descriptions() -> dict[str, Any]:
    """Read config, element type and tensor shapes of each model, by name."""
    return json.loads(DESCRIPTIONS.read_text())


def prompt(config: Mapping[str, Any], length: int) -> np.ndarray:
    """Draw token ids, i64 [1, length]."""
    return np.random.RandomState(length).randint(0, config["vocab_size"], (1, length))


def padded_prompt(config: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, mask and positions of a prompt padded on the left, i64 [1, PADDED]."""
    mask = np.ones((1, PADDED), np.int64)
    mask[:, :PADDING] = 0
    return prompt(config, PADDED), mask, np.maximum(np.cumsum(mask, 1) - 1, 0)


def recorded_rows(length: int) -> np.ndarray:
    """Return the tokens whose logits are stored: the last one, and every ninth before it."""
    return np.arange(length - 1, -1, -9)[::-1]


def draw(shapes: Mapping[str, list[int]]) -> Iterator[tuple[str, np.ndarray]]:
    """Draw the weights, f32: matrices around 0, norms around 1, biases around 0."""
    random = np.random.RandomState(7)
    for name, shape in shapes.items():
        values = random.standard_normal(shape).astype(np.float32) * np.float32(0.2)
        plain = len(shape) == 1 and name.endswith(".weight")
        yield name, values + np.float32(1) if plain else values


def encode(values: np.ndarray, element: str) -> bytes:
    """Encode values as F32, F16 or BF16, which is truncated."""
    if element == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return values.astype({"F16": np.float16, "F32": np.float32}[element]).tobytes()


def write_safetensors(
    path: Path, tensors: Mapping[str, tuple[list[int], bytes]], kind: str
) -> None:
    """Write a safetensors file of encoded tensors."""
    header: dict[str, object] = {}
    offset = 0
    for name, (shape, data) in tensors.items():
        place = [offset, offset + len(data)]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": place}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = b"".join(data for _, data in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def write_folder(folder: Path, description: Mapping[str, Any], shards: int = 1) -> Path:
    """Write the Hugging Face folder of a model, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(description["config"], indent=1))
    kind, shapes = description["element"], description["tensors"]
    tensors = {name: (shapes[name], encode(values, kind)) for name, values in draw(shapes)}
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors, kind)
        return folder
    weight_map: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(tensors.items())[shard::shards])
        write_safetensors(folder / file, part, kind)
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
