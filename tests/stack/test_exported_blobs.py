"""EXPORT_BLOB and BLOB_PATH in the pipeline: an imported demo model generates the same text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genai_layer import LLMPipeline, PromptError, RuntimeFailure

ROOT = Path(__file__).resolve().parents[2]

LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
WEIGHTS = (ROOT / "models" / "demo" / "model.safetensors").stat().st_size
"""Size in bytes; a smaller blob has no weights."""

QUESTION = "What is an NPU?"


@pytest.fixture(scope="module", params=["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def exported(request, demo, tmp_path_factory) -> tuple[Path, str]:
    """Blob, and its exporter's answer."""
    path = tmp_path_factory.mktemp("exported") / "demo.blob"
    options = LENGTHS | {"CACHE_MODE": request.param}
    pipe = LLMPipeline(demo, "NPU", EXPORT_BLOB=True, BLOB_PATH=str(path), **options)
    return path, pipe.generate(QUESTION, max_new_tokens=8)


@pytest.mark.matrix
def test_a_pipeline_of_a_blob_generates_its_exporters_text(exported, demo) -> None:
    path, answer = exported
    pipe = LLMPipeline(demo, "NPU", BLOB_PATH=str(path))
    assert pipe.generate(QUESTION, max_new_tokens=8) == answer
    assert "imported" in pipe.execution_report()["blobs"]


def test_a_pipeline_of_a_blob_has_the_blobs_lengths(exported, demo) -> None:
    path, _ = exported
    pipe = LLMPipeline(demo, "NPU", BLOB_PATH=str(path), EXPORT_BLOB=False)
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=64: the prompt has"):
        pipe.generate("word " * 100)
    LLMPipeline(demo, "NPU", BLOB_PATH=str(path), MAX_PROMPT_LEN=64)
    with pytest.raises(RuntimeFailure, match=r"NPUW_LLM_MAX_PROMPT_LEN = 128 \(the blob has 64\)"):
        LLMPipeline(demo, "NPU", BLOB_PATH=str(path), MAX_PROMPT_LEN=128)


def test_a_folder_with_only_a_tokenizer_suffices_for_a_blob(exported, demo, tmp_path) -> None:
    path, answer = exported
    for file in demo.glob("*token*"):
        shutil.copy(file, tmp_path)
    options = {} if path.stat().st_size > WEIGHTS else {"WEIGHTS_PATH": str(demo)}
    pipe = LLMPipeline(tmp_path, "NPU", BLOB_PATH=str(path), **options)
    assert pipe.generate(QUESTION, max_new_tokens=8) == answer
    if options:
        with pytest.raises(RuntimeFailure, match=r"model\.safetensors: No such file"):
            LLMPipeline(tmp_path, "NPU", BLOB_PATH=str(path))


@pytest.mark.parametrize(
    ("path", "problem"),
    [("demo.bin", r"BLOB_PATH = .*must end in \.blob"), ("missing.blob", "No such file")],
)
def test_a_path_that_is_not_a_blob_is_rejected(demo, tmp_path, path: str, problem: str) -> None:
    with pytest.raises(RuntimeFailure, match=problem):
        LLMPipeline(demo, "NPU", BLOB_PATH=str(tmp_path / path))
