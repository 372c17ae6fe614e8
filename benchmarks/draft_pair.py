"""Pair of models for speculative decoding: a deep target, and a draft of its first layers.

The target is the demo model with further layers of random weights, as large as those of its last
layer: they add noise that seldom changes a prediction, so that the first layers and the head mostly
predict what the whole model predicts. Texts are real; the added layers take most of the time.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from genai_layer.lora.safetensors import read_tensors

DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
LAYERS = 32
"""Layers of the target."""

Weights = dict[str, npt.NDArray[np.float16]]


def make_pair(folder: Path) -> tuple[Path, Path]:
    """Write the target; return the folders of target and draft (the demo model itself)."""
    target = folder / "demo-deep"
    if not (target / "model.safetensors").is_file():
        target.mkdir(parents=True, exist_ok=True)
        for file in DEMO.glob("*.json"):
            shutil.copyfile(file, target / file.name)
        config = json.loads((DEMO / "config.json").read_text())
        first = config["num_hidden_layers"]
        (target / "config.json").write_text(json.dumps(config | {"num_hidden_layers": LAYERS}))
        weights = read_tensors((DEMO / "model.safetensors").read_bytes())
        write_weights(target / "model.safetensors", deepened(weights, first))
    return target, DEMO


def deepened(weights: Weights, layers: int) -> Weights:
    """Return the weights with further layers like the last one, up to ``LAYERS``."""
    draw = np.random.default_rng(31)
    like = f"model.layers.{layers - 1}."
    found = dict(weights)
    for layer in range(layers, LAYERS):
        for name in [name for name in weights if name.startswith(like)]:
            old = weights[name].astype(np.float32)
            new = old if old.ndim == 1 else draw.standard_normal(old.shape, np.float32) * old.std()
            found[name.replace(like, f"model.layers.{layer}.")] = new.astype(np.float16)
    return found


def write_weights(path: Path, weights: Weights) -> None:
    """Write f16 tensors."""
    header: dict[str, object] = {}
    end = 0
    for name, values in weights.items():
        begin, end = end, end + values.nbytes
        header[name] = {"dtype": "F16", "shape": values.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in weights.values():
            file.write(values.tobytes())
    unfinished.replace(path)
