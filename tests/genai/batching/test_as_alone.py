"""Property: whatever else happens, a request has the tokens of its prompt alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from tests.genai.batching.conftest import CORES, TABLE, greedy, run_steps, scheduler

from genai_layer import (
    ContinuousBatchingPipeline,
    GenerationStatus,
    LLMPipeline,
    StructuredOutputConfig,
)
from genai_layer.batching.request import GenerationHandle

METHODS: list[dict[str, Any]] = [
    {},
    {"logprobs": 1},
    {"repetition_penalty": 1.4},
    {"stop_token_ids": frozenset(range(0, 260, 9))},
    {"do_sample": True, "temperature": 2.0, "rng_seed": 4},
    {"do_sample": True, "temperature": 2.0, "num_return_sequences": 3},
    {"num_beams": 3, "num_return_sequences": 2},
    {"structured_output_config": StructuredOutputConfig(regex="[a-z]{2,4}")},
]
REQUESTS = st.tuples(
    st.just("add"),
    st.lists(st.integers(6, 250), min_size=1, max_size=6),
    st.integers(1, 6),
    st.sampled_from(range(len(METHODS))),
)
ACTS = st.lists(
    st.one_of(
        REQUESTS,
        st.tuples(st.just("step")),
        st.tuples(st.sampled_from(["stop", "cancel"]), st.integers(0, 9)),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*CORES]), st.integers(1, 4), ACTS)
def test_requests_have_the_tokens_of_prompts_alone(
    toy_folder: Path, alone: LLMPipeline, kind: str, places: int, acts: list[Any]
) -> None:
    pipe = ContinuousBatchingPipeline(
        toy_folder, scheduler(max_num_seqs=places), "CPU", core=CORES[kind](TABLE)
    )
    added: list[tuple[GenerationHandle, list[int], Any]] = []
    dropped = set[int]()
    for act, *values in acts:
        if act == "add":
            ids, tokens, method = values
            config = greedy(tokens, **METHODS[method])
            added.append((pipe.add_request(len(added), ids, config), ids, config))
        elif act == "step":
            pipe.step()
        elif values[0] < len(added):
            getattr(added[values[0]][0], act)()
            dropped.add(values[0])
    run_steps(pipe, most=400)
    for number, (handle, ids, config) in enumerate(added):
        if number in dropped:
            continue
        assert handle.get_status() is GenerationStatus.FINISHED
        outputs, expected = handle.read_all(), alone.generate([ids], config)
        assert [one.generated_ids for one in outputs] == expected.tokens
        assert [one.score for one in outputs] == expected.scores
        assert [one.finish_reason for one in outputs] == expected.finish_reasons
