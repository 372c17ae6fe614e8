"""Pipelines with a draft model or prompt lookup, on the in-memory runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import LLMPipeline, ModelError, PromptError, PropertyError, draft_model
from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import answering_core, make_tokenizer, write_toy_folder

ANSWER = "hey, world!"
CANDIDATES = {"num_assistant_tokens": 4}
LOOKUP = CANDIDATES | {"max_ngram_size": 2}
STEP = "NPUW_LLM_MAX_GENERATION_TOKEN_LEN"


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """Folder of a draft model."""
    folder = tmp_path / "draft"
    folder.mkdir()
    return write_toy_folder(folder)


def drafted(
    folder: Path, draft: Path, answer: str = ANSWER, device: str = "CPU", **properties: Any
) -> LLMPipeline:
    """Return a pipeline that answers ANSWER, with a draft model of another answer."""
    given = draft_model(draft, core=answering_core(answer))
    core = answering_core(ANSWER)
    return LLMPipeline(folder, device, core=core, draft_model=given, **properties)


@pytest.mark.parametrize("device", ["CPU", "NPU"])
@pytest.mark.parametrize("answer", [ANSWER, "hey, wal"])
def test_the_text_is_that_of_the_model_alone(folder: Path, draft: Path, answer, device) -> None:
    pipe = drafted(folder, draft, answer, device)
    assert pipe.generate("?") == ANSWER
    assert pipe.generate("?", stop_strings={" wo"}) == "hey,"
    assert pipe.generate("?", assistant_confidence_threshold=0.5) == ANSWER


def test_metrics_count_candidates(folder: Path, draft: Path) -> None:
    found = drafted(folder, draft).generate(["?"], **CANDIDATES)
    both, tokens = found.extended_perf_metrics, len(ANSWER) + 1
    assert both is not None
    assert both.get_num_generated_tokens() == tokens
    assert both.get_num_accepted_tokens() == both.get_num_draft_tokens() == 9, "the stop token, too"
    assert both.get_num_rejected_tokens() == 0
    assert both.get_draft_acceptance_rate() == 1
    assert found.perf_metrics.raw_metrics.m_batch_sizes == [1, 5, 5, 1]
    assert len(found.perf_metrics.raw_metrics.m_durations) == tokens - 1
    main, draft_metrics = both.main_model_metrics, both.draft_model_metrics
    assert main.get_num_generated_tokens() == tokens
    assert len(main.raw_metrics.m_durations) == 4
    assert draft_metrics.get_num_generated_tokens() == both.get_num_draft_processed_tokens()
    assert both.get_draft_processed_to_candidate_ratio() >= 1
    for each in (main.get_ttft(), main.get_ttst(), main.get_latency(), main.get_tpot()):
        assert each.mean > 0
    assert main.get_latency().mean > main.get_tpot().mean
    assert both.get_draft_to_main_inference_duration_ratio() > 0


def test_metrics_of_tokens_that_are_read_again(folder: Path, draft: Path) -> None:
    size = make_tokenizer().get_vocab_size()
    ties = np.random.default_rng(5).integers(0, 6, (size, size)).astype(np.float32)
    given = draft_model(draft, core=MemoryCore(ties))
    pipe = LLMPipeline(folder, "CPU", core=MemoryCore(ties), draft_model=given)
    found = pipe.generate(["?", "a"], max_new_tokens=12, ignore_eos=True)
    raw, both = found.perf_metrics.raw_metrics, found.extended_perf_metrics
    assert both is not None
    assert both.get_num_draft_tokens() > both.get_num_accepted_tokens(), "choices are close"
    assert sum(raw.m_batch_sizes) == both.get_num_generated_tokens() == 24
    assert len(raw.token_infer_durations) == len(raw.m_batch_sizes)
    assert sum(raw.token_infer_durations) == pytest.approx(sum(raw.inference_durations))
    main = both.main_model_metrics
    for each in (main.get_ttft(), main.get_ttst(), main.get_latency(), main.get_tpot()):
        assert each.mean > 0


def test_metrics_add_up(folder: Path, draft: Path) -> None:
    pipe = drafted(folder, draft)
    one, two = (pipe.generate(["?"], **CANDIDATES).extended_perf_metrics for _ in range(2))
    assert one is not None
    assert two is not None
    total = one + two
    assert total.get_num_accepted_tokens() == 18
    first = [each.main_model_metrics.raw_metrics.m_durations[0] / 1000 for each in (one, two)]
    assert total.main_model_metrics.get_ttft().mean == pytest.approx(sum(first) / 2)


def test_prompt_lookup_accepts_what_the_prompt_has(folder: Path) -> None:
    core = answering_core(ANSWER)
    pipe = LLMPipeline(folder, "CPU", core=core, prompt_lookup=True)
    found = pipe.generate([ANSWER], **LOOKUP)
    assert found.texts == [ANSWER]
    assert max(found.perf_metrics.raw_metrics.m_batch_sizes) == 5
    assert found.extended_perf_metrics is None
    alone = pipe.generate([ANSWER])
    assert alone.texts == [ANSWER], "without max_ngram_size there are no candidates"
    assert set(alone.perf_metrics.raw_metrics.m_batch_sizes) == {1}


@pytest.mark.parametrize(
    ("properties", "step", "response"),
    [
        ({}, None, 128),
        ({"prompt_lookup": True}, 6, 135),
        ({"draft_model": True}, 11, 143),
        ({"draft_model": True, STEP: 8}, 8, 135),
    ],
)
def test_an_npus_steps_take_all_candidates(
    folder: Path, draft: Path, properties: dict[str, Any], step: int | None, response: int
) -> None:
    core, properties = answering_core(ANSWER), dict(properties)
    if "draft_model" in properties:
        properties["draft_model"] = draft_model(draft, core=answering_core(ANSWER))
    pipe = LLMPipeline(folder, "NPU", core=core, **properties)
    assert core.config.get(STEP) == step
    assert core.config["NPUW_LLM_MIN_RESPONSE_LEN"] == response
    found = pipe.generate([ANSWER], num_assistant_tokens=9, max_ngram_size=2)
    assert found.texts == [ANSWER]
    assert max(found.perf_metrics.raw_metrics.m_batch_sizes) <= (step or 1)


def test_the_capacity_is_that_of_the_model_alone(folder: Path, draft: Path) -> None:
    lengths = {"MAX_PROMPT_LEN": 16, "MIN_RESPONSE_LEN": 1}
    given = draft_model(draft, core=answering_core(ANSWER))
    alone = LLMPipeline(folder, "NPU", core=answering_core(ANSWER), **lengths)
    pipe = LLMPipeline(folder, "NPU", core=answering_core(ANSWER), draft_model=given, **lengths)
    expected, found = (each.generate(["12345678"], **CANDIDATES) for each in (alone, pipe))
    assert (found.texts, found.finish_reasons) == (expected.texts, expected.finish_reasons)
    assert found.finish_reasons[0].name == "CAPACITY"


def test_a_draft_inherits_the_pipelines_properties_unless_it_has_its_own(
    folder: Path, draft: Path
) -> None:
    for own, length in (({}, 64), ({"MAX_PROMPT_LEN": 96}, 96)):
        core = answering_core(ANSWER)
        given = draft_model(draft, core=core, **own)
        pipe = LLMPipeline(
            folder, "NPU", core=answering_core(ANSWER), draft_model=given, MAX_PROMPT_LEN=64
        )
        assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == length
        assert STEP not in core.config, "a draft takes one token at a time"
        assert pipe.generate("?") == ANSWER


def test_a_draft_is_not_exported_with_the_pipeline(folder: Path, draft: Path) -> None:
    core, own = answering_core(ANSWER), answering_core(ANSWER)
    blob = {"BLOB_PATH": "a.blob", "EXPORT_BLOB": "YES"}
    given = draft_model(draft, core=core)
    LLMPipeline(folder, "NPU", core=own, draft_model=given, MAX_PROMPT_LEN=64, **blob)
    assert blob.items() <= own.config.items()
    assert not blob.keys() & core.config.keys(), "the draft would replace the pipeline's blob"
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == 64


def test_a_prompt_must_fit_the_draft_model(folder: Path, draft: Path) -> None:
    given = draft_model(draft, core=answering_core(ANSWER), MAX_PROMPT_LEN=8)
    pipe = LLMPipeline(folder, "NPU", core=answering_core(ANSWER), draft_model=given)
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=8: the prompt has"):
        pipe.generate("a long question")


def test_a_draft_model_needs_the_same_vocabulary(folder: Path, draft: Path) -> None:
    tokenizer = (draft / "tokenizer.json").read_text()
    (draft / "tokenizer.json").write_text(tokenizer.replace('"mach"', '"maxh"'))
    with pytest.raises(ModelError, match=r"vocabulary of .*draft is not the pipeline's; use a"):
        drafted(folder, draft)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"draft_model": "a"}, r"draft_model = 'a': must be the result of draft_model\(…\)"),
        ({"prompt_lookup": "x"}, "prompt_lookup = 'x': must be True or False"),
        ({"prompt_lookup": True, "draft_model": True}, "exclude each other; leave one out"),
        (
            {"prompt_lookup": True, "NPUW_LLM_ON_FULL": "SLIDE"},
            "prompt_lookup: NPUW_LLM_ON_FULL = SLIDE: forgotten tokens do not return",
        ),
        (
            {"draft_model": True, "NPUW_LLM_ON_FULL": "TRUNCATE"},
            "draft_model: NPUW_LLM_ON_FULL = TRUNCATE: forgotten tokens do not return",
        ),
        ({"prompt_lookup": True, "BLOB_PATH": "a.blob"}, "prompt_lookup: the blob of BLOB_PATH"),
        ({"prompt_lookup": True, STEP: "x"}, f"{STEP[9:]} = 'x': must be an integer"),
    ],
)
def test_other_properties_are_rejected_by_name(
    folder: Path, draft: Path, properties: dict[str, Any], message: str
) -> None:
    properties = dict(properties)
    if properties.get("draft_model") is True:
        properties["draft_model"] = draft_model(draft, core=answering_core(ANSWER))
    with pytest.raises(PropertyError, match=message):
        LLMPipeline(folder, "NPU", core=answering_core(ANSWER), **properties)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"BLOB_PATH": "a.blob"}, "draft_model: BLOB_PATH is not supported; set CACHE_DIR"),
        ({"BLOB_PATH": "a.blob", "EXPORT_BLOB": True}, "draft_model: BLOB_PATH is not supported"),
        ({"NPUW_LLM_ON_FULL": "SLIDE"}, "draft_model: NPUW_LLM_ON_FULL must be ERROR"),
        ({"lower": 1}, "property 'lower' is not supported"),
    ],
)
def test_properties_of_a_draft_are_checked(
    folder: Path, draft: Path, properties: dict[str, Any], message: str
) -> None:
    core: MemoryCore = answering_core(ANSWER)
    given = draft_model(draft, core=core, **properties)
    with pytest.raises(PropertyError, match=message):
        LLMPipeline(folder, "NPU", core=answering_core(ANSWER), draft_model=given)
