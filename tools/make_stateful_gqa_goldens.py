"""Golden files tests/goldens/stateful_gqa: stateful ONNX decoders, and OpenVINO's results.

They are built like onnxruntime-genai's decoders: attention is com.microsoft.GroupQueryAttention,
which counts tokens by attention_mask; norms and 4-bit matmuls are ONNX Runtime's ops, too. OpenVINO
reads them; they are made stateful as in ONNX Runtime's OpenVINO execution provider
(``PatchStatefulDecoder`` in ov_stateful_patch_utils), and written as IR, which OpenVINO itself
cannot read.

    pip install onnx openvino
    python tools/make_stateful_gqa_goldens.py
"""

from __future__ import annotations

import lzma
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS
from onnx_graph import Graph

TARGET = GOLDENS / "stateful_gqa"
VOCABULARY, WIDTH, INNER, HEADS, HEAD, POSITIONS = 60, 32, 48, 4, 8, 256
PROMPT, STEPS = 50, 10
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Kind:
    """Variant of a decoder."""

    layers: int = 2
    kv_heads: int = 2
    packed: bool = False
    """True if Q, K and V are one tensor."""
    positions: bool = False
    """True if rotary embeddings use position_ids, instead of counted tokens."""
    angles: int = HEAD // 2
    nibbles: bool = False
    """True if weights have 4 bits."""
    floats: type[np.floating[Any]] = np.float32
    sinks: bool = False
    """True if each head has an attention sink, with its own score."""
    attention: dict[str, Any] = field(default_factory=lambda: {"do_rotary": 1})


KINDS = {
    "plain": Kind(layers=5),  # which are folded
    "window": Kind(
        packed=True,
        attention={
            "do_rotary": 1,
            "rotary_interleaved": 1,
            "local_window_size": 10,
            "scale": 0.3,
        },
    ),
    "positions": Kind(kv_heads=HEADS, positions=True, angles=HEAD // 4),
    "smooth": Kind(attention={"smooth_softmax": 1}),
    "sinks": Kind(sinks=True, attention={"do_rotary": 1, "local_window_size": 6}),
    "nibbles": Kind(kv_heads=1, nibbles=True),
    "half": Kind(kv_heads=1, floats=np.float16, nibbles=True),
}

LIVE = ("plain", "window", "positions")
"""Kinds that tests run in OpenVINO, for which the ONNX models are stored."""


class Decoder:
    """Builder of a decoder.

    Args:
        kind: the variant.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._g = Graph(3, kind.floats, 32)
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def build(self) -> Any:
        """Build the ONNX model."""
        from onnx import TensorProto

        g, kind = self._g, self._kind
        names = ["input_ids", "attention_mask", *(["position_ids"] if kind.positions else [])]
        for name in names:
            count = "total" if name == "attention_mask" else "tokens"
            self._inputs.append(self._port(name, TensorProto.INT64, ["batch", count]))
        self._outputs.append(self._port("logits", None, ["batch", "tokens", VOCABULARY]))
        counted = self._counted()
        states = g.node("Gather", [g.drawn("embed", VOCABULARY, WIDTH), "input_ids"], ["embedded"])
        normed = self._normed("first", states)
        for layer in range(kind.layers):
            states, normed = self._layer(layer, states, normed, counted)
        g.node("MatMul", [normed, g.drawn("head", WIDTH, VOCABULARY)], ["logits"])
        return g.model(self._inputs, self._outputs)

    def _port(self, name: str, kind: int | None, shape: list[Any]) -> Any:
        from onnx import TensorProto, helper

        narrow = self._kind.floats is np.float16
        own = TensorProto.FLOAT16 if narrow else TensorProto.FLOAT
        return helper.make_tensor_value_info(name, own if kind is None else kind, shape)

    def _counted(self) -> list[str]:
        """Return the token counts in the op's form."""
        from onnx import TensorProto

        g = self._g
        one, axis = (g.constant(n, np.array([1], np.int64)) for n in ("one", "axis"))
        g.node("ReduceSum", ["attention_mask", axis], ["tokens"])
        g.node("Sub", ["tokens", one], ["tokens_less_1"])
        g.node("Cast", ["tokens_less_1"], ["seqlens_k"], to=TensorProto.INT32)
        g.node("Shape", ["attention_mask"], ["mask_shape"])
        second = g.constant("second", np.array(1, np.int64))
        g.node("Gather", ["mask_shape", second], ["mask_length"], axis=0)
        g.node("Cast", ["mask_length"], ["total_sequence_length"], to=TensorProto.INT32)
        sizes = ["seqlens_k", "total_sequence_length"]
        if not self._kind.attention.get("do_rotary"):
            return sizes
        steps = np.arange(self._kind.angles) / self._kind.angles
        angles = np.outer(np.arange(POSITIONS), 100.0**-steps)
        turns = {"cos": np.cos(angles), "sin": np.sin(angles)}
        tables = [g.weight(name, g.rounded(values)) for name, values in turns.items()]
        positions = "position_ids" if self._kind.positions else ""
        sinks = [g.weight("sinks", np.linspace(-1, 2, HEADS))] if self._kind.sinks else []
        return [*sizes, *tables, positions, *(["", *sinks] if sinks else [])]

    def _normed(self, name: str, states: str) -> str:
        weight = self._g.weight(f"{name}_norm", np.linspace(0.5, 1.5, WIDTH))
        return self._g.node(
            "SimplifiedLayerNormalization", [states, weight], [f"{name}_normed"], epsilon=1e-6
        )

    def _skipped(self, name: str, states: str, more: str) -> tuple[str, str]:
        """Return the sum, and the normalised sum."""
        g = self._g
        weight = g.weight(f"{name}_norm", np.linspace(0.5, 1.5, WIDTH))
        out = [f"{name}_normed", "", "", f"{name}_states"]
        kind = "SkipSimplifiedLayerNormalization"
        g.node(kind, [states, more, weight], out, domain=MICROSOFT, epsilon=1e-6)
        return out[-1], out[0]

    def _product(self, name: str, value: str, rows: int, columns: int) -> str:
        g = self._g
        if not self._kind.nibbles:
            return g.node("MatMul", [value, g.drawn(name, rows, columns)], [f"{name}_out"])
        block = 16
        blocks = rows // block
        weight = g.bytes(name, columns, blocks, block // 2)
        scales = g.weight(f"{name}_scales", np.full(columns * blocks, 0.2 / np.sqrt(rows)))
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": block}
        kind, inputs = "MatMulNBits", [value, weight, scales]
        return g.node(kind, inputs, [f"{name}_out"], domain=MICROSOFT, **sizes)

    def _layer(self, layer: int, states: str, normed: str, counted: list[str]) -> tuple[str, str]:
        g = self._g
        attended = self._attended(layer, normed, counted)
        out = self._product(f"o{layer}", attended, HEADS * HEAD, WIDTH)
        states, normed = self._skipped(f"attention{layer}", states, out)
        gate, up = (self._product(f"{n}{layer}", normed, WIDTH, INNER) for n in ("gate", "up"))
        g.node("Sigmoid", [gate], [f"sigmoid{layer}"])
        g.node("Mul", [gate, f"sigmoid{layer}"], [f"silu{layer}"])
        g.node("Mul", [f"silu{layer}", up], [f"gated{layer}"])
        down = self._product(f"down{layer}", f"gated{layer}", INNER, WIDTH)
        return self._skipped(f"mlp{layer}", states, down)

    def _attended(self, layer: int, normed: str, counted: list[str]) -> str:
        kind = self._kind
        sizes = {"q": HEADS * HEAD, "k": kind.kv_heads * HEAD, "v": kind.kv_heads * HEAD}
        if kind.packed:
            rows = [self._product(f"qkv{layer}", normed, WIDTH, sum(sizes.values())), "", ""]
        else:
            rows = [self._product(f"{n}{layer}", normed, WIDTH, s) for n, s in sizes.items()]
        caches = [f"{{}}.{layer}.{name}" for name in ("key", "value")]
        past = [name.format("past_key_values") for name in caches]
        present = [name.format("present") for name in caches]
        for ports, names, count in (
            (self._inputs, past, "past"),
            (self._outputs, present, "total"),
        ):
            shape = ["batch", kind.kv_heads, count, HEAD]
            ports.extend(self._port(name, None, shape) for name in names)
        return self._g.node(
            "GroupQueryAttention",
            [*rows, *past, *counted],
            [f"attended{layer}", *present],
            domain=MICROSOFT,
            num_heads=HEADS,
            kv_num_heads=kind.kv_heads,
            **kind.attention,
        )


def stateful(path: Path) -> Any:
    """Read an ONNX decoder, and turn its caches into variables, which beam_idx reorders."""
    import openvino as ov
    from openvino import opset13
    from openvino._offline_transformations import apply_make_stateful_transformation

    model = ov.Core().read_model(path)
    batch = model.input("input_ids").partial_shape[0]
    beams = opset13.parameter(ov.PartialShape([batch]), ov.Type.i32, name="beam_idx")
    beams.output(0).get_tensor().add_names({"beam_idx"})
    model.add_parameters([beams])
    caches = [port.any_name for port in model.inputs if "key_values" in port.any_name]
    for name in caches:
        port = model.input(name)
        consumers = port.get_target_inputs()
        reordered = opset13.gather(port, beams, opset13.constant(np.array(0, np.int64)))
        for consumer in consumers:
            consumer.replace_source_output(reordered.output(0))
    model.validate_nodes_and_infer_types()
    pairs = {name: name.replace("past_key_values", "present") for name in caches}
    apply_make_stateful_transformation(model, pairs)
    return model


def oracle(model: Any, positions: bool) -> dict[str, np.ndarray]:
    """Return the logits of each token of a text, in f32, and the final caches."""
    import openvino as ov

    ids = np.random.RandomState(1).randint(0, VOCABULARY, (1, PROMPT + STEPS))
    request = ov.Core().compile_model(model, "CPU", EXACT).create_infer_request()
    feeds: dict[str, np.ndarray] = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "beam_idx": np.zeros(1, np.int32),
    }
    if positions:
        feeds["position_ids"] = np.arange(ids.shape[1])[None]
    request.infer(feeds)
    states = {each.name: np.array(each.state.data) for each in request.query_state()}
    logits = np.array(request.get_tensor("logits").data[0]).astype(np.float32)
    first = {name: values[:, :, :2] for name, values in sorted(states.items())[:2]}
    return {"ids": ids, "logits": logits, **first}


def main() -> None:
    """Write the golden files."""
    import onnx
    import openvino as ov

    TARGET.mkdir(exist_ok=True)
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch) / f"{name}.onnx"
            onnx.save(Decoder(kind).build(), work)
            model = stateful(work)
            ir = work.with_suffix(".xml")
            ov.save_model(model, ir, compress_to_fp16=False)
            for part in (ir, ir.with_suffix(".bin"), *([work] if name in LIVE else [])):
                packed = lzma.compress(part.read_bytes(), preset=9)
                (TARGET / f"{part.name}.xz").write_bytes(packed)
            found = oracle(model, kind.positions)
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, {key: value.shape for key, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
