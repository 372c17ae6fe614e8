"""What the device NPU adds: names of options, and limits."""

from __future__ import annotations

import pytest

from genai_layer import GenerationFinishReason, LLMPipeline, PromptError, PropertyError
from genai_layer.npu import imports_blob, npu_properties
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


def test_names_are_changed_to_those_of_npuw_and_others_pass() -> None:
    given = {"PREFILL_HINT": "STATIC", "++GENERATE_CONFIG": {}, "CACHE_DIR": "c", "NPUW_X": 1}
    forwarded, _ = npu_properties(given)
    assert forwarded["NPUW_LLM_PREFILL_HINT"] == "STATIC"
    assert forwarded["NPUW_LLM_GENERATE_CONFIG"] == {}
    assert (forwarded["CACHE_DIR"], forwarded["NPUW_X"]) == ("c", 1)


def test_a_length_under_npuws_name_limits_prompts_too() -> None:
    _, lengths = npu_properties({"NPUW_LLM_MAX_PROMPT_LEN": 2048})
    assert lengths.max_prompt_len == 2048


@pytest.mark.parametrize("value", [-1, "1", True, 1.5, 0])
def test_a_length_is_a_whole_number(value: object) -> None:
    with pytest.raises(PropertyError, match="must be a whole number of at least 1"):
        npu_properties({"MAX_PROMPT_LEN": value})


def test_a_length_may_not_be_given_twice() -> None:
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
def test_a_blob_is_imported_where_one_is_named_and_not_exported(properties, imported) -> None:
    assert imports_blob(properties) == imported
    forwarded, lengths = npu_properties(properties)
    assert (lengths is None) == imported
    assert ("NPUW_LLM_MAX_PROMPT_LEN" in forwarded) != imported, "it has lengths of its own"
    assert forwarded["NPUW_LLM"] == "YES"
    assert forwarded.items() >= properties.items()


def test_whether_to_export_is_yes_or_no() -> None:
    with pytest.raises(PropertyError, match="EXPORT_BLOB = 'maybe': must be YES or NO"):
        npu_properties({"EXPORT_BLOB": "maybe"})


def test_the_lengths_of_a_blob_limit_prompts(folder) -> None:
    core = answering_core("hey")
    core.blob = {"NPUW_LLM_MAX_PROMPT_LEN": 6, "NPUW_LLM_MIN_RESPONSE_LEN": 2}
    pipe = LLMPipeline(folder, "NPU", core=core, BLOB_PATH="m.blob")
    pipe.generate("abcd", max_new_tokens=1)
    with pytest.raises(PromptError, match="has 7 tokens, at most 6 are possible"):
        pipe.generate("abcde")


def test_a_prompt_of_the_limit_passes_and_one_more_is_refused(speaks) -> None:
    pipe = speaks("hey", "NPU", MAX_PROMPT_LEN=6)
    assert pipe.generate("abcd") == "hey"
    with pytest.raises(PromptError, match="has 7 tokens, at most 6 are possible; raise MAX_PROMPT"):
        pipe.generate("abcde")


@pytest.mark.parametrize(("prompt", "most"), [("", 4 + 8 - 2), ("ab", 4 + 8 - 4)])
def test_what_fits_after_a_prompt_is_generated_and_then_capacity_ends_it(
    speaks, prompt: str, most: int
) -> None:
    pipe = speaks(ids_of("abcdefghijklmnop"), "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=8)
    results = pipe.generate([prompt])
    assert results.perf_metrics.get_num_generated_tokens() == most
    assert results.finish_reasons == [GenerationFinishReason.CAPACITY]


def test_asking_for_just_as_much_as_fits_ends_by_length(speaks) -> None:
    pipe = speaks(ids_of("abcdefghijklmnop"), "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=8)
    results = pipe.generate(["ab"], max_new_tokens=8)
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]


def test_a_full_prompt_without_room_for_an_answer_is_refused(speaks) -> None:
    pipe = speaks("hey", "NPU", MAX_PROMPT_LEN=4, MIN_RESPONSE_LEN=0)
    assert pipe.generate(["a"]).texts == ["h"]
    with pytest.raises(PromptError, match="raise MIN_RESPONSE_LEN"):
        pipe.generate(["ab"])
