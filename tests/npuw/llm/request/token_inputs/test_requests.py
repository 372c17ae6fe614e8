"""Requests whose tokens are embeddings: accepted and rejected inputs, stored tokens, rereading."""

from __future__ import annotations

import numpy as np
import pytest
from tests.npuw.forged_state import with_fitting_digest

from npuw_layer.errors import ModelError, PromptTooLong, StateError, TensorError

from .conftest import close

CACHING = {
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 8,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
}
FULL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_ON_FULL": "TRUNCATE"}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
def test_the_prefix_cache_compares_embeddings_and_positions(models, name: str) -> None:
    model = models(name)
    first, again, other, moved = (model.begin(**CACHING) for _ in range(4))
    assert close(first.tell(0, 100), model.goldens["logits_100"])
    assert close(again.tell(0, 100), model.goldens["logits_100"])
    assert (first.cached_tokens, again.cached_tokens) == (0, 96)

    embeds = other.drawn.embeds[:, :100].copy()
    embeds[0, 20, 5] += 0.25
    logits = other.tell(0, 100, inputs_embeds=embeds)
    assert other.cached_tokens == 16, "up to the block with another embedding"
    assert close(logits, model.begin().tell(0, 100, inputs_embeds=embeds))

    positions = moved.drawn.positions[..., :100].copy()
    positions[..., 40:] += 3
    logits = moved.tell(0, 100, position_ids=positions)
    assert moved.cached_tokens == 40, "up to the moved token"
    assert close(logits, model.begin().tell(0, 100, position_ids=positions))


def test_a_full_cache_reads_the_rest_again(llava) -> None:
    """The caller may overwrite its embeddings meanwhile: rows that may be needed are copied."""
    talk, fresh = llava.begin(**FULL), llava.begin()
    prompt = talk.drawn.embeds[:, :60].copy()
    talk.tell(0, 60, inputs_embeds=prompt)
    prompt[...] = 0
    for number in range(60, 128):
        logits = talk.tell(number)
    kept = [*range(4), *range(99, 128)]  # sinks, the recent ones of the first 127, and the last
    embeds = talk.drawn.embeds[:, kept]
    ones = np.ones((1, len(kept)), np.int64)
    places = np.arange(len(kept))[None]
    given = {"inputs_embeds": embeds, "attention_mask": ones, "position_ids": places}
    assert close(logits, fresh.tell(0, **given))


def test_a_saved_conversation_continues_and_is_read_again(llava, tmp_path) -> None:
    talk, other, plain = llava.begin(**FULL), llava.begin(**FULL), llava.begin()
    talk.tell(0, 60)
    talk.request.save_state(tmp_path / "talk")
    other.tell(0, 9)
    other.request.load_state(tmp_path / "talk")
    for number in range(60, 130):
        assert np.array_equal(other.tell(number), talk.tell(number))

    plain.tell(0, 60)
    plain.request.save_state(tmp_path / "plain")
    assert (tmp_path / "plain").stat().st_size < (tmp_path / "talk").stat().st_size
    plain.request.load_state(tmp_path / "talk")
    assert close(plain.tell(60), llava_at(llava, 60))


def llava_at(model, number: int) -> np.ndarray:
    """Return the logits of an uninterrupted conversation."""
    talk = model.begin()
    talk.tell(0, number)
    return talk.tell(number)


def test_unknown_tokens_cannot_be_read_again(llava, tmp_path) -> None:
    plain, talk = llava.begin(NPUW_LLM_MAX_PROMPT_LEN=64), llava.begin(**FULL)
    plain.tell(0, 60)
    plain.request.save_state(tmp_path / "plain")
    talk.request.load_state(tmp_path / "plain")
    for number in range(60, 127):
        talk.tell(number)
    with pytest.raises(StateError, match="cannot be read again"):
        talk.tell(127)


def test_a_forged_file_of_embeddings_is_rejected(llava, tmp_path) -> None:
    talk = llava.begin(**FULL)
    talk.tell(0, 20)
    talk.request.save_state(tmp_path / "talk")
    content = (tmp_path / "talk").read_bytes()
    for old, new in (
        (b'said.inputs_embeds": {"dtype": "F32"', b'said.inputs_embeds": {"dtype": "F16"'),
        (b"said.inputs_embeds", b"said.inputs_Embeds"),
        (b'"shape": [20, 96]', b'"shape": [96, 20]'),
        (b'"shape": [20, 96]', b'"shape": [19, 96]'),
    ):
        assert old in content
        (tmp_path / "bad").write_bytes(with_fitting_digest(content.replace(old, new)))
        with pytest.raises(StateError, match="bad: not a saved conversation"):
            talk.request.load_state(tmp_path / "bad")
    assert close(talk.tell(20), llava_at(llava, 20))


def test_inputs_may_be_set_by_name_and_be_npu_memory(llava) -> None:
    compiled = llava.compiled()
    talk = llava.of(compiled)
    given = talk.drawn.inputs(0, 100)
    embeds = compiled.get_context().create_tensor("f32", (1, 100, 96))
    embeds.copy_from(given["inputs_embeds"])
    talk.request.set_tensor("inputs_embeds", embeds)
    for name in ("attention_mask", "position_ids"):
        talk.request.set_tensor(name, given[name])
    assert close(talk.request.infer()["logits"][0, -1], llava.goldens["logits_100"])


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"inputs_embeds": np.zeros((1, 3, 95), "f4")}, r"not f32 \[1, tokens, 96\]"),
        ({"inputs_embeds": np.zeros((1, 3, 96), "f8")}, "inputs_embeds is float64"),
        ({"inputs_embeds": np.zeros((1, 2, 96), "f4")}, "has 2 tokens, but position_ids has 3"),
        ({"inputs_embeds": np.zeros((1, 96), "f4")}, r"not f32 \[1, tokens, 96\]"),
        ({"input_ids": np.zeros((1, 3), "i8")}, "no input 'input_ids'; the inputs are inputs_e"),
        ({"position_ids": np.zeros((3, 1, 3), "i8")}, r"not i64 \[1, tokens\]"),
        ({"attention_mask": np.ones((1, 5), "i8")}, "not 0 stored and 3 new"),
    ],
)
def test_inputs_that_do_not_fit_are_rejected(llava, changed, problem: str) -> None:
    with pytest.raises(TensorError, match=problem):
        llava.begin().tell(0, 3, **changed)


def test_with_several_position_axes_the_mask_counts_tokens(qwen) -> None:
    talk = qwen.begin()
    talk.tell(0, 40)
    with pytest.raises(TensorError, match=r"not i64 \[3, 1, tokens\]"):
        talk.tell(40, position_ids=np.full((1, 1), 40))
    with pytest.raises(TensorError, match="attention_mask has 41 positions before the 1 new ones"):
        talk.tell(40, attention_mask=np.ones((1, 42), np.int64))
    with pytest.raises(TensorError, match="has -1 positions before"):
        talk.tell(40, attention_mask=np.ones((1, 0), np.int64))
    assert close(talk.tell(0, 100), qwen.goldens["logits_100"]), "a new conversation"
    with pytest.raises(PromptTooLong):
        talk.tell(0, 129)


def test_with_several_position_axes_the_mask_must_match_the_grant(qwen) -> None:
    talk = qwen.begin(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="YES")
    talk.tell(0, 60)
    state = talk.request.query_state()[-1]
    state.state = np.array([34])
    assert state.state.data.tolist() == [34]
    with pytest.raises(TensorError, match="34 tokens are kept, so attention_mask must have"):
        talk.tell(33, 100)
    assert close(talk.tell(34, 100), qwen.goldens["logits_100"])


def test_a_history_with_images_cannot_be_truncated(qwen) -> None:
    with pytest.raises(ModelError, match=r"TRUNCATE: position_ids have several axes .*use ERROR"):
        qwen.begin(**FULL)


def test_a_cache_that_slides_takes_embeddings(llava, qwen) -> None:
    for model in (llava, qwen):
        talk = model.begin(NPUW_LLM_MAX_PROMPT_LEN=64, NPUW_LLM_ON_FULL="SLIDE")
        talk.tell(0, 60)
        for number in range(60, 100):
            logits = talk.tell(number)
        assert close(logits, model.goldens["logits_100"]), "no token was replaced yet"
        assert close(talk.tell(0, 100), model.goldens["logits_100"]), "steps read the last tokens"
        for number in range(100, 150):
            logits = talk.tell(number)
        assert np.isfinite(logits).all()


def test_batched_conversations_require_ids(llava) -> None:
    with pytest.raises(
        ModelError, match=r"support only ids.*the model has inputs_embeds f32 \[1, tok"
    ):
        llava.compiled().create_batching()
    with pytest.raises(ModelError, match="the model has inputs_embeds"):
        llava.compiled(NPUW_LLM_BATCH_SLOTS="1,2")


WHOLE = {"NPUW_LLM_PREFILL_HINT": "STATIC"}


class TestTokensOfImages:
    """Tokens of an image attend to one another in Gemma 3, if exported so."""

    @pytest.mark.matrix
    @pytest.mark.parametrize(
        "options",
        [
            {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32},
            {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES", **WHOLE},
        ],
    )
    def test_prompts_in_chunks_are_rejected(self, models, options) -> None:
        with pytest.raises(ModelError, match="set NPUW_LLM_PREFILL_HINT to STATIC"):
            models("gemma3_types").begin(**options)

    def test_token_types_affect_logits_and_require_a_complete_prompt(self, models) -> None:
        model = models("gemma3_types")
        talk = model.begin(**WHOLE)
        expected = model.goldens["logits_100"]
        none = np.zeros((1, 100), np.int64)
        assert not close(talk.tell(0, 100, token_type_ids=none), expected)
        with pytest.raises(TensorError, match="token_type_ids are not 0 for 1 tokens after 100"):
            talk.tell(100, token_type_ids=np.ones((1, 1), np.int64))
        with pytest.raises(TensorError, match="token_type_ids are not 0 for 1 tokens after 0"):
            talk.tell(0, 1, token_type_ids=np.ones((1, 1), np.int64))
        assert close(talk.tell(0, 100), expected)

    def test_prompts_are_read_whole_without_chunks(self, models) -> None:
        model = models("gemma3_types")
        talk = model.begin()
        assert close(talk.tell(0, 100), model.goldens["logits_100"])
        assert talk.request.execution_report()["prefill"] == "prefill_128"

    def test_steps_of_a_long_prompt_read_no_image(self, models) -> None:
        options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_ON_FULL": "SLIDE"}
        talk = models("gemma3_types").begin(**options, **WHOLE)
        types = np.ones((1, 100), np.int64)
        with pytest.raises(
            TensorError, match=r"36 tokens after 64 .* within NPUW_LLM_MAX_PROMPT_LE"
        ):
            talk.tell(0, 100, token_type_ids=types)
        types[0, 64:] = 0
        assert np.isfinite(talk.tell(0, 100, token_type_ids=types)).all()

    def test_models_that_do_not_read_token_types_accept_them(self, models) -> None:
        model = models("gemma3")
        talk = model.begin(NPUW_LLM_PREFILL_CHUNK_SIZE=32)
        zeros = np.zeros((1, 100), np.int64)
        assert close(talk.tell(0, 100, token_type_ids=zeros), model.goldens["logits_100"])
