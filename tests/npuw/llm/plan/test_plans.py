"""Lengths, variants, and placement of rows: integers only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import OptionError
from npuw_layer.llm.plan.lengths import plan_lengths
from npuw_layer.llm.plan.stages import plan
from npuw_layer.llm.plan.variants import given_ladder, ladder, select_generate_request
from npuw_layer.options import NAMES, parse_options


@pytest.mark.parametrize(
    ("prompt", "response", "chunk", "dynamic", "expected"),
    [
        # The numbers of NPUW, docs/reference/npuw.md#lengths.
        (1024, 128, 1024, True, (1024, 128, None)),
        (100, 10, 1024, True, (128, 64, None)),
        (2000, 128, 1024, True, (2048, 128, 1024)),
        (2000, 128, 1024, False, (2048, 128, None)),
        (2000, 128, 0, True, (2048, 128, None)),
        (300, 0, 128, True, (384, 0, 128)),
    ],
)
def test_lengths_are_rounded_as_in_npuw(prompt, response, chunk, dynamic, expected) -> None:
    lengths = plan_lengths(prompt, response, chunk, dynamic)
    assert (lengths.max_prompt, lengths.min_response, lengths.chunk) == expected


def test_a_chunk_in_use_must_be_a_power_of_two() -> None:
    with pytest.raises(OptionError, match="NPUW_LLM_PREFILL_CHUNK_SIZE is 100"):
        plan_lengths(1024, 128, 100, True)
    assert plan_lengths(64, 64, 100, True).chunk is None, "unused chunks are not checked"


@given(st.integers(1, 5000), st.integers(0, 2000), st.sampled_from([0, 64, 128, 1024]))
def test_lengths_hold_the_requested_tokens(prompt: int, response: int, chunk: int) -> None:
    lengths = plan_lengths(prompt, response, chunk, True)
    assert lengths.max_prompt >= prompt
    assert lengths.min_response >= response
    assert lengths.max_prompt % 64 == lengths.min_response % 64 == 0
    if lengths.chunk:
        assert lengths.max_prompt % lengths.chunk == 0


@pytest.mark.parametrize(
    ("total", "expected"), [(1152, [256, 512, 1024, 1152]), (192, [192]), (512, [256, 512])]
)
def test_the_ladder_doubles(total: int, expected: list[int]) -> None:
    assert ladder(total) == expected


def test_a_given_ladder_is_completed_and_checked() -> None:
    assert given_ladder([128], 512) == [128, 512]
    assert given_ladder([128, 512], 512) == [128, 512]
    for wrong in ([512, 128], [128, 128], [1, 512], [600]):
        with pytest.raises(OptionError, match="must ascend"):
            given_ladder(wrong, 512)


@pytest.mark.parametrize(
    ("prompt", "steps"), [(2048, (1152, 2176)), (4096, (1152, 2176, 4224)), (1000, (1152,))]
)
def test_an_option_requests_npuws_capacities(prompt: int, steps: tuple[int, ...]) -> None:
    """The capacities are 1,024, 2,048, … and the response.

    Source: docs/reference/npuw.md#generate-variants.
    """
    sizes = {"NPUW_LLM_GENERATE_PYRAMID_STEPS": ",".join(map(str, steps))}
    stages = plan(parse_options(sizes | {"NPUW_LLM_MAX_PROMPT_LEN": prompt})).generate
    assert [stage.past + stage.tokens for stage in stages] == [*steps]


def test_static_attention_cuts_no_layers() -> None:
    """Source: docs/reference/npuw.md#stage-options."""
    hints = ("NPUW_LLM_PREFILL_ATTENTION_HINT", "NPUW_LLM_GENERATE_ATTENTION_HINT")
    chunked = {"NPUW_LLM_MAX_PROMPT_LEN": 2048, "NPUW_LLM_PREFILL_CHUNK_SIZE": 256}
    options = parse_options(chunked | dict.fromkeys(hints, "STATIC"))
    assert not options.isolated_attention
    assert not any((options.cuts_layers, options.isolated_ops, options.online_isolate))
    flash = parse_options(chunked | dict.fromkeys(hints, "HFA"))
    assert flash.isolated_attention == {"prefill": "HFA", "generate": "HFA"}


@given(st.integers(65, 4000), st.integers(0, 4000), st.integers(0, 500))
def test_the_smallest_variant_that_holds_all_tokens_is_chosen(total, tokens, reserve) -> None:
    capacities = ladder(total)
    chosen = select_generate_request(capacities, tokens, reserve)
    smaller = capacities[:chosen]
    assert all(capacity < tokens + reserve for capacity in smaller)
    assert capacities[chosen] >= tokens + reserve or chosen == len(capacities) - 1


@pytest.mark.parametrize(("tokens", "step"), [(1, 1), (6, 8), (16, 16)])
def test_steps_of_several_tokens_have_models_of_one_token_beside_them(tokens, step) -> None:
    found = plan(parse_options({"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": tokens}))
    assert {stage.tokens for stage in found.generate} == {step}
    if step == 1:
        assert found.singles == ()
        return
    assert found.singles == plan(parse_options({})).generate  # equal programs round equally
    names = [stage.name for stage in found.stages]
    assert len(set(names)) == len(names)


def test_every_option_has_a_name_and_a_default() -> None:
    options = parse_options({})
    assert all(hasattr(options, field) for field in NAMES.values())
    assert options.max_prompt_len == 1024
    assert options.min_response_len == 128


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NPUW_LLM_MAX_PROMPT_LENGTH": 3}, "did you mean NPUW_LLM_MAX_PROMPT_LEN"),
        ({"FOO": 3}, "unknown option 'FOO'; `npuw options` lists"),
        ({"NPUW_LLM_MAX_PROMPT_LEN": 0}, "NPUW_LLM_MAX_PROMPT_LEN = 0"),
        ({"NPUW_LLM_MAX_PROMPT_LEN": True}, "must be an integer"),
        ({"NPUW_LLM_PREFILL_HINT": "FAST"}, "NPUW_LLM_PREFILL_HINT = 'FAST'"),
        ({"INFERENCE_PRECISION_HINT": "f8"}, "INFERENCE_PRECISION_HINT = 'f8'"),
        ({"NPU_USE_NPUW": "MAYBE"}, "NPU_USE_NPUW = 'MAYBE'"),
        ({"NPUW_LLM_GENERATE_PYRAMID_STEPS": "a"}, "NPUW_LLM_GENERATE_PYRAMID_STEPS = 'a'"),
    ],
)
def test_the_error_for_a_wrong_option_names_it(config: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(config)


@pytest.mark.parametrize("yes", ["YES", "yes", True, "TRUE"])
def test_flags_are_read_as_openvino_writes_them(yes: object) -> None:
    assert parse_options({"NPUW_LLM": yes}).llm


def test_a_platform_may_be_written_as_a_number() -> None:
    assert parse_options({"NPU_PLATFORM": 3720}).platform == "3720"
