"""Construction: forms of the arguments, settings of the scheduler, and options of the runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.genai.batching.conftest import TABLE, Pipes, greedy, run_steps, scheduler

from genai_layer import (
    ContinuousBatchingPipeline,
    GenerationStatus,
    PromptError,
    PropertyError,
    Tokenizer,
)
from genai_layer.testing.memory_batching import BatchingCore


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_cache_eviction": True}, "use_cache_eviction"),
        ({"use_sparse_attention": True}, "use_sparse_attention"),
        ({"max_num_seqs": 0}, "max_num_seqs"),
    ],
)
def test_settings_without_counterpart_are_rejected(toy_folder: Path, settings, message) -> None:
    with pytest.raises(PropertyError, match=message):
        ContinuousBatchingPipeline(toy_folder, scheduler(**settings), "CPU")


def test_settings_that_change_no_text_are_accepted(pipes: Pipes) -> None:
    plain = pipes().generate("hello", greedy(9))[0].m_generation_ids
    other = pipes(
        max_num_batched_tokens=5,
        cache_size=1,
        dynamic_split_fuse=False,
        enable_prefix_caching=True,
    )
    assert other.generate("hello", greedy(9))[0].m_generation_ids == plain


def test_the_constructor_has_two_forms(toy_folder: Path) -> None:
    core, own = BatchingCore(TABLE), Tokenizer(toy_folder)
    pipe = ContinuousBatchingPipeline(toy_folder, own, scheduler(), "NPU", core=core, FOO="1")
    assert pipe.get_tokenizer() is own
    assert core.config["FOO"] == "1"
    core = BatchingCore(TABLE)
    ContinuousBatchingPipeline(toy_folder, scheduler(), "NPU", {"FOO": "2"}, {}, {}, core=core)
    assert core.config["FOO"] == "2"
    ContinuousBatchingPipeline(
        models_path=toy_folder, scheduler_config=scheduler(), device="CPU", core=core
    )


@pytest.mark.parametrize(
    ("args", "named", "error"),
    [
        (("CPU",), {}, TypeError),
        ((scheduler(),), {}, TypeError),
        ((scheduler(), "CPU"), {"INFERENCE_PRECISION_HINT": "f32"}, TypeError),
        ((scheduler(), "CPU", {}, {}, {}, {}), {}, TypeError),
        (({}, "CPU"), {}, PropertyError),
        ((), {"tokenizer": 1, "scheduler_config": scheduler(), "device": "CPU"}, PropertyError),
        ((scheduler(), "CPU", {"prompt_lookup": 1}), {}, PropertyError),
        ((scheduler(), "CPU", {"draft_model": object()}), {}, PropertyError),
        ((scheduler(), "CPU", {"adapters": object()}), {}, PropertyError),
        ((scheduler(), "CPU", {}, {"low": 1}), {}, PropertyError),
        ((scheduler(), "CPU", "x"), {}, PropertyError),
        ((scheduler(), "CPU", {}, None), {}, PropertyError),
        ((scheduler(), "CPU", {1: 2}), {}, PropertyError),
    ],
)
def test_wrong_constructions_are_rejected(toy_folder: Path, args, named, error) -> None:
    with pytest.raises(error):
        ContinuousBatchingPipeline(toy_folder, *args, core=BatchingCore(TABLE), **named)


@pytest.mark.parametrize(("most", "slots"), [(1, None), (4, "1,4"), (256, "1,8")])
def test_the_scheduler_sets_the_slots_of_an_npu(toy_folder: Path, most, slots) -> None:
    core = BatchingCore(TABLE)
    config = scheduler(max_num_seqs=most, enable_prefix_caching=True)
    ContinuousBatchingPipeline(toy_folder, config, "NPU", core=core)
    assert core.config.get("NPUW_LLM_BATCH_SLOTS") == slots
    assert core.config["NPUW_LLM_ENABLE_PREFIX_CACHING"] == "YES"


def test_an_npu_limits_prompt_and_answer(toy_folder: Path) -> None:
    lengths = {"MAX_PROMPT_LEN": 8, "MIN_RESPONSE_LEN": 4}
    pipe = ContinuousBatchingPipeline(
        toy_folder, scheduler(), "NPU", lengths, core=BatchingCore(TABLE)
    )
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=8"):
        pipe.add_request(0, "a" * 9, greedy())
    handle = pipe.add_request(0, "hello", greedy(100, ignore_eos=True))
    run_steps(pipe)
    assert len(handle.read_all()[0].generated_ids) == 7
    assert handle.get_status() is GenerationStatus.IGNORED
