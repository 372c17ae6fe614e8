"""Restored IR of an exporter, from its XML and the recipe of its ``.bin``.

Weights are drawn from a seed, in the exporter's type: floats and 8-bit integers with the original
mean and deviation, 4-bit integers uniformly. Small constants and those that are no weights (axes,
shapes, scalars) are stored byte by byte.
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
    """Return the recipe of a constant; up to ``kept`` bytes are stored unchanged."""
    kind = _FLOATS.get(element) or _BYTES.get(element)
    if len(data) <= kept or (kind is None and element not in _NIBBLES):
        return {"bytes": base64.b64encode(data).decode()}
    if kind is None:
        return {"draw": element, "size": len(data)}
    values = np.frombuffer(data, kind).astype(np.float64)
    mean, deviation = float(values.mean()), float(values.std())
    # Scales must stay positive.
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
        # Larger than the random weights of a new model, so greedy decoding has no near-ties.
        values = np.abs(values) if part["positive"] else values
        return (values * 1.6).astype(kind).tobytes()
    limits = np.iinfo(kind)
    return np.clip(np.round(values), limits.min, limits.max).astype(kind).tobytes()


def restore(folder: Path, name: str, target: Path) -> Path:
    """Write ``openvino_model.xml`` and ``.bin`` into a folder; return the path of the XML."""
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
