"""Puts an exported IR together again from its XML and the recipe of its ``.bin``.

Weights are drawn from a seed, in the type that the exporter stored them in: floats with the mean
and the deviation that they had, 8-bit integers likewise, 4-bit ones evenly. What is small or no
weight (axes, shapes, scalars) is kept byte by byte.
"""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

KEPT_BYTES = 64

_FLOATS = {"f32": np.float32, "f16": np.float16}
_BYTES = {"u8": np.uint8, "i8": np.int8}
_NIBBLES = ("u4", "i4")


def describe(data: bytes, element: str, kept: int = KEPT_BYTES) -> dict[str, Any]:
    """Say how a constant's bytes are made anew; up to ``kept`` of them are kept as they are."""
    kind = _FLOATS.get(element) or _BYTES.get(element)
    if len(data) <= kept or (kind is None and element not in _NIBBLES):
        return {"bytes": base64.b64encode(data).decode()}
    if kind is None:
        return {"draw": element, "size": len(data)}
    values = np.frombuffer(data, kind).astype(np.float64)
    mean, deviation = float(values.mean()), float(values.std())
    # Scales are positive, and must stay so.
    return {
        "draw": element,
        "size": len(data),
        "mean": mean,
        "std": deviation,
        "positive": bool(values.min() > 0),
    }


def _drawn(part: dict[str, Any]) -> bytes:
    random = np.random.RandomState(part["offset"] % (1 << 32))
    if part["draw"] in _NIBBLES:
        return random.randint(0, 256, part["size"]).astype(np.uint8).tobytes()
    kind = np.dtype(_FLOATS.get(part["draw"]) or _BYTES[part["draw"]])
    values = random.standard_normal(part["size"] // kind.itemsize) * part["std"] + part["mean"]
    if kind.kind == "f":
        # Wider than the random weights of a new model, so that greedy decoding has clear winners.
        values = np.abs(values) if part["positive"] else values
        return (values * 1.6).astype(kind).tobytes()
    limits = np.iinfo(kind)
    return np.clip(np.round(values), limits.min, limits.max).astype(kind).tobytes()


def restore(folder: Path, name: str, target: Path) -> Path:
    """Write ``openvino_model.xml`` and ``.bin`` into a folder; give the path of the first."""
    described = json.loads(lzma.decompress((folder / f"{name}.json.xz").read_bytes()))
    content = bytearray(described["size"])
    for part in described["parts"]:
        data = _drawn(part) if "draw" in part else base64.b64decode(part["bytes"])
        content[part["offset"] : part["offset"] + len(data)] = data
    target.mkdir(parents=True, exist_ok=True)
    (target / "openvino_model.bin").write_bytes(content)
    xml = target / "openvino_model.xml"
    xml.write_bytes(lzma.decompress((folder / f"{name}.xml.xz").read_bytes()))
    return xml
