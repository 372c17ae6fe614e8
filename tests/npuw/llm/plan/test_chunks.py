"""Chunks of a prompt: least cost, and all tokens after any number of stored ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.llm.plan.chunks import cheapest, chunks, cost
from npuw_layer.llm.plan.stages import Stage, StageKind, plan
from npuw_layer.options import parse_options

DEFAULT = plan(parse_options({}))

READ = {
    1: ["16 after 256"],
    8: ["16 after 256"],
    32: ["16 after 256"] * 2,
    64: ["64 after 256"],
    65: ["64 after 256", "16 after 256"],
    128: ["64 after 256"] * 2,
    256: ["256"],
    257: ["256", "16 after 256"],
    300: ["256", "64 after 256"],
    600: ["256", "64 after 256", *["64 after 1024"] * 4, *["16 after 1024"] * 2],
    1000: ["1024"],
}
"""Prefill models that read a prompt at default options, by its tokens."""


def read(tokens: int, stored: int = 0, **options: object) -> list[str]:
    """Return the models that read tokens, without their common prefix."""
    chosen = parse_options({f"NPUW_LLM_{name}": value for name, value in options.items()})
    found = chunks(plan(chosen), chosen, tokens, stored)
    names = [chunk.stage.name for chunk in found]
    return [name.removeprefix("prefill_").replace("_", " ") for name in names]


@pytest.mark.parametrize(("tokens", "models"), READ.items(), ids=map(str, READ))
def test_a_prompt_costs_its_own_length(tokens: int, models: list[str]) -> None:
    assert read(tokens) == models
    few = cheapest(DEFAULT.prefill, tokens, 0)
    assert sum(map(cost, few)) <= cost(DEFAULT.prefill[-1])


def test_tokens_after_stored_ones_cost_their_own_length() -> None:
    assert read(10, 37) == ["16 after 256"]
    assert read(30, 330) == ["16 after 1024"] * 2
    assert read(60, 960) == ["64 after 1024"]


def test_given_options_keep_their_meaning() -> None:
    assert read(257, PREFILL_HINT="STATIC") == ["1024"]
    assert read(257, PREFILL_CHUNK_SIZE=0) == ["1024"]
    assert read(257, PREFILL_PYRAMID="NO") == ["1024"]
    assert read(512, PREFILL_CHUNK_SIZE=256) == ["256", "256 after 256"]
    assert read(10, PREFILL_ATTENTION_HINT="STATIC") == ["16 after 1024"]


def sequences(stages: Sequence[Stage], tokens: int, stored: int) -> Iterator[tuple[Stage, ...]]:
    """Yield all sequences of models that read tokens."""
    if tokens <= 0:
        yield ()
        return
    for stage in stages:
        if stage.past >= stored:
            for rest in sequences(stages, tokens - stage.tokens, stored + stage.tokens):
                yield (stage, *rest)


@given(
    st.lists(st.tuples(st.integers(3, 30), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(1, 20),
    st.integers(0, 20),
)
@settings(max_examples=60, deadline=None)
def test_no_other_sequence_costs_less(
    sizes: list[tuple[int, int]], tokens: int, stored: int
) -> None:
    stages = [Stage(StageKind.PREFILL, size, past) for size, past in sizes]
    found = cheapest(stages, tokens, stored)
    costs = [sum(map(cost, each)) for each in sequences(stages, tokens, stored)]
    assert bool(found) == bool(costs)
    assert sum(map(cost, found)) == min(costs, default=0)


LENGTHS = st.fixed_dictionaries(
    {
        "NPUW_LLM_MAX_PROMPT_LEN": st.integers(1, 5000),
        "NPUW_LLM_PREFILL_CHUNK_SIZE": st.sampled_from([0, 32, 64, 256, 1024]),
        "NPUW_LLM_PREFILL_HINT": st.sampled_from(["DYNAMIC", "STATIC"]),
        "NPUW_LLM_PREFILL_PYRAMID": st.booleans(),
        "NPUW_LLM_PREFILL_ATTENTION_HINT": st.sampled_from(["STATIC", "PYRAMID"]),
        "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": st.booleans(),
    }
)


@given(LENGTHS, st.data())
@settings(max_examples=40, deadline=None)
def test_all_tokens_are_read_after_any_number_of_stored_ones(config, data) -> None:
    options = parse_options(config)
    planned = plan(options)
    longest = planned.lengths.max_prompt
    stored = data.draw(st.integers(0, longest - 1)) if planned.resumes else 0
    tokens = data.draw(st.integers(1, longest - stored))
    found = chunks(planned, options, tokens, stored)
    assert sum(chunk.tokens for chunk in found) == tokens
    for chunk in found:
        assert chunk.stage.past >= stored, "the model attends to all stored tokens"
        stored += chunk.tokens
    assert not any(chunk.padding for chunk in found[:-1]), "only the last chunk is padded"
    by_pieces = config["NPUW_LLM_PREFILL_HINT"] == "DYNAMIC" and config["NPUW_LLM_PREFILL_PYRAMID"]
    resumes = by_pieces and config["NPUW_LLM_PREFILL_CHUNK_SIZE"] > 0 and longest > 64
    assert planned.resumes is (resumes or config["NPUW_LLM_ENABLE_CONTINUOUS_PREFILL"])
