"""Inputs in addition to embeddings: image features, and per-layer inputs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.errors import TensorError
from npuw_layer.traits.images.trait import spread

from .conftest import close

CHUNKED = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
PREFIXES = {
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 32,
    **CHUNKED,
}
PIECES = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES", **CHUNKED}


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 3))
def test_each_marked_token_has_the_next_row(marked: list[bool], levels: int) -> None:
    marks = np.array(marked, bool)
    rows = np.random.default_rng(1).integers(1, 9, (int(marks.sum()), levels, 2))
    found = spread(marks, rows)
    assert np.array_equal(found[marks], rows)
    assert found.shape == (len(marked), levels, 2)
    assert not found[~marks].any()


def test_without_an_image_any_number_of_rows_is_allowed() -> None:
    for count in (0, 1, 7):
        assert not spread(np.zeros(4, bool), np.ones((count, 3, 2))).any()


@pytest.mark.long
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.lists(st.integers(1, 99), max_size=2, unique=True))
def test_a_prompt_may_be_cut_anywhere_even_in_an_image(qwen3, seed: int, cuts: list[int]) -> None:
    whole, cut = qwen3.begin(**PIECES), qwen3.begin(**PIECES)
    marks = np.random.RandomState(seed).rand(1, 160) < 0.5
    for talk in (whole, cut):
        talk.drawn.marks = marks
    places = sorted({0, 100, *cuts})
    for begin, end in pairwise(places):
        found = cut.tell(begin, end)
    assert close(found, whole.tell(0, 100))


def test_images_may_come_token_by_token(qwen3) -> None:
    """Generate takes them, too, where NPUW passes zeros."""
    talk = qwen3.begin(**PIECES)
    talk.tell(0, 20)
    for number in range(20, 34):
        talk.tell(number)
    talk.tell(34, 99)
    assert close(talk.tell(99), qwen3.goldens["logits_100"])


def test_features_affect_the_logits(qwen3, gemma3n) -> None:
    for model, name in (
        (qwen3, "visual_pos_masks"),
        (qwen3, "deepstack_visual_embeds"),
        (gemma3n, "per_layer_inputs"),
    ):
        talk = model.begin(**(PIECES if model is qwen3 else CHUNKED))
        given = talk.drawn.inputs(0, 100)[name]
        assert not close(
            talk.tell(0, 100, **{name: np.zeros_like(given)}), model.goldens["logits_100"]
        ), name


@pytest.mark.long
def test_a_prefix_with_another_image_is_not_reused(qwen3) -> None:
    """Blocks have 32 tokens; the image is in the first two."""
    talk = qwen3.begin(**PREFIXES)
    talk.tell(0, 100)
    talk.request.reset_state()
    assert close(talk.tell(0, 100), qwen3.goldens["logits_100"])
    assert talk.cached_tokens == 96
    talk.request.reset_state()
    talk.drawn.features = talk.drawn.features.copy()
    talk.drawn.features[2, 33] += 1
    talk.tell(0, 100)
    assert talk.cached_tokens == 32


EMBEDS, MARKS = "deepstack_visual_embeds", "visual_pos_masks"
SAME = {MARKS: np.array([[True, False, True]])}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({EMBEDS: np.zeros((3, 1, 96), "f4"), **SAME}, "marks 2 tokens, but .* has rows for 1"),
        ({EMBEDS: np.zeros((3, 3, 96), "f4"), **SAME}, "marks 2 tokens, but .* has rows for 3"),
        ({EMBEDS: np.zeros((2, 2, 96), "f4"), **SAME}, r"not f32 \[3, tokens of images, 96\]"),
        ({EMBEDS: np.zeros((3, 2, 95), "f4"), **SAME}, r"not f32 \[3, tokens of images, 96\]"),
        ({EMBEDS: np.zeros((2, 96), "f4"), **SAME}, r"not f32 \[3, tokens of images, 96\]"),
        ({EMBEDS: np.zeros((3, 2, 96), "f8"), **SAME}, f"{EMBEDS} is float64"),
        ({MARKS: np.zeros((1, 2), bool)}, f"inputs_embeds has 3 tokens, but {MARKS} has 2"),
        ({MARKS: np.zeros((1, 3), "i8")}, rf"{MARKS} is int64 .* not boolean \[1, tokens\]"),
        ({MARKS: np.zeros((3, 1), bool)}, r"not boolean \[1, tokens\]"),
    ],
)
def test_features_that_do_not_fit_are_rejected(qwen3, changed, problem: str) -> None:
    with pytest.raises(TensorError, match=problem):
        qwen3.begin(**PIECES).tell(0, 3, **changed)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((1, 3, 5, 16), r"not f32 \[1, tokens, 4, 16\]"),
        ((1, 3, 64), r"not f32 \[1, tokens, 4, 16\]"),
        ((1, 2, 4, 16), "inputs_embeds has 3 tokens, but per_layer_inputs has 2"),
    ],
)
def test_per_layer_rows_that_do_not_fit_are_rejected(gemma3n, shape, problem: str) -> None:
    with pytest.raises(TensorError, match=problem):
        gemma3n.begin(**CHUNKED).tell(0, 3, per_layer_inputs=np.zeros(shape, "f4"))


@pytest.mark.parametrize("name", ["qwen3_vl", "gemma3n"])
def test_all_inputs_of_the_model_are_required(models, name: str) -> None:
    model = models(name)
    talk = model.begin(**(PIECES if name == "qwen3_vl" else CHUNKED))
    given = dict(talk.drawn.inputs(0, 3))
    for missing in model.beside:
        rest = {key: value for key, value in given.items() if key != missing}
        with pytest.raises(TensorError, match=f"inputs are missing: {missing}"):
            talk.request.infer(rest)


def test_an_imported_model_takes_images_again(qwen3, core, tmp_path) -> None:
    qwen3.compiled(**PIECES).export_model(tmp_path / "model.blob")
    imported = core.import_model(
        tmp_path / "model.blob", "NPU", {"WEIGHTS_PATH": qwen3.path.with_suffix(".bin")}
    )
    assert close(qwen3.of(imported).tell(0, 100), qwen3.goldens["logits_100"])
