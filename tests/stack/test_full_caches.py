"""NPUW_LLM_ON_FULL in the pipeline: generations and chats beyond the cache's capacity."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import (
    ChatHistory,
    GenerationFinishReason,
    LLMPipeline,
    PromptError,
    RuntimeFailure,
)
from genai_layer.testing.check_runtime import check_runtime
from genai_layer.testing.toy import write_toy_folder
from npuw_layer import Core

EXPORTED = Path(__file__).resolve().parents[1] / "goldens" / "exported"
LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
SINKS = 4
LONG = 300
"""Number of tokens, more than twice the cache's capacity."""

IDS = np.random.default_rng(5).integers(5, 200, (1, 200))
TOKENS = [5, 9, 13, 7, 21, 30]

Pipes = Callable[..., LLMPipeline]


@pytest.fixture(scope="module")
def pipes(demo: Path) -> Pipes:
    """Return a function that creates a pipeline of the demo model, once per set of options."""
    made: dict[str, LLMPipeline] = {}

    def make(policy: str = "ERROR", **options: Any) -> LLMPipeline:
        key = f"{policy} {options}"
        if key not in made:
            wanted = LENGTHS | F32 | options
            made[key] = LLMPipeline(demo, "NPU", NPUW_LLM_ON_FULL=policy, **wanted)
        return made[key]

    return make


@pytest.fixture(scope="module")
def greedy(converse: Callable[..., Any], demo: Path) -> Callable[..., list[int]]:
    """Return a function that generates greedy tokens with NPUW, without a pipeline."""

    def say(policy: str, ids: np.ndarray, count: int) -> list[int]:
        lengths = {f"NPUW_LLM_{name}": value for name, value in LENGTHS.items()}
        talk = converse(demo, **lengths, **F32, NPUW_LLM_ON_FULL=policy)
        logits, said = talk.tell(ids), list[int]()
        for _ in range(count):
            said.append(int(logits.argmax()))
            logits = talk.tell(np.array([said[-1:]]))
        return said

    return say


@pytest.mark.matrix
@pytest.mark.parametrize(("policy", "prompt"), [("SLIDE", 64), ("TRUNCATE", 64), ("TRUNCATE", 200)])
def test_a_generation_beyond_the_capacity_is_npuws(pipes, greedy, policy: str, prompt: int) -> None:
    ids = IDS[:, :prompt]
    results = pipes(policy).generate(ids, max_new_tokens=LONG, ignore_eos=True)
    assert results.tokens == [greedy(policy, ids, LONG)]
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


def test_without_the_option_a_full_cache_ends_a_generation(pipes) -> None:
    results = pipes().generate(IDS[:, :50], max_new_tokens=LONG, ignore_eos=True)
    assert len(results.tokens[0]) == 128 - 50
    assert results.finish_reasons == [GenerationFinishReason.CAPACITY]
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=64: the prompt has 200 tokens"):
        pipes().generate(IDS)


def test_a_truncated_prompt_is_answered_like_its_first_and_last_tokens(pipes) -> None:
    ends = np.concatenate([IDS[:, :SINKS], IDS[:, SINKS - 64 :]], 1)
    cut, whole = (
        pipes(policy).generate(ids, max_new_tokens=30, ignore_eos=True)
        for policy, ids in (("TRUNCATE", IDS), ("ERROR", ends))
    )
    assert cut.tokens == whole.tokens


def test_a_prompt_too_long_to_slide_is_rejected_and_the_next_is_answered(pipes) -> None:
    short, pipe = IDS[:, :20], pipes("SLIDE")
    with pytest.raises(PromptError, match=r"MAX_PROMPT_LEN=64: .* NPUW_LLM_ON_FULL=TRUNCATE"):
        pipe.generate(IDS)
    expected = pipes().generate(short, max_new_tokens=20).tokens
    assert pipe.generate(short, max_new_tokens=20).tokens == expected


def test_a_prompt_that_only_npuw_finds_too_long_is_rejected_by_npuw(pipes) -> None:
    """Without room for a response, a window is a token shorter than the longest prompt."""
    pipe = pipes("SLIDE", MIN_RESPONSE_LEN=0)
    with pytest.raises(RuntimeFailure, match="64 tokens, at most 63 are possible; raise"):
        pipe.generate(IDS[:, :64])
    results = pipe.generate(IDS[:, :63], max_new_tokens=LONG, ignore_eos=True)
    assert len(results.tokens[0]) == LONG


@pytest.mark.filterwarnings("ignore:start_chat:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:finish_chat:DeprecationWarning")
def test_a_chat_continues_when_its_history_is_longer_than_the_cache(pipes) -> None:
    """Each turn is answered like a prompt of the history's first and newest tokens."""
    pipe, tokenizer = pipes("TRUNCATE"), pipes().get_tokenizer()
    history, lengths = ChatHistory(), list[int]()
    pipe.start_chat()
    for question in ("What is an NPU?", "What is a blob?", "Who reads it?", "What is a KV cache?"):
        history.append({"role": "user", "content": question})
        prompt = tokenizer.apply_chat_template(history, add_generation_prompt=True)
        ids = tokenizer.encode(prompt, add_special_tokens=False).input_ids.data
        lengths.append(ids.shape[1])
        if ids.shape[1] > 64:
            ids = np.concatenate([ids[:, :SINKS], ids[:, SINKS - 64 :]], 1)
        expected = tokenizer.decode(pipes().generate(ids, max_new_tokens=40).tokens[0])
        answer = str(pipe.generate(history, max_new_tokens=40))
        assert answer == pipe.generate(question, max_new_tokens=40) == expected
        history.append({"role": "assistant", "content": answer})
    pipe.finish_chat()
    assert lengths[0] < 64
    assert lengths[-1] > 128, "longer than prompt and response"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}, "TRUNCATE"),
        ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}, "TRUNCATE"),
        ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}, "SLIDE"),
        ({"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}, "SLIDE"),
    ],
    ids=str,
)
def test_other_options_do_not_end_a_generation(pipes, policy: str, options: dict[str, Any]) -> None:
    pipe = pipes(policy, **options)
    for _ in range(2):  # the second run finds cached prefixes
        results = pipe.generate(IDS[:, :64], max_new_tokens=LONG, ignore_eos=True)
        assert len(results.tokens[0]) == LONG


def test_learned_positions_end_a_sliding_window_and_no_truncated_cache(
    restored: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    """GPT-2 has 512 learned positions; tokens that are read again get new positions."""
    folder = write_toy_folder(tmp_path)
    for file in restored(EXPORTED, "gpt2_fp16").parent.iterdir():
        shutil.copy(file, folder)
    slides, truncates = (
        LLMPipeline(folder, "NPU", NPUW_LLM_ON_FULL=policy, **LENGTHS, **F32)
        for policy in ("SLIDE", "TRUNCATE")
    )
    count, long = 512 - 64, {"max_new_tokens": 600, "ignore_eos": True}
    slides.generate(IDS[:, :64], max_new_tokens=count + 1, ignore_eos=True)
    with pytest.raises(RuntimeFailure, match="a gather reads row 512 of a table of 512"):
        slides.generate(IDS[:, :64], **long)
    assert len(truncates.generate(IDS[:, :64], **long).tokens[0]) == 600


def test_a_blob_keeps_the_policy_of_its_export(pipes, demo: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "demo.blob")
    expected = pipes("TRUNCATE", EXPORT_BLOB=True, BLOB_PATH=path).generate(IDS, max_new_tokens=9)
    imported = LLMPipeline(demo, "NPU", BLOB_PATH=path)
    assert imported.generate(IDS, max_new_tokens=9).tokens == expected.tokens


@pytest.mark.matrix
@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_npuw_with_each_policy_passes_genais_checks(demo: Path, policy: str) -> None:
    lengths = {f"NPUW_LLM_{name}": value for name, value in LENGTHS.items()}
    compiled = Core().compile_model(demo, "NPU", lengths | F32 | {"NPUW_LLM_ON_FULL": policy})
    check_runtime(lambda: compiled, TOKENS, 1e-4)


def test_npu_chat_continues_when_the_cache_is_full(command, demo: Path) -> None:
    options = ["-c", "NPUW_LLM_ON_FULL=TRUNCATE", "-c", "MAX_PROMPT_LEN=64"]
    questions = "What is an NPU?\n" * 6
    done = command("npu-chat", demo, "--max-new-tokens", 20, *options, input=questions)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 6
