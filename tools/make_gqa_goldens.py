"""Golden files tests/goldens/gqa: decoders in ONNX Runtime's form, and OpenVINO's results.

Their attention is com.microsoft.GroupQueryAttention, with caches of static length as inputs and
outputs. OpenVINO reads this from ONNX and writes it as IR, but cannot read such an IR. One model
reads a prompt, another one each token after it.

    pip install onnx openvino
    python tools/make_gqa_goldens.py
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS
from onnx_graph import Graph

TARGET = GOLDENS / "gqa"
VOCABULARY, WIDTH, HEADS, KV_HEADS, HEAD, ROWS, LAYERS = 40, 16, 4, 2, 4, 24, 2
PROMPT, STEPS = 7, 5
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"do_rotary": 1},
    "window": {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 4},
}


def decoder(tokens: int, **attention: Any) -> Any:
    """Build a model for ``tokens`` tokens."""
    from onnx import TensorProto, helper

    g = Graph(3)
    angles = np.outer(np.arange(ROWS), 100.0 ** -(np.arange(HEAD // 2) / (HEAD // 2)))
    tables = [g.weight("cos", np.cos(angles)), g.weight("sin", np.sin(angles))]
    states = g.node("Gather", [g.drawn("embed", VOCABULARY, WIDTH), "input_ids"], ["hidden"])
    number = [1, KV_HEADS, ROWS, HEAD]
    inputs = [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, tokens]),
        helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1, 1]),
        helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, [1]),
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, tokens, VOCABULARY])]
    for layer in range(LAYERS):
        caches = [f"{{}}.{layer}.{kind}" for kind in ("key", "value")]
        past = [name.format("past_key_values") for name in caches]
        present = [name.format("present") for name in caches]
        inputs += [helper.make_tensor_value_info(n, TensorProto.FLOAT, number) for n in past]
        outputs += [helper.make_tensor_value_info(n, TensorProto.FLOAT, number) for n in present]
        rows: list[str] = []
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            weight = g.drawn(f"{name}{layer}", WIDTH, heads * HEAD)
            rows.append(g.node("MatMul", [states, weight], [f"{name}_rows{layer}"]))
        attended = g.node(
            "GroupQueryAttention",
            [*rows, *past, "seqlens_k", "total_sequence_length", *tables],
            [f"attended{layer}", *present],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=KV_HEADS,
            **attention,
        )
        weight = g.drawn(f"o{layer}", HEADS * HEAD, WIDTH)
        out = g.node("MatMul", [attended, weight], [f"out{layer}"])
        states = g.node("Add", [states, out], [f"hidden{layer}"])
    g.node("MatMul", [states, g.drawn("head", WIDTH, VOCABULARY)], ["logits"])
    return g.model(inputs, outputs)


def oracle(models: dict[int, Path]) -> dict[str, np.ndarray]:
    """Return logits of a prompt and of the tokens after it, in f32, and the final caches."""
    import openvino as ov

    ids = np.random.RandomState(1).randint(0, VOCABULARY, (1, PROMPT + STEPS))
    requests = {
        tokens: ov.Core().compile_model(path, "CPU", EXACT).create_infer_request()
        for tokens, path in models.items()
    }
    names = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    caches = {name: np.zeros((1, KV_HEADS, ROWS, HEAD), np.float32) for name in names}
    logits: list[np.ndarray] = []
    for begin, end in [(0, PROMPT), *((n, n + 1) for n in range(PROMPT, PROMPT + STEPS))]:
        request = requests[end - begin]
        feeds: dict[str, np.ndarray] = {f"past_key_values.{n}": v for n, v in caches.items()}
        feeds["input_ids"] = ids[:, begin:end]
        feeds["seqlens_k"] = np.array([[end - 1]], np.int32)
        feeds["total_sequence_length"] = np.array([end], np.int32)
        request.infer(feeds)
        caches = {n: np.array(request.get_tensor(f"present.{n}").data) for n in names}
        logits += list(np.array(request.get_tensor("logits").data[0]))
    return {"ids": ids, "logits": np.array(logits), **caches}


def main() -> None:
    """Write the golden files."""
    import onnx
    import openvino as ov

    TARGET.mkdir(exist_ok=True)
    for kind, attention in KINDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch)
            models: dict[int, Path] = {}
            for tokens, stage in ((PROMPT, "prefill"), (1, "generate")):
                models[tokens] = work / f"{kind}_{stage}.onnx"
                onnx.save(decoder(tokens, **attention), models[tokens])
                ir = work / f"{kind}_{stage}.xml"
                ov.save_model(ov.Core().read_model(models[tokens]), ir, compress_to_fp16=False)
                for part in (ir, ir.with_suffix(".bin")):
                    packed = lzma.compress(part.read_bytes(), preset=9)
                    (TARGET / f"{part.name}.xz").write_bytes(packed)
            found = oracle(models)
            np.savez_compressed(TARGET / f"{kind}.npz", **found)
            print(kind, {key: value.shape for key, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
