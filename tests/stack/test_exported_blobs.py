"""EXPORT_BLOB and BLOB_PATH through the pipeline: the demo model, compiled once, says the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genai_layer import LLMPipeline, PromptError, RuntimeFailure

LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
QUESTION = "What is an NPU?"


@pytest.fixture(scope="module", params=["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def exported(request, demo, tmp_path_factory) -> tuple[Path, str]:
    """A blob, and what its exporter said."""
    path = tmp_path_factory.mktemp("exported") / "demo.blob"
    options = LENGTHS | {"CACHE_MODE": request.param}
    pipe = LLMPipeline(demo, "NPU", EXPORT_BLOB=True, BLOB_PATH=str(path), **options)
    return path, pipe.generate(QUESTION, max_new_tokens=8)


def test_a_pipeline_of_a_blob_says_what_its_exporter_said(exported, demo) -> None:
    path, answer = exported
    pipe = LLMPipeline(demo, "NPU", BLOB_PATH=str(path))
    assert pipe.generate(QUESTION, max_new_tokens=8) == answer
    assert "imported" in pipe.execution_report()["blobs"]


def test_its_lengths_are_the_blobs(exported, demo) -> None:
    path, _ = exported
    pipe = LLMPipeline(demo, "NPU", BLOB_PATH=str(path), EXPORT_BLOB=False)
    with pytest.raises(PromptError, match="at most 64 are possible"):
        pipe.generate("word " * 100)
    LLMPipeline(demo, "NPU", BLOB_PATH=str(path), MAX_PROMPT_LEN=64)
    with pytest.raises(RuntimeFailure, match=r"NPUW_LLM_MAX_PROMPT_LEN = 128 \(the blob has 64\)"):
        LLMPipeline(demo, "NPU", BLOB_PATH=str(path), MAX_PROMPT_LEN=128)


def test_a_blob_with_weights_needs_no_model_but_its_tokenizer(exported, demo, tmp_path) -> None:
    path, answer = exported
    for file in demo.glob("*token*"):
        shutil.copy(file, tmp_path)
    try:
        pipe = LLMPipeline(tmp_path, "NPU", BLOB_PATH=str(path))
    except RuntimeFailure as error:
        assert "model.safetensors: No such file" in str(error), "this one is without weights"
        pipe = LLMPipeline(tmp_path, "NPU", BLOB_PATH=str(path), WEIGHTS_PATH=str(demo))
    assert pipe.generate(QUESTION, max_new_tokens=8) == answer


@pytest.mark.parametrize("path", ["demo.bin", "missing.blob"])
def test_a_path_that_is_no_blob_is_refused(demo, tmp_path, path: str) -> None:
    with pytest.raises(RuntimeFailure, match="BLOB_PATH|No such file"):
        LLMPipeline(demo, "NPU", BLOB_PATH=str(tmp_path / path))
