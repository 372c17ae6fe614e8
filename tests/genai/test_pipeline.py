"""generate: inputs, results and finish reasons."""

from __future__ import annotations

import json

import numpy as np
import openvino
import pytest

from genai_layer import (
    ChatHistory,
    ConfigError,
    DecodedResults,
    EncodedResults,
    GenerationConfig,
    GenerationFinishReason,
    LLMPipeline,
    ModelError,
    PromptError,
    PropertyError,
    RuntimeFailure,
    Tensor,
    TokenizedInputs,
    Tokenizer,
)
from genai_layer.testing.memory_runtime import MemoryCore, chain
from genai_layer.testing.toy import (
    ASSISTANT,
    EOS,
    answering_core,
    ids_of,
    make_tokenizer,
    word_id,
)

Reason = GenerationFinishReason


def finish(results: DecodedResults | EncodedResults) -> GenerationFinishReason:
    return results.finish_reasons[0]


class TestInputsAndResults:
    def test_a_text_returns_a_text(self, speaks) -> None:
        assert speaks("hey").generate("who?") == "hey"
        assert speaks("hey")("who?") == "hey"

    def test_a_list_of_one_text_returns_results(self, speaks) -> None:
        results = speaks("hey").generate(["who?"])
        assert isinstance(results, DecodedResults)
        assert (str(results), results.scores, finish(results)) == ("hey", [0.0], Reason.STOP)

    def test_a_history_returns_results_and_is_unchanged(self, speaks) -> None:
        history = ChatHistory([{"role": "user", "content": "who?"}])
        assert speaks("hey").generate(history).texts == ["hey"]
        assert len(history) == 1

    def test_a_history_may_end_with_another_role(self, speaks) -> None:
        history = ChatHistory([{"role": "system", "content": "result: 4"}])
        assert speaks("hey").generate(history).texts == ["hey"]

    def test_ids_return_ids_with_the_stop_token(self, speaks) -> None:
        ids = np.array([[ASSISTANT]], np.int64)
        pipe = speaks("hey")
        results = pipe.generate(ids)
        assert isinstance(results, EncodedResults)
        assert results.tokens == [[*ids_of("hey"), EOS]]
        assert pipe.generate(TokenizedInputs(ids, np.ones_like(ids))).tokens == results.tokens

    @pytest.mark.parametrize("make", [np.asarray, Tensor, openvino.Tensor, np.ndarray.tolist])
    def test_ids_may_be_an_array_a_tensor_or_lists(self, speaks, make) -> None:
        ids = make(np.array([[ASSISTANT]], np.int64))
        pipe = speaks("hey")
        assert pipe.generate(ids).tokens == [[*ids_of("hey"), EOS]]
        assert pipe.generate(TokenizedInputs(ids, make(np.ones((1, 1), np.int64)))).tokens == [
            [*ids_of("hey"), EOS]
        ]

    def test_read_only_ids_are_accepted(self, speaks) -> None:
        ids = np.array([[ASSISTANT]], np.int64)
        ids.flags.writeable = False
        assert finish(speaks("hey").generate(ids)) is Reason.STOP

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ([], "pass a text, or a list of at least one text"),
            (ChatHistory(), "history is empty"),
            (np.zeros((1, 0), np.int64), "the prompt is empty"),
            (np.zeros((0, 3), np.int64), r"not i64 \[prompts, n\]"),
            (TokenizedInputs([[5, 6]], [[1]]), "attention_mask has the shape"),
            (TokenizedInputs([[5, 6]], [[0, 0]]), "the prompt is empty"),
            (np.zeros((1, 3), np.int32), "not i64"),
            (Tensor([5]), r"int64 \[1\], not"),
            ([[5], [6, 7]], "different lengths"),
            ([[]], "the prompt is empty"),
            (np.array([[5, 99999]], np.int64), "token id 99999: the vocabulary has"),
            (np.array([[-1]], np.int64), "token id -1"),
        ],
    )
    def test_bad_inputs_are_rejected(self, speaks, inputs, message) -> None:
        with pytest.raises(PromptError, match=message):
            speaks("hey").generate(inputs)

    def test_an_empty_text_is_rejected_without_a_template(self, speaks) -> None:
        with pytest.raises(PromptError, match="the prompt is empty"):
            speaks("hey").generate("", apply_chat_template=False)

    def test_a_text_is_one_user_turn_unless_apply_chat_template_is_false(self, speaks) -> None:
        pipe = speaks("hey")
        templated = pipe.generate(["ab"]).perf_metrics.get_num_input_tokens()
        plain = pipe.generate(["ab"], apply_chat_template=False, max_new_tokens=1)
        assert (templated, plain.perf_metrics.get_num_input_tokens()) == (4, 2)


class TestSeveralTexts:
    def test_each_prompt_of_a_list_has_its_text(self, speaks) -> None:
        results = speaks("hey").generate(["?", "and?"], max_new_tokens=2)
        assert (results.texts, len(results.scores)) == (["he", "he"], 2)
        assert results.perf_metrics.get_num_generated_tokens() == 4

    def test_rows_of_ids_are_continued_without_their_padding(self, speaks) -> None:
        inputs = TokenizedInputs([[0, ASSISTANT], [5, ASSISTANT]], [[0, 1], [1, 1]])
        results = speaks("hey").generate(inputs)
        assert results.tokens == [[*ids_of("hey"), EOS]] * 2
        assert results.perf_metrics.get_num_input_tokens() == 3

    def test_several_sequences_of_a_text_are_results(self, speaks) -> None:
        for method in ({"do_sample": True}, {"num_beams": 3}):
            results = speaks("hey").generate(
                "?", num_return_sequences=2, max_new_tokens=3, **method
            )
            assert len(results.texts) == 2
        assert speaks("hey").generate("?", num_beams=3, max_new_tokens=3) == "hey"

    def test_echo_returns_the_prompt_too(self, speaks) -> None:
        pipe, seen = speaks("hey"), list[str]()
        plain = {"apply_chat_template": False, "echo": True}
        text = pipe.generate("ab", streamer=seen.append, max_new_tokens=2, **plain)
        assert text.startswith("ab")
        assert "".join(seen) == text
        nothing = pipe.generate(["ab"], max_new_tokens=0, **plain)
        assert (nothing.texts, finish(nothing)) == (["ab"], Reason.NONE)
        ids = pipe.generate([[ASSISTANT]], echo=True)
        assert ids.tokens == [[ASSISTANT, *ids_of("hey"), EOS]]

    @pytest.mark.parametrize(
        ("inputs", "parameters", "remedy"),
        [
            (["?", "?"], {}, "2 prompts are given; pass one"),
            (["?"], {"num_beams": 2}, "set num_beams to 1"),
            (["?"], {"do_sample": True, "num_return_sequences": 2}, "set num_return_sequences"),
        ],
    )
    def test_a_streamer_needs_one_text(self, speaks, inputs, parameters, remedy) -> None:
        with pytest.raises(ConfigError, match=remedy):
            speaks("hey").generate(inputs, streamer=print, max_new_tokens=2, **parameters)


class TestEnds:
    def test_the_end_of_turn_token_stops_and_has_no_text(self, speaks) -> None:
        results = speaks("hey").generate(["?"])
        assert (results.texts, finish(results)) == (["hey"], Reason.STOP)

    def test_max_new_tokens_ends_a_generation(self, speaks) -> None:
        results = speaks("hey").generate(["?"], max_new_tokens=2)
        assert (results.texts, finish(results)) == (["he"], Reason.LENGTH)

    def test_max_length_counts_the_prompt(self, speaks) -> None:
        results = speaks("hey").generate(["?"], max_length=5)
        assert results.texts == ["he"]

    def test_ignore_eos_continues_to_the_limit(self, speaks) -> None:
        results = speaks("hey").generate(["?"], ignore_eos=True, max_new_tokens=7)
        assert results.perf_metrics.get_num_generated_tokens() == 7
        assert finish(results) is Reason.LENGTH

    def test_min_new_tokens_defers_the_end(self, speaks) -> None:
        results = speaks("hey").generate(["?"], min_new_tokens=6, max_new_tokens=20)
        assert results.perf_metrics.get_num_generated_tokens() >= 6

    def test_a_stop_token_of_the_caller_ends_a_generation(self, speaks) -> None:
        stop = ids_of("y")[0]
        results = speaks("hey you"[:3]).generate(["?"], stop_token_ids={stop})
        assert (results.texts, finish(results)) == (["hey"], Reason.STOP)

    def test_a_stop_string_is_cut_off_or_kept(self, speaks) -> None:
        pipe = speaks("one, twa")
        results = pipe.generate(["?"], stop_strings={", t"})
        assert (results.texts, finish(results)) == (["one"], Reason.STOP)
        assert pipe.generate("?", stop_strings=", t", include_stop_str_in_output=True) == "one, t"

    def test_a_stop_string_is_found_however_it_is_tokenised(self, speaks) -> None:
        pipe = speaks([word_id("mach"), word_id("ines"), *ids_of("!")])
        results = pipe.generate(["?"], stop_strings={"machines"})
        assert (results.texts, finish(results)) == ([""], Reason.STOP)

    def test_a_stop_string_inside_a_token_is_cut_exactly(self, speaks) -> None:
        pipe = speaks([*ids_of("a"), word_id(" machine"), *ids_of("!")])
        assert pipe.generate("?", stop_strings={"chi"}) == "a ma"

    def test_a_stop_string_with_the_last_allowed_token_counts(self, speaks) -> None:
        results = speaks("hey").generate(["?"], stop_strings={"he"}, max_new_tokens=2)
        assert (results.texts, finish(results)) == ([""], Reason.STOP)


class TestConfiguration:
    def test_keywords_override_a_config_and_leave_it_unchanged(self, speaks) -> None:
        pipe = speaks("hey")
        config = GenerationConfig(max_new_tokens=1)
        assert pipe.generate("?", config, max_new_tokens=2) == "he"
        assert config.max_new_tokens == 1
        assert pipe.generate("?") == "hey"

    def test_the_pipelines_stop_tokens_are_inherited(self, speaks) -> None:
        assert speaks("hey").generate("?", GenerationConfig(max_new_tokens=99)) == "hey"

    def test_a_rejected_default_keeps_the_previous_one(self, speaks) -> None:
        pipe = speaks("hey")
        pipe.set_generation_config(GenerationConfig(max_new_tokens=2))
        with pytest.raises(ConfigError):
            pipe.set_generation_config(GenerationConfig(max_new_tokens=0))
        assert pipe.generate("?") == "he"
        assert pipe.get_generation_config().eos_token_id == EOS

    def test_a_method_to_come_is_rejected_before_a_generation(self, speaks) -> None:
        pipe = speaks("hey")
        config = pipe.get_generation_config()
        config.tree_depth, config.num_assistant_tokens = 2, 3
        with pytest.raises(ConfigError, match="tree_depth = 2 is not supported; set it to 0"):
            pipe.generate("?", config)
        assert pipe.generate("?", num_assistant_tokens=2) == "hey", "there is no draft model"

    def test_neutral_values_change_nothing(self, speaks) -> None:
        pipe = speaks("hey")
        config = pipe.get_generation_config()
        config.num_beams, config.echo, config.num_return_sequences = 1, False, 1
        assert pipe.generate("?", config) == "hey"

    def test_an_unknown_parameter_names_the_nearest_one(self, speaks) -> None:
        with pytest.raises(ConfigError, match="did you mean max_new_tokens"):
            speaks("hey").generate("?", max_new_token=3)

    def test_the_folders_generation_config_is_the_default(self, folder) -> None:
        (folder / "generation_config.json").write_text(json.dumps({"max_new_tokens": 2}))
        pipe = LLMPipeline(folder, "CPU", core=answering_core("hey"))
        assert pipe.generate("?") == "he"

    def test_sampling_is_reproducible_and_ends_the_same(self, speaks) -> None:
        pipe = speaks("hey")
        options = {"do_sample": True, "temperature": 50.0, "max_new_tokens": 8}
        texts = {pipe.generate("?", rng_seed=seed, **options) for seed in (1, 1, 1, 2)}
        assert len(texts) == 2


class TestLoading:
    @pytest.mark.parametrize(
        ("missing", "message"),
        [("tokenizer.json", "no tokenizer.json"), ("config.json", "neither openvino_model.xml")],
    )
    def test_a_missing_file_is_named(self, folder, missing, message) -> None:
        (folder / missing).unlink()
        with pytest.raises(ModelError, match=message):
            LLMPipeline(folder, "CPU", core=answering_core("hey"))

    def test_a_missing_folder_is_named(self, tmp_path) -> None:
        with pytest.raises(ModelError, match="nowhere: no such folder"):
            LLMPipeline(tmp_path / "nowhere", "CPU")

    def test_a_folder_with_an_impossible_name_is_named(self, folder) -> None:
        """The error of an inaccessible folder takes the same path."""
        for make in (Tokenizer, lambda path: LLMPipeline(path, Tokenizer(folder), "CPU")):
            with pytest.raises(ModelError, match=r"xx.*: File name too long"):
                make("x" * 300)

    @pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "config.json"])
    @pytest.mark.parametrize("content", ["", "{", "[]", "null", "{'a': 1}", '"text"'])
    def test_a_broken_file_is_named(self, folder, name, content) -> None:
        (folder / name).write_text(content)
        with pytest.raises(ModelError, match=name.replace(".", r"\.")):
            LLMPipeline(folder, "CPU", core=answering_core("hey"))

    def test_an_ir_is_preferred_to_weights(self, folder) -> None:
        seen: list[str] = []

        class Watching(MemoryCore):
            def compile_model(self, model, device_name, config, /):
                seen.append(model.name)
                return super().compile_model(model, device_name, config)

        core = Watching(np.zeros((9, 9), np.float32))
        LLMPipeline(folder, "CPU", core=core)
        (folder / "openvino_model.xml").write_text("<net/>")
        LLMPipeline(folder, "CPU", core=core)
        assert seen == [folder.name, "openvino_model.xml"]

    def test_an_unknown_device_lists_the_available_ones(self, folder) -> None:
        with pytest.raises(PropertyError, match=r"'TPU': no runtime is inst.*; available: .*CPU"):
            LLMPipeline(folder, "TPU")

    def test_lower_case_properties_are_rejected(self, folder) -> None:
        with pytest.raises(PropertyError, match="'max_new_tokens' is not supported"):
            LLMPipeline(folder, "CPU", core=answering_core("hey"), max_new_tokens=3)

    def test_none_is_rejected_as_a_value(self, folder) -> None:
        with pytest.raises(PropertyError, match="CACHE_DIR is None"):
            LLMPipeline(folder, "CPU", core=answering_core("hey"), CACHE_DIR=None)

    def test_the_runtimes_error_reaches_the_user(self, folder) -> None:
        class Refuses(MemoryCore):
            def compile_model(self, model, device_name, config, /):
                raise RuntimeError("out of luck")

        with pytest.raises(RuntimeFailure, match="out of luck"):
            LLMPipeline(folder, "CPU", core=Refuses(np.eye(2)))

    @pytest.mark.parametrize(
        ("precision", "cause", "remedy"),
        [
            ("f16", "activations overflowed f16", "set INFERENCE_PRECISION_HINT to f32 or bf16"),
            ("bf16", "weights are not finite", "check the model's files"),
            ("f32", "weights are not finite", "check the model's files"),
            (None, "weights are not finite", "check the model's files"),
        ],
    )
    def test_nan_logits_are_rejected(self, folder, precision, cause, remedy) -> None:
        first, second = ids_of("he")
        table = chain([ASSISTANT, first, second], make_tokenizer().get_vocab_size())
        table[second] = np.nan
        hint = {} if precision is None else {"INFERENCE_PRECISION_HINT": precision}
        pipe = LLMPipeline(folder, "CPU", core=MemoryCore(table), **hint)
        assert pipe.generate("?", max_new_tokens=2) == "he"
        with pytest.raises(RuntimeFailure) as raised:
            pipe.generate("?", max_new_tokens=3)
        assert str(raised.value) == (
            f"the logits after 5 tokens are NaN: {cause}, or the model has no positions that far; "
            f"{remedy}, else request fewer tokens"
        )

    @pytest.mark.parametrize("policy", ["TRUNCATE", "SLIDE"])
    def test_a_policy_that_is_set_is_no_remedy_for_nan_logits(self, folder, policy) -> None:
        table = np.full((make_tokenizer().get_vocab_size(),) * 2, np.nan)
        pipe = LLMPipeline(folder, "NPU", core=MemoryCore(table), NPUW_LLM_ON_FULL=policy)
        with pytest.raises(RuntimeFailure) as raised:
            pipe.generate("?", max_new_tokens=3)
        assert ("set NPUW_LLM_ON_FULL=TRUNCATE" in str(raised.value)) == (policy == "SLIDE")
