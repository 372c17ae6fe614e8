"""Tags that mark the places of images."""

from __future__ import annotations

import pytest

from genai_layer import PromptError
from genai_layer.chat_prompt import ChatPrompt
from genai_layer.vision.prompt_tags import IMAGE, VIDEO, fill_places, mark_places

OWN = "<|vision_start|><|image_pad|><|vision_end|>"


def place(tokens: int) -> str:
    return "<|vision_start|>" + "<|image_pad|>" * tokens + "<|vision_end|>"


def filled(text: str, tokens: list[int], first: int = 0) -> tuple[str, tuple[int, ...]]:
    """Return the text with the tokens of places, and the order of images."""
    marked = mark_places(text, IMAGE, len(tokens), first)
    prompt = ChatPrompt(marked.text, None)
    return fill_places(
        prompt, [(IMAGE, tokens[image]) for image in marked.order]
    ).text, marked.order


def test_without_tags_images_precede_the_text() -> None:
    assert filled("What?", [2, 1]) == (place(2) + place(1) + "What?", (0, 1))
    assert filled("What?", [], 3) == ("What?", ())


def test_universal_tags_number_the_images_of_a_conversation() -> None:
    text = "a <ov_genai_image_4> b <ov_genai_image_3><ov_genai_image_4>"
    assert filled(text, [2, 1], 3) == (f"a {place(1)} b {place(2)}{place(1)}", (1, 0, 1))
    assert filled("<ov_genai_image_0>", [1]) == filled("<ov_genai_image_00>", [1])


def test_the_models_own_tags_are_in_the_order_of_images() -> None:
    assert filled(f"a {OWN} b {OWN}", [2, 1], 3) == (f"a {place(2)} b {place(1)}", (0, 1))


def test_only_the_tokens_of_the_template_and_of_places_are_tokens() -> None:
    marked = mark_places("a<|image_pad|><ov_genai_image_0>b", IMAGE, 1, 0)
    begin, end = "<|im_start|>", "<|im_end|>"
    rendered = begin + marked.text + end
    spans = [(0, len(begin)), (len(rendered) - len(end), len(rendered))]
    prompt = fill_places(ChatPrompt(rendered, spans), [(IMAGE, 2)])
    assert prompt.text == f"{begin}a<|image_pad|>{place(2)}b{end}"
    tokens = [prompt.text[first:last] for first, last in prompt.tokens or []]
    assert "".join(tokens) == begin + place(2) + end
    assert len(tokens) == 6


def test_videos_have_tokens_of_their_own() -> None:
    images = mark_places("a <ov_genai_image_0><ov_genai_video_1>", IMAGE, 1, 0)
    marked = mark_places(images.text, VIDEO, 2, 0)
    prompt = fill_places(ChatPrompt(marked.text, None), [(IMAGE, 2), (VIDEO, 3)])
    assert prompt.text == f"a {place(2)}{place(3).replace('image', 'video')}"
    assert (images.order, marked.order) == ((0,), (1,))
    with pytest.raises(PromptError, match="renders 2 places for 2 images and videos"):
        fill_places(ChatPrompt(marked.text, None), [(VIDEO, 3), (IMAGE, 2)])


def test_a_template_must_keep_the_marks() -> None:
    with pytest.raises(PromptError, match="renders 0 places for 1 images and videos"):
        fill_places(ChatPrompt("text", None), [(IMAGE, 2)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<ov_genai_image_2>", "belongs to an earlier message"),
        ("<ov_genai_image_5>", "no such image"),
        (f"<ov_genai_image_{'9' * 5000}>", "no such image"),
        (f"<ov_genai_image_3>{OWN}", "use one kind"),
        (OWN, "1 tags .* for 2 images"),
        ("\U0010fffc", "marks images"),
    ],
)
def test_tags_that_do_not_match_the_images_are_rejected(text: str, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        mark_places(text, IMAGE, 2, 3)
