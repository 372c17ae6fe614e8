"""ASRPipeline compared to the real openvino_genai's, live; skipped if it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden_tokenizers import read_golden

import genai_layer

real = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


@pytest.fixture(scope="module")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(GOLDENS / "whisper" / "folder.py")


@pytest.fixture(scope="module")
def folder(
    tools: Any, restored: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    parts = [restored(GOLDENS / "whisper", f"{part}_fp16") for part in ("encoder", "decoder")]
    target = tools.write(*parts, tmp_path_factory.mktemp("whisper"))
    read_golden(GOLDENS / "whisper" / "tokenizer.json.xz").write(target)
    return target


@pytest.mark.parametrize("seed", range(4))
def test_texts_times_and_words_are_the_real_ones(folder: Path, tools: Any, seed: int) -> None:
    asked = {"return_timestamps": bool(seed % 2), "max_new_tokens": 40, "word_timestamps": True}
    results = [
        package.ASRPipeline(folder, "CPU", word_timestamps=True, **EXACT).generate(
            tools.speech(3.0 + 9 * seed, seed).tolist(), **asked
        )
        for package in (genai_layer, real)
    ]
    ours, theirs = map(described, results)
    assert ours == theirs
    assert all(each.words[0] for each in results)
    assert results[1].perf_metrics.get_num_input_tokens() == 0


@pytest.fixture(scope="module")
def pipelines(folder: Path) -> list[Any]:
    """Return our pipeline at its default options, and the real one."""
    return [
        genai_layer.WhisperPipeline(folder, "NPU", INFERENCE_PRECISION_HINT="f32"),
        real.WhisperPipeline(folder, "CPU", **EXACT),
    ]


@pytest.mark.parametrize(("letters", "hot"), [(1, 0), (0, 2), (9, 4), (150, 0), (90, 200)])
def test_texts_after_prompts_and_hotwords_are_the_real_ones(
    pipelines: list[Any], tools: Any, letters: int, hot: int
) -> None:
    context = "".join(np.random.RandomState(letters + hot).choice([*"abcdexyzKLM"], 350))
    asked = {"max_new_tokens": 8, "initial_prompt": context[:letters], "hotwords": context[-hot:]}
    asked = {name: value for name, value in asked.items() if value}
    audio = tools.speech(2.0).tolist()
    ours, theirs = (pipeline.generate(audio, **asked).texts for pipeline in pipelines)
    assert ours == theirs


def described(results: Any) -> Any:
    """Return the results of either package; times in hundredths of a second."""
    return (
        results.texts,
        results.scores,
        results.languages,
        [
            [
                (round(each.start_ts * 100), round(each.end_ts * 100), each.text, each.token_ids)
                for each in part
            ]
            for parts in (results.chunks, results.words)
            for part in parts or []
        ],
    )
