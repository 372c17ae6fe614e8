"""Device NPU in the pipeline: names of options, and limits on lengths."""

from __future__ import annotations

import numpy as np
import pytest

from genai_layer import (
    ChatHistory,
    GenerationFinishReason,
    LLMPipeline,
    PromptError,
    PropertyError,
    RuntimeFailure,
)
from genai_layer.npu import imports_blob, lengths_of, npu_properties, on_full_of
from genai_layer.testing.memory_runtime import MemoryCompiledModel
from genai_layer.testing.toy import answering_core, ids_of


def test_defaults() -> None:
    forwarded, lengths = npu_properties({})
    assert forwarded == {
        "NPUW_LLM_MAX_PROMPT_LEN": 1024,
        "NPUW_LLM_MIN_RESPONSE_LEN": 128,
        "NPU_USE_NPUW": "YES",
        "NPUW_LLM": "YES",
    }
    assert (lengths.max_prompt_len, lengths.min_response_len) == (1024, 128)


def test_options_are_renamed_to_those_of_npuw_and_others_pass() -> None:
    given = {"PREFILL_HINT": "STATIC", "++GENERATE_CONFIG": {}, "CACHE_DIR": "c", "NPUW_X": 1}
    forwarded, _ = npu_properties(given)
    assert forwarded["NPUW_LLM_PREFILL_HINT"] == "STATIC"
    assert forwarded["NPUW_LLM_GENERATE_CONFIG"] == {}
    assert (forwarded["CACHE_DIR"], forwarded["NPUW_X"]) == ("c", 1)


def test_a_length_under_npuws_name_limits_prompts_too() -> None:
    _, lengths = npu_properties({"NPUW_LLM_MAX_PROMPT_LEN": 2048})
    assert lengths.max_prompt_len == 2048


@pytest.mark.parametrize("value", [-1, "1", True, 1.5, 0])
def test_a_length_must_be_an_integer(value: object) -> None:
    with pytest.raises(PropertyError, match="must be an integer of at least 1"):
        npu_properties({"MAX_PROMPT_LEN": value})


def test_a_length_given_twice_is_rejected() -> None:
    with pytest.raises(PropertyError, match="given twice"):
        npu_properties({"MAX_PROMPT_LEN": 1, "NPUW_LLM_MAX_PROMPT_LEN": 1})


def test_a_misspelt_length_names_the_right_one() -> None:
    with pytest.raises(PropertyError, match="did you mean MAX_PROMPT_LEN"):
        npu_properties({"MAX_PROMT_LEN": 64})


@pytest.mark.parametrize(
    ("properties", "imported"),
    [
        ({}, False),
        ({"BLOB_PATH": "m.blob"}, True),
        ({"BLOB_PATH": "m.blob", "EXPORT_BLOB": False}, True),
        ({"BLOB_PATH": "m.blob", "EXPORT_BLOB": "no"}, True),
        ({"BLOB_PATH": "m.blob", "EXPORT_BLOB": True}, False),
        ({"BLOB_PATH": "m.blob", "EXPORT_BLOB": "YES"}, False),
        ({"EXPORT_BLOB": "YES"}, False),
    ],
)
def test_a_blob_is_imported_if_it_is_named_and_not_exported(properties, imported) -> None:
    assert imports_blob(properties) == imported
    forwarded, lengths = npu_properties(properties)
    assert (lengths is None) == imported
    assert ("NPUW_LLM_MAX_PROMPT_LEN" in forwarded) != imported, "the blob has its own lengths"
    assert forwarded["NPUW_LLM"] == "YES"
    assert forwarded.items() >= properties.items()


def test_export_blob_must_be_yes_or_no() -> None:
    with pytest.raises(PropertyError, match="EXPORT_BLOB = 'maybe': must be YES or NO"):
        npu_properties({"EXPORT_BLOB": "maybe"})


def test_the_lengths_of_a_blob_limit_prompts(folder) -> None:
    core = answering_core("hey")
    core.blob = {"NPUW_LLM_MAX_PROMPT_LEN": 6, "NPUW_LLM_MIN_RESPONSE_LEN": 2}
    pipe = LLMPipeline(folder, "NPU", core=core, BLOB_PATH="m.blob")
    pipe.generate("abcd", max_new_tokens=1)
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=6: the prompt has 7 tokens"):
        pipe.generate("abcde")


def test_a_prompt_of_the_maximum_length_passes_and_a_longer_one_is_rejected(speaks) -> None:
    pipe = speaks("hey", "NPU", MAX_PROMPT_LEN=6)
    assert pipe.generate("abcd") == "hey"
    with pytest.raises(PromptError, match="_LEN=6: the prompt has 7 tokens; raise MAX_PROMPT_LEN"):
        pipe.generate("abcde")


@pytest.mark.parametrize(("prompt", "most"), [("", 4 + 8 - 2), ("ab", 4 + 8 - 4)])
def test_generation_ends_with_capacity_when_the_cache_is_full(
    speaks, prompt: str, most: int
) -> None:
    pipe = speaks(ids_of("abcdefghijklmnop"), "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=8)
    results = pipe.generate([prompt])
    assert results.perf_metrics.get_num_generated_tokens() == most
    assert results.finish_reasons == [GenerationFinishReason.CAPACITY]


def test_a_generation_that_just_fits_ends_with_length(speaks) -> None:
    pipe = speaks(ids_of("abcdefghijklmnop"), "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=8)
    results = pipe.generate(["ab"], max_new_tokens=8)
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


def test_a_prompt_without_room_for_an_answer_is_rejected(speaks) -> None:
    pipe = speaks("hey", "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=0)
    assert pipe.generate(["a"]).texts == ["h"]
    with pytest.raises(PromptError, match="raise MIN_RESPONSE_LEN"):
        pipe.generate(["ab"])


SHORT = {"MAX_PROMPT_LEN": 6, "MIN_RESPONSE_LEN": 4}
CAPACITY = 6 + 4 - 1


@pytest.fixture
def forgets(folder):
    """Return a function that creates a pipeline with the lengths of SHORT and an ON_FULL policy."""

    def make(policy: str, answer: str = "hey") -> LLMPipeline:
        core = answering_core(answer, CAPACITY)
        return LLMPipeline(folder, "NPU", core=core, NPUW_LLM_ON_FULL=policy, **SHORT)

    return make


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_a_cache_that_forgets_does_not_end_a_generation(forgets, policy: str) -> None:
    results = forgets(policy).generate(["abcd"], max_new_tokens=50, ignore_eos=True)
    assert results.perf_metrics.get_num_generated_tokens() == 50
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_a_cache_that_forgets_lets_the_model_finish_its_answer(forgets, policy: str) -> None:
    answer = "abcdefghijklmnop"
    results = forgets(policy, answer).generate(["abcd"])
    assert results.texts == [answer]
    assert results.finish_reasons == [GenerationFinishReason.STOP]


def test_a_cache_that_does_not_forget_ends_a_generation(forgets) -> None:
    results = forgets("ERROR").generate(["abcd"], max_new_tokens=50, ignore_eos=True)
    assert results.perf_metrics.get_num_generated_tokens() == 4
    assert results.finish_reasons == [GenerationFinishReason.CAPACITY]
    with pytest.raises(PromptError, match=r"raise MAX_PROMPT_LEN, e.g. to 64, or shorten .*t$"):
        forgets("ERROR").generate("abcde")


def test_a_prompt_is_never_cut(forgets) -> None:
    """A text alone has no earlier turn; a sliding cache reads it all."""
    refused = r"^MAX_PROMPT_LEN=6: .* no earlier turn to leave out; .* NPUW_LLM_ON_FULL=SLIDE"
    pipe = forgets("TRUNCATE")
    with pytest.raises(PromptError, match=refused):
        pipe.generate("far too long for this")
    assert pipe.generate("abcd") == "hey"
    results = forgets("SLIDE").generate(["far too long for this"])
    assert results.texts == ["hey"]
    assert results.perf_metrics.get_num_input_tokens() == 23


@pytest.mark.filterwarnings("ignore:start_chat:DeprecationWarning")
def test_a_chat_with_a_truncated_history_continues(forgets) -> None:
    pipe = forgets("TRUNCATE")
    history = ChatHistory()
    pipe.start_chat()
    for _ in range(5):
        history.append({"role": "user", "content": "abcd"})
        history.append({"role": "assistant", "content": str(pipe.generate(history))})
        assert pipe.generate("abcd") == history.get_messages()[-1]["content"] == "hey"


def test_a_blob_sets_the_behaviour_of_a_full_cache(folder) -> None:
    core = answering_core("hey", CAPACITY)
    core.blob = {f"NPUW_LLM_{name}": value for name, value in SHORT.items()}
    core.blob |= {"NPUW_LLM_ON_FULL": "SLIDE"}
    pipe = LLMPipeline(folder, "NPU", core=core, BLOB_PATH="m.blob")
    results = pipe.generate(["a"], max_new_tokens=50, ignore_eos=True)
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


def test_the_runtimes_error_is_reported(folder) -> None:
    core = answering_core("hey", 4)
    pipe = LLMPipeline(folder, "NPU", core=core, **SHORT)
    with pytest.raises(RuntimeFailure, match="6 tokens exceed the capacity of 4"):
        pipe.generate("abcd")


def test_an_unknown_policy_is_rejected() -> None:
    table = np.zeros((9, 9), np.float32)
    compiled = MemoryCompiledModel(table, 4, {"NPUW_LLM_ON_FULL": "WAIT"})
    with pytest.raises(PropertyError, match="'WAIT': must be one of ERROR, TRUNCATE, SLIDE"):
        on_full_of(compiled)


def test_a_cache_for_steps_of_several_tokens_is_longer_by_almost_a_step() -> None:
    """The last tokens of a cache cannot be a step, so lengths do not count them."""
    wide = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 5}
    forwarded, lengths = npu_properties(SHORT | wide)
    assert forwarded["NPUW_LLM_MIN_RESPONSE_LEN"] == 4 + 7
    assert lengths.capacity == CAPACITY
    table = np.zeros((9, 9), np.float32)
    assert lengths_of(MemoryCompiledModel(table, 20, forwarded)).capacity == CAPACITY
