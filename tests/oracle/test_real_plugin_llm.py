"""The real openvino_genai, NPUW and NPU plugin on our compiler and device, live.

The IRs are the exporter's, with random weights (tests/goldens/exported); those of the demo model
and llama-8m have the weights of their folders. Tokens equal those of NPUW on OpenVINO's CPU plugin,
or those of the CPU plugin in f32 where NPUW's f16 decides otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.real_pipelines import ask, conversations, tokens

from compiler_layer.tools.npuc import main as npuc
from driver_layer.c_abi.build import compiler

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler"),
]

EXPORTED = Path(__file__).resolve().parents[1] / "goldens" / "exported"

DEFAULT: dict[str, str] = {}
WHOLE = {"NPUW_ONLINE_PIPELINE": "NONE"}
UNTIED = WHOLE | {"NPUW_FOLD": "NO", "NPUW_CWAI": "NO"}
"""NPUW loses the embedding of GPT-2, which is also the LM head, when weights are inputs."""

FEW_LAYERS = {"NPUW_ONLINE_KEEP_BLOCKS": "4"}
"""NPUW's partitioning fails by default with fewer than five equal layers."""

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "llama": ("llama_8m_ir", DEFAULT),
    "llama whole": ("llama_8m_ir", WHOLE),
    "llama int4": ("llama_8m_int4", DEFAULT),
    "llama int4 asymmetric": ("llama_int4_asym", DEFAULT),
    "qwen2": ("qwen2_deep_fp16", DEFAULT),
    "qwen2 int4 whole": ("qwen2_int4", WHOLE),
    "qwen3": ("qwen3_deep_fp16", DEFAULT),
    "qwen3 int4": ("qwen3_int4", DEFAULT),
    "mistral": ("mistral_deep_fp16", DEFAULT),
    "mistral int4 whole": ("mistral_int4", WHOLE),
    "phi3 whole": ("phi3_deep_fp16", WHOLE),
    "phi3 int4 whole": ("phi3_int4", WHOLE),
    "gemma2 whole": ("gemma2_deep_fp16", WHOLE),
    "gemma2 int4 whole": ("gemma2_int4", WHOLE),
    "gpt2 whole": ("gpt2_deep_fp16", UNTIED),
    "gpt2 int4 whole": ("gpt2_int4", UNTIED),
}


@pytest.fixture(scope="module")
def folders(
    llama_8m_ir: Path,
    restored: Callable[[Path, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Path]:
    """Return a function that returns the folder of a model."""
    known = {"llama_8m_ir": llama_8m_ir.parent}

    def give(name: str) -> Path:
        if name == "llama_8m_int4":
            known[name] = tmp_path_factory.mktemp(name)
            arguments = ["--weight-format", "int4", "--sym", "--group-size", "64"]
            assert npuc(["export", str(llama_8m_ir), str(known[name]), *arguments]) == 0
        return known[name] if name in known else restored(EXPORTED, name).parent

    return give


@pytest.fixture(scope="module")
def found(
    folders: Callable[[str], Path],
    genai_folder: Path,
    once: Callable[[str, Callable[[], Any]], Any],
) -> dict[str, dict[str, Any]]:
    """Tokens of all cases, from one process."""

    def compute() -> Any:
        cases = CASES.values()
        jobs = [(str(folders(model)), str(genai_folder), options) for model, options in cases]
        return ask(tokens, jobs)

    return dict(zip(CASES, once("real_plugin_llm", compute), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_tokens_equal_those_of_npuw_on_the_cpu(found: dict[str, dict[str, Any]], name: str) -> None:
    case = found[name]
    assert not isinstance(case["NPU"], str), case["NPU"]
    others = [case[device] for device in ("exact", "CPU") if device in case]
    for number, ours in enumerate(case["NPU"]):
        assert ours in [theirs[number] for theirs in others]


@pytest.mark.parametrize("options", [FEW_LAYERS, WHOLE], ids=["partitioned", "whole"])
def test_a_chat_streams_and_starts_warm_and_from_a_blob(
    genai_folder: Path, tmp_path: Path, options: dict[str, str]
) -> None:
    found = ask(conversations, str(genai_folder), str(tmp_path), options)
    for answer, streamed in zip(found["exact"][::2], found["exact"][1::2], strict=True):
        assert answer == streamed
    for start in ("cold", "warm", "imported"):
        assert found[start] == found["exact"], start
    assert found["compiled, cold"] >= 3
    assert found["compiled, warm"] == 0
