"""Generation with a grammar, on the in-memory runtime."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.genai.conftest import Speaks
from tests.genai.grammars.conftest import Constrain

from genai_layer import (
    ConfigError,
    GenerationConfig,
    GenerationFinishReason,
    LLMPipeline,
    PerfMetrics,
    StructuredOutputConfig,
    Tokenizer,
    WhisperGenerationConfig,
)
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.grammars.constraint import GrammarConstraint
from genai_layer.testing.memory_runtime import MemoryCore, MemoryRequest
from genai_layer.testing.toy import EOS, ids_of, word_id, write_toy_folder

S = StructuredOutputConfig


def test_a_text_follows_the_grammar_and_ends(speaks: Speaks) -> None:
    results = speaks("abc").generate(["?"], structured_output_config=S(regex="(xy|cd)e"))
    assert re.fullmatch("(xy|cd)e", results.texts[0])
    assert results.finish_reasons == [GenerationFinishReason.STOP]


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_an_answer_of_the_grammar_is_unchanged(speaks: Speaks, device: str) -> None:
    pipe = speaks("hey, um", device)
    expected = pipe.generate([[*ids_of("?"), 4]])
    found = pipe.generate([[*ids_of("?"), 4]], structured_output_config=S(regex="[a-z, ]+"))
    assert found.tokens == expected.tokens
    assert found.finish_reasons == expected.finish_reasons


def test_samples_follow_the_grammar(speaks: Speaks) -> None:
    pipe, regex = speaks("abc"), "[a-z]{3,9}"
    texts = {
        pipe.generate(
            "?",
            structured_output_config=S(regex=regex),
            do_sample=True,
            temperature=9.0,
            rng_seed=seed,
        )
        for seed in range(9)
    }
    assert len(texts) > 1
    assert all(re.fullmatch(regex, text) for text in texts)


def test_several_texts_and_prompts_follow_the_grammar_each(speaks: Speaks) -> None:
    results = speaks("abc").generate(
        ["one", "two"],
        structured_output_config=S(regex="[a-z]{2,5}"),
        num_return_sequences=3,
        do_sample=True,
        temperature=9.0,
    )
    assert len(results.texts) == 6
    assert len({*results.texts}) > 2
    assert all(re.fullmatch("[a-z]{2,5}", text) for text in results.texts)


def test_all_tokenizations_of_a_fixed_text_are_allowed(constrain: Constrain) -> None:
    constraint = constrain(S(structural_tags_config=S.ConstString("hello")))
    allowed = np.isfinite(constraint.process(np.zeros(280, np.float32))).nonzero()[0]
    assert {*allowed} == {*ids_of("h"), word_id("he")}


def test_penalties_follow_the_mask(speaks: Speaks) -> None:
    config = S(regex="(a|b)(a|b)(a|b)")
    text = speaks("z").generate(
        "?", structured_output_config=config, repetition_penalty=9.0, presence_penalty=2.0
    )
    assert re.fullmatch("[ab]{3}", text)


def test_tokens_beyond_the_tokenizers_vocabulary_are_forbidden(tmp_path: Path) -> None:
    write_toy_folder(tmp_path)
    table = np.zeros((400, 400), np.float32)
    table[:, 399] = 9
    pipe = LLMPipeline(tmp_path, "CPU", core=MemoryCore(table))
    assert pipe.generate("?", structured_output_config=S(regex="abc")) == "abc"


def test_text_after_the_end_is_free_if_stop_tokens_are_ignored(speaks: Speaks) -> None:
    given = {"structured_output_config": S(regex="ab"), "ignore_eos": True, "max_new_tokens": 6}
    found = speaks("cd").generate([ids_of("?")], **given).tokens[0]
    assert found[:3] == [*ids_of("ab"), EOS]
    assert len(found) == 6


def test_impossible_ends_are_named(speaks: Speaks) -> None:
    pipe = speaks("abc")
    with pytest.raises(ConfigError, match="lower min_new_tokens"):
        pipe.generate("?", structured_output_config=S(regex="ab"), min_new_tokens=5)
    assert pipe.generate("?") == "abc"


def test_a_generation_with_a_bomb_is_rejected_and_the_next_one_runs(speaks: Speaks) -> None:
    pipe = speaks("abc")
    bomb = {"type": "string", "allOf": [{"pattern": f"a{{{count}}}"} for count in range(60)]}
    with pytest.raises(ConfigError, match=r"60 patterns .* are too complex together"):
        pipe.generate("?", structured_output_config=S(json_schema=json.dumps(bomb)))
    assert pipe.generate("?") == "abc"


def test_a_grammar_needs_a_stop_token(compiler: GrammarCompiler) -> None:
    with pytest.raises(ConfigError, match="set stop_token_ids"):
        compiler.constraint(GenerationConfig(structured_output_config=S(regex="a")), PerfMetrics())


def test_a_tokenizer_of_openvino_models_has_masks(golden: Any, tmp_path: Path) -> None:
    tokenizer = Tokenizer(golden("qwen2").write(tmp_path))
    stop, size = tokenizer.get_eos_token_id(), tokenizer.vocabulary_size
    config = GenerationConfig(eos_token_id=stop, structured_output_config=S(regex="Hello, é!"))
    constraint = GrammarCompiler(tokenizer).constraint(config, PerfMetrics())
    assert constraint is not None
    for token in tokenizer.encode("Hello, é!").input_ids.data[0].tolist():
        assert np.isfinite(constraint.process(np.zeros(size, np.float32))[token])
        constraint.advance(token)
    assert np.isfinite(constraint.process(np.zeros(size, np.float32))).nonzero()[0] == [stop]


def test_metrics_have_the_compilers_times(speaks: Speaks) -> None:
    pipe = speaks("abc")
    plain = pipe.generate(["?"]).perf_metrics
    assert plain.get_grammar_compile_time().as_tuple() == (-1, -1, -1, -1)
    assert plain.get_grammar_compiler_init_times() == {}
    one, two = (
        pipe.generate(["?"], structured_output_config=S(regex="a")).perf_metrics for _ in "12"
    )
    total = one + two + plain
    assert len(total.raw_metrics.grammar_compile_times) == 2
    mean, _, least, most = total.get_grammar_compile_time().as_tuple()
    assert 0 < least <= mean <= most
    assert [*total.get_grammar_compiler_init_times()] == ["llguidance"]
    assert one.get_grammar_compiler_init_times() == two.get_grammar_compiler_init_times()


def test_masks_are_computed_while_the_device_runs(
    speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    for owner, name in (
        (MemoryRequest, "start_async"),
        (MemoryRequest, "wait"),
        (GrammarConstraint, "prepare"),
    ):
        original: Callable[..., Any] = getattr(owner, name)

        def recorded(*given: Any, _name: str = name, _run: Any = original) -> Any:
            events.append(_name)
            return _run(*given)

        monkeypatch.setattr(owner, name, recorded)
    speaks("ab").generate("?", structured_output_config=S(regex="ab"))
    # The first mask belongs to the compilation; the sampler finds each mask ready.
    assert events == ["prepare", *["start_async", "prepare", "wait", "prepare"] * 3]


def test_a_constraint_forks(constrain: Constrain) -> None:
    one = constrain(S(regex="a(b|c)"))
    a, b, c = ids_of("abc")
    one.advance(a)
    other = one.fork()
    one.advance(b)
    other.advance(c)
    for constraint in (one, other):
        assert constraint.process(np.zeros(280, np.float32)).argmax() == EOS


def test_speech_has_no_grammars() -> None:
    config = WhisperGenerationConfig(
        max_new_tokens=1, is_multilingual=False, structured_output_config=S(regex="a")
    )
    with pytest.raises(ConfigError, match="structured_output_config is not supported for speech"):
        config.validate()
