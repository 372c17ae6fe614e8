"""NPUW_LLM_ON_FULL in the pipeline: generations and chats beyond the cache's capacity."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from genai_layer import (
    ChatHistory,
    ContinuousBatchingPipeline,
    GenerationConfig,
    GenerationFinishReason,
    LLMPipeline,
    PromptError,
    RuntimeFailure,
    SchedulerConfig,
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
@pytest.mark.parametrize("prompt", [100, 64, 200])
def test_a_generation_with_a_sliding_cache_is_npuws(pipes, greedy, prompt: int) -> None:
    """Prefill reads 64 tokens; the cache stores 127."""
    ids = IDS[:, :prompt]
    results = pipes("SLIDE").generate(ids, max_new_tokens=LONG, ignore_eos=True)
    assert results.tokens == [greedy("SLIDE", ids, LONG)]
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


@pytest.mark.matrix
@pytest.mark.parametrize("prompt", [20, 64])
def test_a_truncated_answer_goes_on_like_the_prompt_and_its_end(pipes, prompt: int) -> None:
    """A full cache keeps the prompt, and at least half of the answer that it stores."""
    ids, stored = IDS[0, :prompt].tolist(), list[int]()
    results = pipes("TRUNCATE").generate([ids], max_new_tokens=LONG, ignore_eos=True)
    (said,) = results.tokens
    for count in range(100, LONG, 100):
        stored = kept_of(prompt, said[:count])
        rest = pipes(MAX_PROMPT_LEN=256).generate([ids + stored], max_new_tokens=9, ignore_eos=True)
        assert rest.tokens[0] == said[count : count + 9]
    assert len(stored) < LONG - 100, "tokens were dropped"
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


def kept_of(prompt: int, said: list[int]) -> list[int]:
    """Return the tokens of an answer that a cache of 127 tokens stores by the rule."""
    kept: list[int] = []
    for token in said:
        kept.append(token)
        if prompt + len(kept) > 127:
            kept = kept[-max(64 - prompt, len(kept) // 2) :]
    return kept


def test_without_the_option_a_full_cache_ends_a_generation(pipes) -> None:
    results = pipes().generate(IDS[:, :50], max_new_tokens=LONG, ignore_eos=True)
    assert len(results.tokens[0]) == 128 - 50
    assert results.finish_reasons == [GenerationFinishReason.CAPACITY]
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=64: the prompt has 200 tokens"):
        pipes().generate(IDS)


def test_without_room_for_an_answer_a_sliding_prompt_is_read(pipes) -> None:
    """The window is a token shorter than the longest prompt."""
    results = pipes("SLIDE", MIN_RESPONSE_LEN=0).generate(IDS[:, :64], max_new_tokens=9)
    assert len(results.tokens[0]) == 9


QUESTIONS = ("What is an NPU?", "What is a blob?", "Who reads it?", "What is a KV cache?") * 3
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.filterwarnings("ignore:start_chat:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:finish_chat:DeprecationWarning")
def test_twelve_turns_are_answered_like_their_newest_turns(pipes, tokens_of) -> None:
    pipe, whole = pipes("TRUNCATE"), pipes()
    history, fewest = ChatHistory([SYSTEM]), 99
    pipe.start_chat(SYSTEM["content"])
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        messages = history.get_messages()[1:]
        shorter = [ChatHistory([SYSTEM, *messages[at:]]) for at in range(0, len(messages), 2)]
        newest = next(one for one in shorter if len(tokens_of(one)) <= 64)
        fewest = min(fewest, len(newest))
        answer = str(pipe.generate(history, max_new_tokens=12))
        assert answer == pipe.generate(question, max_new_tokens=12)
        assert answer == str(whole.generate(newest, max_new_tokens=12))
        history.append({"role": "assistant", "content": answer})
    pipe.finish_chat()
    assert fewest < len(history) - 2


def test_twelve_turns_slide_the_window_as_one_prompt_of_all_tokens(pipes, tokens_of) -> None:
    """Turns continue where the cache is; a prompt of ids is read from its beginning."""
    pipe, history, ids = pipes("SLIDE"), ChatHistory([SYSTEM]), list[int]()
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        ids = tokens_of(history)
        answer = str(pipe.generate(history, max_new_tokens=12))
        history.append({"role": "assistant", "content": answer})
    assert len(ids) > 2 * 128
    pipe.generate([ids[:1]], max_new_tokens=1)
    assert pipe.get_tokenizer().decode(pipe.generate([ids], max_new_tokens=12).tokens[0]) == answer


@pytest.mark.matrix
@pytest.mark.parametrize("policy", ["TRUNCATE", "SLIDE"])
def test_batched_chats_are_answered_like_those_alone(pipes, demo: Path, policy: str) -> None:
    """The batching shares a prefix cache; cut chats begin with the same system message."""
    scheduler = SchedulerConfig(max_num_seqs=2, enable_prefix_caching=True)
    options = LENGTHS | F32 | {"NPUW_LLM_ON_FULL": policy}
    options |= {"NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16}
    batched = ContinuousBatchingPipeline(demo, scheduler, "NPU", options)
    config = GenerationConfig(max_new_tokens=80, ignore_eos=True, do_sample=False)
    told = [{"role": "user", "content": one} for one in QUESTIONS]
    replies = [{"role": "assistant", "content": one} for one in QUESTIONS]
    pairs = [one for pair in zip(told, replies, strict=True) for one in pair]
    chats = [ChatHistory([SYSTEM, *pairs[:count]]) for count in (5, 9, 13)]
    alone = [str(pipes(policy).generate(one, config)) for one in chats]
    results = batched.generate(chats, [config] * 3)
    assert [one.m_generation_ids[0] for one in results] == alone


@pytest.mark.long
def test_tokens_after_a_long_prompt_are_the_references(pipes, sliding) -> None:
    """Prefill reads 64 of the 150 tokens, and the window slides after 127."""
    ids = IDS[0, :150].tolist()
    (said,) = pipes("SLIDE").generate([ids], max_new_tokens=30, ignore_eos=True).tokens
    for number, token in enumerate(said):
        assert token == sliding([*ids, *said[:number]])


@pytest.fixture(scope="module")
def tokens_of(pipes) -> Callable[[ChatHistory], list[int]]:
    """Return a function that returns the tokens of a chat."""
    tokenizer = pipes().get_tokenizer()

    def encode(history: ChatHistory) -> list[int]:
        prompt = tokenizer.apply_chat_template(history, add_generation_prompt=True)
        return tokenizer.encode(prompt, add_special_tokens=False).input_ids.data[0].tolist()

    return encode


@pytest.fixture
def sliding(demo: Path) -> Callable[[list[int]], int]:
    """Return a function that predicts a token by the stateful model, behind sinks and a window.

    The model reads tokens one by one, with a mask that hides all other positions.
    """
    model, window, logits = Interpreter(read_folder(demo)), 127, list[np.ndarray]()

    def predict(ids: list[int]) -> int:
        for at in range(len(logits), len(ids)):
            mask = np.ones((1, at + 1), np.int64)
            mask[:, SINKS : max(at - window + SINKS, SINKS)] = 0
            inputs = {"input_ids": np.array([[ids[at]]]), "position_ids": np.array([[at]])}
            rows = {"attention_mask": mask, "beam_idx": np.zeros(1, np.int32)}
            logits.append(model.run(inputs | rows)["logits"][0, -1])
        return int(logits[len(ids) - 1].argmax())

    return predict


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}, "TRUNCATE"),
        ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}, "TRUNCATE"),
        ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}, "SLIDE"),
        ({"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}, "SLIDE"),
        ({"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}, "TRUNCATE"),
    ],
    ids=str,
)
def test_other_options_do_not_end_a_generation(
    pipes, caplog, policy: str, options: dict[str, Any]
) -> None:
    pipe = pipes(policy, **options)
    for _ in range(2):  # the second run finds cached prefixes
        results = pipe.generate(IDS[:, :64], max_new_tokens=LONG, ignore_eos=True)
        assert len(results.tokens[0]) == LONG
    assert "were dropped" not in caplog.text, "the runtime cut the tokens"


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
    expected = pipes("SLIDE", EXPORT_BLOB=True, BLOB_PATH=path).generate(IDS, max_new_tokens=9)
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
