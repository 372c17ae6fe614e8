"""Golden files tests/goldens/paged: exported models with paged attention, and OpenVINO's results.

OpenVINO's own transformation converts IRs in tests/goldens/exported. OpenVINO writes such a model
but cannot read it, so results are those of the model in memory, and its XML is stored. Its weights
are in the ``.bin`` of the exported IR, which has a recipe: constants are located there, and the
others are stored as a tail.

Needs openvino, as the tests do:

    .venv/bin/python tools/make_paged_goldens.py        # from the checkout, a few seconds
"""

from __future__ import annotations

import lzma
import re
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
from golden_ir import EXACT, EXPORTED, GOLDENS, load_module
from golden_ir import restore as exported
from openvino._offline_transformations import paged_attention_transformation

TARGET = GOLDENS / "paged"
NAMES = ("llama_fp16", "gemma2_fp16")
"""Models with grouped heads, and with windows of 64 tokens in every other layer."""

_CONST = re.compile(rb'offset="(\d+)" size="(\d+)"')

sequences = load_module(TARGET / "sequences.py")


def move_weights(xml: bytes, content: bytes, original: bytes) -> tuple[bytes, bytes]:
    """Move an IR's constants to another ``.bin``; return the XML, and the bytes to append."""
    tail = bytearray()

    def moved(match: re.Match[bytes]) -> bytes:
        offset, size = map(int, match.groups())
        data = content[offset : offset + size]
        place = original.find(data)
        if place < 0:
            place = len(original) + len(tail)
            tail.extend(data)
        return b'offset="%d" size="%d"' % (place, size)

    return _CONST.sub(moved, xml), bytes(tail)


def oracle(model: ov.Model) -> dict[str, np.ndarray]:
    """Return the CPU plugin's logits of the last tokens of each step."""
    compiled = ov.Core().compile_model(model, "CPU", EXACT)
    request = compiled.create_infer_request()
    shapes = [port.partial_shape for port in compiled.inputs if "cache" in port.any_name]
    heads, width = shapes[0][1].get_length(), shapes[0][3].get_length()
    pages = sequences.caches(heads, width, len(shapes) // 2)
    for name, values in pages.items():
        request.set_tensor(name, ov.Tensor(values, shared_memory=True))
    found: dict[str, np.ndarray] = {}
    asked = sequences.Sequences()
    for number, step in enumerate(sequences.STEPS):
        inputs = {name: ov.Tensor(values) for name, values in asked.inputs(step).items()}
        logits = next(iter(request.infer(inputs).values()))
        found[f"logits_{number}"] = logits[sequences.last_tokens(step)]
    return found


def main() -> None:
    """Write all golden files."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for each in NAMES:
            plain = exported.restore(EXPORTED, each, work / each)
            model = ov.Core().read_model(plain)
            paged_attention_transformation(model)
            saved = work / f"{each}.xml"
            ov.save_model(model, saved, compress_to_fp16=False)
            content, original = (one.with_suffix(".bin").read_bytes() for one in (saved, plain))
            xml, tail = move_weights(saved.read_bytes(), content, original)
            (TARGET / f"{each}.xml.xz").write_bytes(lzma.compress(xml, preset=9))
            kept = {"tail": np.frombuffer(tail, np.uint8), **oracle(model)}
            np.savez_compressed(TARGET / f"{each}.npz", **kept)  # pyright: ignore[reportArgumentType]
            print(each, len(tail))


if __name__ == "__main__":
    main()
