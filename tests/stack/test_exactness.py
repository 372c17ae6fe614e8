"""The complete stack compared to transformers and the real OpenVINO, by committed golden files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

SOURCES = [
    # fixture of the model, fixture of the goldens, oracle
    ("llama_8m", "llama_8m_goldens", "hf"),
    ("llama_8m_ir", "llama_8m_goldens", "ov"),
    ("demo", "demo_goldens", "hf"),
    ("demo_ir", "demo_goldens", "ov"),
]
PROMPTS = (1, 7, 100, 256)
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture(params=SOURCES, ids=lambda source: f"{source[0]} against {source[2]}")
def source(request: pytest.FixtureRequest) -> tuple[Path, dict[str, np.ndarray]]:
    """Model and golden results of the oracle: prompts, logits by length, greedy tokens."""
    model, goldens, oracle = request.param
    path = request.getfixturevalue(model)
    found = request.getfixturevalue(goldens)
    named = {key.removeprefix(f"{oracle}_"): value for key, value in found.items()}
    return path, named


@pytest.mark.matrix
def test_logits_in_f32_agree_within_1e_4(source, converse) -> None:
    path, expected = source
    talk = converse(path, **F32)
    for length in PROMPTS:
        talk.restart()
        logits = talk.tell(expected[f"prompt_{length}"])
        reference = expected[f"logits_{length}"]
        error = np.abs(logits - reference).max() / np.abs(reference).max()
        assert error <= 1e-4, f"{length} tokens: {error:.1e}"


def test_sixty_four_greedy_tokens_are_identical(source, converse) -> None:
    path, expected = source
    talk = converse(path, **F32)
    logits = talk.tell(expected["greedy_prompt"])
    said: list[int] = []
    for _ in range(64):
        said.append(int(logits.argmax()))
        logits = talk.tell(np.array([said[-1:]]))
    assert said == expected["greedy"].tolist()


@pytest.mark.matrix
def test_logits_in_f16_have_a_high_cosine_similarity(source, converse) -> None:
    path, expected = source
    talk = converse(path)
    for length in PROMPTS:
        talk.restart()
        a = talk.tell(expected[f"prompt_{length}"]).astype(np.float64)
        b = expected[f"logits_{length}"].astype(np.float64)
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        assert cosine >= 0.999, f"{length} tokens: {cosine:.6f}"


@pytest.mark.matrix
def test_a_chunked_prefill_returns_the_same_logits(source, converse) -> None:
    path, expected = source
    talk = converse(path, NPUW_LLM_PREFILL_CHUNK_SIZE=64, **F32)
    for length in PROMPTS:
        talk.restart()
        logits = talk.tell(expected[f"prompt_{length}"])
        reference = expected[f"logits_{length}"]
        assert np.abs(logits - reference).max() <= 1e-4 * np.abs(reference).max()
