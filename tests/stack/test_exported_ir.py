"""Exported IR by architecture and precision on the complete stack, compared to the real OpenVINO.

IRs and OpenVINO's results are golden files, written by tools/make_export_goldens.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.covering import beside_by_turns, each_architecture_once
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model, foldings
from compiler_layer.errors import NotPeriodic
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.partition.repeated.attributes import kept_repetitions
from compiler_layer.pipeline import Options
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.value_caches import value_caches

EXPORTED = Path(__file__).resolve().parent.parent / "goldens" / "exported"
NAMES = sorted(path.name.removesuffix(".xml.xz") for path in EXPORTED.glob("*.xml.xz"))
PROMPTS = (1, 7, 100)
SHALLOW = [name for name in NAMES if "_deep" not in name]
WIDE = [name for name in SHALLOW if name.endswith("_fp16")]
"""One model per architecture: the one with uncompressed weights."""
COMPRESSED = [
    *("llama_fp32", "qwen2_bf16", "mpt_fp16", "gemma2_fp16", "llama_int4_all", "llama_int4_asym"),
    *("llama_int4_channel", "mistral_int8", "qwen2_int4", "qwen3_int8", "phi3_int4"),
    *("gemma2_int8", "gemma3_int4", "gpt2_int8", "gpt_neox_int4", "mixtral_int8"),
]
"""Models that cover each weight format, and the architectures that are compressed."""

Source = tuple[Path, dict[str, np.ndarray]]


def test_golden_files_cover_all_architectures_and_precisions() -> None:
    architectures = (
        *("llama", "mistral", "qwen2", "qwen3", "phi3"),
        *("gemma2", "gemma3", "gpt2", "gpt_neox"),
    )
    more = (
        *("bloom", "cohere", "dbrx", "falcon", "glm4", "gpt_bigcode", "gpt_neo", "gptj", "llama4"),
        *("mpt", "opt", "phi", "qwen2_moe", "stablelm"),
    )
    matrix = {
        f"{a}_{p}"
        for a in (*architectures, "mixtral", "qwen3_moe")
        for p in ("fp16", "int8", "int4")
    }
    deep = {f"{a}_deep_fp16" for a in architectures}
    assert matrix | deep | {f"{a}_fp16" for a in more} | {"llama_fp32", "qwen2_bf16"} <= set(NAMES)


def test_three_selections_of_architectures_cover_each_precision() -> None:
    """Here, in test_live_openvino.py and in test_live_npuw.py, whole conversations run in f32."""
    selections = [each_architecture_once(NAMES, first) for first in range(3)]
    assert sorted({name for names in selections for name in names}) == NAMES


@pytest.fixture(scope="module")
def source(restored: Callable[[Path, str], Path]) -> Callable[[str], Source]:
    """Return a function that returns an IR, and OpenVINO's results for it."""
    return lambda name: (restored(EXPORTED, name), dict(np.load(EXPORTED / f"{name}.npz")))


@pytest.mark.matrix
@pytest.mark.parametrize("name", each_architecture_once(NAMES))
def test_logits_and_greedy_tokens_in_f32(
    source: Callable[[str], Source], converse: Any, name: str
) -> None:
    path, expected = source(name)
    talk = converse(path, INFERENCE_PRECISION_HINT="f32", NPUW_LLM_MAX_PROMPT_LEN=128)
    logits = None
    for length in PROMPTS:
        talk.restart()
        logits = talk.tell(expected[f"prompt_{length}"])
        reference = expected[f"logits_{length}"]
        error = np.abs(logits - reference).max() / np.abs(reference).max()
        assert error <= 1e-4, f"{length} tokens: {error:.1e}"
    said = [int(logits.argmax())]
    while len(said) < len(expected["greedy"]):
        logits = talk.tell(np.array([said[-1:]]))
        said.append(int(logits.argmax()))
    assert said == expected["greedy"].tolist()
    if "logits_greedy" in expected:
        reference = expected["logits_greedy"]
        error = np.abs(logits - reference).max() / np.abs(reference).max()
        assert error <= 1e-4, f"after {len(said)} tokens: {error:.1e}"


@pytest.mark.matrix
@pytest.mark.parametrize("name", COMPRESSED)
def test_logits_in_f16_have_a_high_cosine_similarity(
    source: Callable[[str], Source], converse: Any, name: str
) -> None:
    path, expected = source(name)
    talk = converse(path, NPUW_LLM_MAX_PROMPT_LEN=128, NPUW_LLM_PREFILL_PYRAMID="NO")
    for length in PROMPTS:
        talk.restart()
        a = talk.tell(expected[f"prompt_{length}"]).astype(np.float64)
        b = expected[f"logits_{length}"].astype(np.float64)
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        assert cosine >= 0.999, f"{length} tokens: {cosine:.6f}"


@pytest.mark.matrix
@pytest.mark.parametrize("name", WIDE)
def test_value_caches_are_found(restored: Callable[[Path, str], Path], name: str) -> None:
    """Attention is one op in some graphs, several ops in others."""
    model = read_ir(restored(EXPORTED, name))
    caches = {variable.name for variable in model.variables()}
    assert value_caches(model) == {name for name in caches if ".value" in name}


@pytest.mark.matrix
@pytest.mark.parametrize("name", WIDE[::2])
def test_logits_are_equal_with_transposed_values(
    name: str, converse: Any, load_module: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path)
    expected = np.load(EXPORTED / f"{name}.npz")
    talk = converse(
        path,
        NPUW_LLM_OPTIMIZE_V_TENSORS="YES",
        INFERENCE_PRECISION_HINT="f32",
        NPUW_LLM_MAX_PROMPT_LEN=64,
    )
    talk.tell(expected["prompt_7"][:, :5])
    for token in (5, 6):
        logits = talk.tell(expected["prompt_7"][:, token : token + 1])
    reference = expected["logits_7"]
    assert np.abs(logits - reference).max() <= 1e-4 * np.abs(reference).max()


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name",
    [
        *("bloom_fp16", "cohere_fp16", "dbrx_fp16", "falcon_fp16", "gemma2_fp16", "gemma3_fp16"),
        *("gpt2_fp16", "gpt_bigcode_fp16", "gpt_neo_fp16", "llama4_fp16", "mpt_fp16", "phi3_fp16"),
    ],
)
def test_greedy_tokens_are_equal_with_host_attention(
    name: str, converse: Any, load_module: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Windows, biases by distance, soft caps and shared heads, computed in tiles."""
    path = load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path)
    expected = np.load(EXPORTED / f"{name}.npz")
    talk = converse(
        path,
        NPUW_LLM_PREFILL_ATTENTION_HINT="HFA",
        NPUW_LLM_GENERATE_ATTENTION_HINT="HFA",
        NPUW_LLM_PREFILL_CHUNK_SIZE=32,
        NPUW_LLM_PREFILL_PYRAMID="NO",
        INFERENCE_PRECISION_HINT="f32",
        NPUW_LLM_MAX_PROMPT_LEN=128,
    )
    said: list[int] = []
    logits = talk.tell(expected["prompt_100"])
    reference = expected["logits_100"]
    assert np.abs(logits - reference).max() <= 1e-4 * np.abs(reference).max()
    while len(said) < 8:
        said.append(int(logits.argmax()))
        logits = talk.tell(np.array([said[-1:]]))
    assert said == expected["greedy"][:8].tolist()


@pytest.mark.matrix
@pytest.mark.parametrize("name", WIDE[1::2])
def test_logits_are_equal_with_a_block_cache(
    name: str, converse: Any, load_module: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Chunked prefill of 32 tokens per chunk; the last tokens run one by one."""
    path = load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path)
    expected = np.load(EXPORTED / f"{name}.npz")
    talk = converse(
        path,
        NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE="YES",
        NPUW_LLM_PREFILL_CHUNK_SIZE=32,
        NPUW_LLM_PREFILL_PYRAMID="NO",
        INFERENCE_PRECISION_HINT="f32",
        NPUW_LLM_MAX_PROMPT_LEN=128,
    )
    talk.tell(expected["prompt_100"][:, :95])
    for token in range(95, 100):
        logits = talk.tell(expected["prompt_100"][:, token : token + 1])
    reference = expected["logits_100"]
    assert np.abs(logits - reference).max() <= 1e-4 * np.abs(reference).max()


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llama_int8", "gpt2_int8", "gemma2_int8"])
def test_integer_activations_lose_little_accuracy(
    name: str,
    converse: Any,
    load_module: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """W8A8: 8-bit weights and a scale per token, summed in integers."""
    restore = load_module(EXPORTED / "restore.py").restore
    path = restore(EXPORTED, name, tmp_path_factory.mktemp(name))
    expected = np.load(EXPORTED / f"{name}.npz")
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "INFERENCE_PRECISION_HINT": "f32"}
    talk = converse(path, DYNAMIC_QUANTIZATION_GROUP_SIZE=-1, **options)
    logits = talk.tell(expected["prompt_100"])
    reference = expected["logits_100"]
    error = np.abs(logits - reference).max() / np.abs(reference).max()
    assert 1e-4 < error < 0.1, f"{error:.1e}"


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llama_int4", "llama_fp16"])
def test_integer_activations_are_refused_for_a_model_without_8_bits(
    source: Callable[[str], Source], converse: Any, name: str
) -> None:
    path, _ = source(name)
    with pytest.raises(ModelError, match="need weights of 8 bits"):
        converse(path, DYNAMIC_QUANTIZATION_GROUP_SIZE=-1, NPUW_LLM_MAX_PROMPT_LEN=64)


def test_the_head_alone_of_an_int4_model_has_integer_activations(
    source: Callable[[str], Source], converse: Any
) -> None:
    path, expected = source("llama_int4")
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "INFERENCE_PRECISION_HINT": "f32"}
    head = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": -1}
    talk = converse(path, NPUW_LLM_SHARED_HEAD_CONFIG=head, **options)
    logits, reference = talk.tell(expected["prompt_7"]), expected["logits_7"]
    error = np.abs(logits - reference).max() / np.abs(reference).max()
    assert 1e-4 < error < 0.1, f"{error:.1e}"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "lengths"),
    beside_by_turns([name for name in NAMES if "_deep_" in name], [(64, 64), (1, 127)]),
)
def test_layers_of_exported_models_are_folded(
    load_module: Callable[[Path], Any], tmp_path: Path, name: str, lengths: tuple[int, int]
) -> None:
    """Results on the device are covered by the tests above."""
    model = read_ir(load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path))
    blocks = {"gemma2_deep_fp16": 3, "gemma3_deep_fp16": 3}.get(name, 5)
    for smaller in foldings(model):
        kept = kept_repetitions(smaller)
        assert kept is not None
        assert kept.count == blocks
        try:
            compile_model(split(smaller, *lengths), Options())
        except NotPeriodic:
            continue
        return
    pytest.fail("the model is compiled layer by layer")
