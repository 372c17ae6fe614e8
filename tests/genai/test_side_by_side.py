"""Several texts of one call of LLMPipeline, in the slots of its model and one after the other."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from genai_layer import (
    GenerationConfig,
    LLMPipeline,
    PerfMetrics,
    PropertyError,
    RawPerfMetrics,
    RuntimeFailure,
    SchedulerConfig,
    StopCriteria,
    StructuredOutputConfig,
    TokenizedInputs,
)
from genai_layer.errors import PromptTooLong
from genai_layer.testing.memory_batching import (
    BatchingCompiledModel,
    BatchingCore,
    MemoryBatching,
    MemoryConversation,
)
from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import make_tokenizer, write_toy_folder

_SIZE = make_tokenizer().get_vocab_size()
TABLE = (np.random.default_rng(5).normal(size=(_SIZE, _SIZE)) * 3).astype(np.float32)
LENGTHS = {"MAX_PROMPT_LEN": 32, "MIN_RESPONSE_LEN": 16}
SAMPLED = {"do_sample": True, "temperature": 2.0}
METHODS: list[dict[str, Any]] = [
    {},
    {"logprobs": 1, "repetition_penalty": 1.4},
    {"stop_token_ids": frozenset(range(0, 260, 9)), "echo": True},
    {**SAMPLED, "rng_seed": 4},
    {**SAMPLED, "num_return_sequences": 3, "logprobs": 1},
    {**SAMPLED, "num_return_sequences": 9, "stop_token_ids": frozenset(range(0, 260, 5))},
    {"num_beams": 3, "num_return_sequences": 2},
    {"num_beams": 6, "num_beam_groups": 3, "diversity_penalty": 1.0, "num_return_sequences": 6},
    *(
        {"num_beams": 4, "stop_token_ids": frozenset(range(0, 260, 7)), "stop_criteria": one}
        for one in (StopCriteria.EARLY, StopCriteria.HEURISTIC, StopCriteria.NEVER)
    ),
    {"structured_output_config": StructuredOutputConfig(regex="[a-z]{2,4}"), **SAMPLED},
]
IDS = st.lists(st.integers(6, 250), min_size=1, max_size=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_folder(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def alone(folder: Path) -> LLMPipeline:
    """Pipeline without slots."""
    return LLMPipeline(folder, "NPU", core=MemoryCore(TABLE), **LENGTHS)


class CountingBatching(MemoryBatching):
    """Batching that notes how many tokens its steps read of conversations that generate."""

    together: ClassVar[list[int]] = []

    def step(self) -> None:
        """Run a step."""
        pending = [one for one in self._conversations if one.pending and not one.reads_prompt]
        self.together.append(len(pending))
        super().step()


class CountingCore(BatchingCore):
    """Toy runtime with such a batching."""

    def compile_model(self, *args: Any) -> BatchingCompiledModel:
        """Return the toy."""
        compiled = super().compile_model(*args)
        compiled.create_batching = partial(CountingBatching, compiled)
        return compiled


@pytest.fixture
def steps() -> list[int]:
    CountingBatching.together.clear()
    return CountingBatching.together


@pytest.fixture(scope="module")
def slots(folder: Path) -> LLMPipeline:
    """Pipeline with four slots."""
    core = CountingCore(TABLE)
    return LLMPipeline(folder, "NPU", core=core, NPUW_LLM_BATCH_SLOTS="1,4", **LENGTHS)


def tokenized(prompts: list[list[int]]) -> TokenizedInputs:
    """Return prompts of several lengths as one batch."""
    longest = max(map(len, prompts))
    ids = np.array([[*one, *[0] * (longest - len(one))] for one in prompts], np.int64)
    mask = [[1] * len(one) + [0] * (longest - len(one)) for one in prompts]
    return TokenizedInputs(ids, np.array(mask, np.int64))


def counts(metrics: PerfMetrics) -> list[object]:
    """Return the numbers of a call's measurements, of which only the durations may differ."""
    raw = metrics.raw_metrics
    each = {name: len(getattr(raw, name)) for name in RawPerfMetrics.__slots__}
    return [each, raw.m_batch_sizes, metrics.num_input_tokens, metrics.num_generated_tokens]


@settings(max_examples=40, deadline=None)
@given(st.lists(IDS, min_size=1, max_size=7), st.sampled_from(METHODS), st.integers(1, 17))
def test_results_are_those_of_one_prompt_after_the_other(
    alone: LLMPipeline, slots: LLMPipeline, prompts: list[list[int]], method: Any, tokens: int
) -> None:
    config = GenerationConfig(max_new_tokens=tokens, **method)
    found, expected = (pipe.generate(tokenized(prompts), config) for pipe in (slots, alone))
    assert (found.tokens, found.scores) == (expected.tokens, expected.scores)
    assert found.finish_reasons == expected.finish_reasons
    assert counts(found.perf_metrics) == counts(expected.perf_metrics)


def test_prompts_of_a_list_share_steps(alone: LLMPipeline, slots: LLMPipeline, steps) -> None:
    texts = ["hello", "a", "what is it?", "well", "hello", "so"]
    found, expected = (pipe.generate(texts, max_new_tokens=9) for pipe in (slots, alone))
    assert (found.texts, found.scores) == (expected.texts, expected.scores)
    assert max(steps) == 4


@pytest.mark.parametrize("method", [METHODS[4], METHODS[7]], ids=str)
def test_texts_of_one_prompt_share_steps(slots: LLMPipeline, steps, method: Any) -> None:
    slots.generate("hello", max_new_tokens=9, **method)
    several = method.get("num_beams", method["num_return_sequences"])
    assert max(steps) == several


def test_one_text_runs_without_slots(slots: LLMPipeline, steps) -> None:
    slots.generate("hello", max_new_tokens=9, streamer=lambda _: False)
    assert not steps


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (SchedulerConfig(), {"NPUW_LLM_BATCH_SLOTS": "1,8"}),
        (SchedulerConfig(max_num_seqs=3), {"NPUW_LLM_BATCH_SLOTS": "1,3"}),
        (SchedulerConfig(max_num_seqs=1), {}),
        (
            SchedulerConfig(max_num_seqs=2, enable_prefix_caching=True),
            {"NPUW_LLM_BATCH_SLOTS": "1,2", "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"},
        ),
    ],
    ids=str,
)
def test_a_scheduler_sets_the_slots(folder: Path, given: SchedulerConfig, options: Any) -> None:
    core = MemoryCore(TABLE)
    LLMPipeline(folder, "NPU", core=core, scheduler_config=given)
    assert {name: core.config[name] for name in options} == options
    assert ("NPUW_LLM_BATCH_SLOTS" in core.config) == ("NPUW_LLM_BATCH_SLOTS" in options)


def test_options_override_the_scheduler(folder: Path) -> None:
    core, own = MemoryCore(TABLE), {"NPUW_LLM_BATCH_SLOTS": "1,2,4"}
    LLMPipeline(folder, "NPU", core=core, scheduler_config=SchedulerConfig(), **own)
    assert core.config["NPUW_LLM_BATCH_SLOTS"] == "1,2,4"


def test_a_scheduler_has_no_effect_beside_candidates_and_on_a_cpu(folder: Path) -> None:
    for device, extra in (("NPU", {"prompt_lookup": True}), ("CPU", {})):
        core = MemoryCore(TABLE)
        LLMPipeline(folder, device, core=core, scheduler_config=SchedulerConfig(), **extra)
        assert "NPUW_LLM_BATCH_SLOTS" not in core.config


def test_texts_are_generated_in_turn_if_a_model_cannot_have_slots(folder: Path, caplog) -> None:
    class OneAtATime(MemoryCore):
        def compile_model(self, model, device_name, config):
            if "NPUW_LLM_BATCH_SLOTS" in config:
                raise RuntimeError("HFA supports one conversation at a time")
            return super().compile_model(model, device_name, config)

    core = OneAtATime(TABLE)
    made = LLMPipeline(folder, "NPU", core=core, scheduler_config=SchedulerConfig())
    assert "NPUW_LLM_BATCH_SLOTS: left out, as HFA supports one" in caplog.text
    prompts = ["hello", "bye"]
    alone = [str(made.generate(each, max_new_tokens=5)) for each in prompts]
    assert made.generate(prompts, max_new_tokens=5).texts == alone
    caplog.clear()
    own = {"scheduler_config": SchedulerConfig(), "NPUW_LLM_BATCH_SLOTS": "1,2"}
    with pytest.raises(RuntimeFailure, match="one conversation at a time"):
        LLMPipeline(folder, "NPU", core=core, **own)
    assert not caplog.text, "what the user asks for is not left out"


def test_a_scheduler_without_sequences_is_rejected(folder: Path) -> None:
    given = SchedulerConfig(max_num_seqs=0)
    with pytest.raises(PropertyError, match="max_num_seqs = 0: set it to 1 or more"):
        LLMPipeline(folder, "NPU", core=MemoryCore(TABLE), scheduler_config=given)


def test_all_prompts_are_checked_before_one_is_read(slots: LLMPipeline, steps) -> None:
    with pytest.raises(PromptTooLong, match="33 tokens"):
        slots.generate(["hello", "x" * 33], max_new_tokens=3, apply_chat_template=False)
    assert not steps
    assert len(slots.generate(["hello", "well"], max_new_tokens=3).texts) == 2


def test_a_failure_ends_the_call_and_the_next_one_succeeds(
    alone: LLMPipeline, slots: LLMPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["hello", "well", "so"]
    with monkeypatch.context() as patch:
        patch.setattr(MemoryConversation, "read", _fail)
        with pytest.raises(RuntimeFailure, match="device lost"):
            slots.generate(texts, max_new_tokens=5)
    again, expected = (pipe.generate(texts, max_new_tokens=5) for pipe in (slots, alone))
    assert again.texts == expected.texts


def _fail(one: MemoryConversation) -> None:
    one._logits.set_exception(RuntimeError("device lost"))
    one._ids = []
