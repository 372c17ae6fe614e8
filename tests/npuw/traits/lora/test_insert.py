"""Insertion of adapters into stateful graphs: as openvino_genai's states, constants, or weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import Core
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.lora.adaptation import Adaptation, adapted_options
from npuw_layer.traits.lora.insert import adaptable_matmuls, insert_adapters, widths
from npuw_layer.traits.lora.low_rank import Mode


@dataclass(frozen=True)
class Added:
    a: np.ndarray
    alpha: np.ndarray
    b: np.ndarray


def draw(inputs: int, outputs: int, rank: int, seed: int = 0, kind: str = "f4") -> Added:
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((rank, inputs)), random.standard_normal((outputs, rank))
    return Added(a.astype(kind), random.standard_normal((1, rank)).astype("f4"), b.astype(kind))


def of_layers(path: Path, part: str = "layers", **options: Any) -> dict[str, Added]:
    found = adaptable_matmuls(read_model(path))
    return {n: draw(*widths(op), 2, **options) for n, op in found.items() if part in n}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llama_fp16", "llama_int4", "gemma2_fp16"])
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_states_are_named_as_in_openvino_genai(restored, said_by_genai, name, kind) -> None:
    """Numbers, types and shapes are equal, too; see tools/make_adapter_goldens.py."""
    path = restored(GOLDENS / "exported", name)
    model, before = read_model(path), len(read_model(path).variables())
    added = of_layers(path, kind=kind.replace("f32", "f4").replace("f16", "f2"))
    insert_adapters(model, added, Mode.DYNAMIC)
    model.verify()
    found = [
        [each.name, element_of(each.read.output), _shape(each.read.output)]
        for each in model.variables()
        if each.name.startswith("lora")
    ]
    assert sorted(found) == said_by_genai[name]["variables"][kind]
    assert len(model.variables()) == before + len(found)


def _shape(value: Any) -> str:
    return ",".join("?" if d < 0 else str(d) for d in shape_of(value))


def product_model(transposed: bool) -> tuple[Model, np.ndarray]:
    """Build one matmul, y = x Wᵀ or x W, whose weights are read twice."""
    weights = np.random.default_rng(1).standard_normal((4, 3)).astype("f2")
    model, (x,) = Model.build([("x", tensor("f32", (1, 5, 3)))])
    g = GraphBuilder(model)
    held = g.convert(g.constant(weights if transposed else weights.T.copy()), "f32")
    y = g.matmul(x, held, transposed, name="q_proj")
    model.set_outputs([("y", y), ("w", g.reshape(held, -1))])
    return model, weights.astype("f4")


@pytest.mark.parametrize("mode", [Mode.STATIC, Mode.FUSE])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("kind", ["f4", "f2"])
def test_constants_give_the_adapters_sum(mode, transposed, kind) -> None:
    """The layout of weights does not matter; other readers see the original weights."""
    model, weights = product_model(transposed)
    added = draw(3, 4, 2, kind=kind)
    insert_adapters(model, {"q_proj/MatMul": added}, mode)
    model.verify()
    x = np.random.default_rng(2).standard_normal((1, 5, 3)).astype("f4")
    found = Interpreter(model).run({"x": x})
    expected = x @ weights.T + (x @ added.a.T.astype("f4") * added.alpha) @ added.b.T.astype("f4")
    assert np.allclose(found["y"], expected, atol=1e-5)
    assert np.array_equal(np.sort(found["w"]), np.sort(weights.reshape(-1)))
    count = sum(isinstance(op, MatMul) for op in model.body.ops)
    assert count == (1 if mode is Mode.FUSE else 3)


def test_a_fused_weight_is_one_constant_of_the_computed_type() -> None:
    model, _ = product_model(True)
    insert_adapters(model, {"q_proj/MatMul": draw(3, 4, 2)}, Mode.FUSE)
    (op,) = adaptable_matmuls(model).values()
    fused = constant_of(op.b)
    assert fused is not None
    assert element_of(fused.output) == "f32"


def test_adapters_of_other_names_and_widths_are_rejected() -> None:
    model, _ = product_model(True)
    for added, why in (
        ({"k_proj/MatMul": draw(3, 4, 2)}, "the model has no matmul 'k_proj/MatMul'"),
        ({"q_proj/MatMul": draw(4, 3, 2)}, r"4 output channels; A \[2, 4\] and B \[3, 2\]"),
    ):
        with pytest.raises(ModelError, match=why):
            insert_adapters(model, added, Mode.DYNAMIC)
    assert not model.variables()


def test_a_model_is_adapted_only_once(llama) -> None:
    with pytest.raises(ModelError, match="already has adapters"):
        insert_adapters(read_model(llama.path), {}, Mode.DYNAMIC)


def test_quantised_weights_are_not_fused(restored) -> None:
    path = restored(GOLDENS / "exported", "llama_int8")
    with pytest.raises(ModelError, match=r"weights of .*proj.* are quantized, .*use MODE_STATIC"):
        insert_adapters(read_model(path), of_layers(path), Mode.FUSE)


def test_the_digest_of_fixed_adapters_includes_names_types_and_values() -> None:
    def digests(**changes: Any) -> list[str]:
        added = {changes.pop("name", "x"): draw(3, 4, 2, **changes)}
        return [Adaptation(added, mode).digest for mode in Mode]

    one, other = digests(), digests(seed=1)
    assert len(set(one)) == len(Mode)
    assert [a == b for a, b in zip(one, other, strict=True)] == [m.is_settable for m in Mode]
    for changed in (digests(name="y"), digests(kind="f2")):
        assert not set(one) & set(changed)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"NPUW_LLM": "NO", "NPU_USE_NPUW": "YES"}, "static models .NPUW_LLM = NO"),
        ({"NPUW_TEXT_EMBED": "YES", "NPUW_LLM": "YES"}, "not models that read texts"),
        ({"BLOB_PATH": "x.blob", "NPUW_LLM": "YES"}, "or blobs .BLOB_PATH., which contain theirs"),
        ({"NPUW_LLM_MAX_LORA_RANK": 4, "NPUW_LLM": "YES"}, "RANK = 4: .* rank 5 together; raise"),
    ],
)
def test_unsupported_options_for_adapters_are_rejected(tiny, config, why) -> None:
    with pytest.raises(OptionError, match=why):
        Core().compile_adapted(tiny, "NPU", config, {"x": draw(3, 4, 5)})


def test_a_static_rank_is_that_of_the_adapters() -> None:
    options = parse_options({"NPUW_LLM": "YES", "NPUW_LLM_MAX_LORA_RANK": 4})
    for rank in (2, 9):
        adaptation = Adaptation({"x": draw(3, 4, rank)}, Mode.STATIC_RANK)
        assert adapted_options(options, adaptation).max_lora_rank == rank
    assert adapted_options(options, Adaptation({}, Mode.STATIC_RANK)).max_lora_rank == 1


def test_states_share_programs_for_any_values_and_constants_do_not(tiny, tmp_path) -> None:
    """Programs come from CACHE_DIR; a model without adapters shares none with adapted ones."""
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "CACHE_DIR": str(tmp_path)}
    for mode, seed, expected in (
        ("DYNAMIC", 0, False),
        ("DYNAMIC", 1, True),
        ("STATIC", 0, False),
        ("STATIC", 1, False),
        ("STATIC", 0, True),
    ):
        added = of_layers(tiny, "q_proj", seed=seed)
        made = Core().compile_adapted(tiny, "NPU", options, added, mode)
        assert made.get_property("LOADED_FROM_CACHE") == expected, (mode, seed)
    assert not Core().compile_model(tiny, "NPU", options).get_property("LOADED_FROM_CACHE")


def test_a_saved_conversation_requires_the_same_fixed_adapters(tiny, tmp_path) -> None:
    """Stored rows were computed with them; a model with other fixed adapters is another model."""
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "INFERENCE_PRECISION_HINT": "f32"}

    def begin(seed: int | None) -> Any:
        if seed is None:
            return Core().compile_model(tiny, "NPU", options).create_infer_request()
        added = of_layers(tiny, "q_proj", seed=seed)
        return Core().compile_adapted(tiny, "NPU", options, added, "STATIC").create_infer_request()

    first, ids = begin(0), np.array([[5, 6, 7]])
    mask, positions = np.ones((1, 3), np.int64), np.arange(3)[None]
    first.infer({"input_ids": ids, "attention_mask": mask, "position_ids": positions})
    first.save_state(tmp_path / "state")
    begin(0).load_state(tmp_path / "state")
    for seed in (1, None):
        with pytest.raises(RuntimeError, match="saved with another model"):
            begin(seed).load_state(tmp_path / "state")


def test_matmuls_of_a_hugging_face_folder_have_names_that_npuw_accepts(tiny) -> None:
    found = Core().adaptable_matmuls(tiny)
    assert found["model.layers.1.mlp.down_proj/MatMul"] == (48, 32)
    assert found["lm_head/MatMul"] == (32, 97)
