"""Messages of a chat with their images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genai_layer import PromptError
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.patches import Grid
from genai_layer.vision.prompt_tags import IMAGE, VIDEO
from genai_layer.vision.prompts import Turn, mark, turns_of

ONE, TWO, THREE = (
    EncodedVisual(IMAGE, Grid(1, n), np.zeros((n, 4), np.float32)) for n in (1, 2, 3)
)


FILM, CLIP = (EncodedVisual(VIDEO, Grid(1, 1, n), np.zeros((n, 4), np.float32)) for n in (2, 3))
MARK = IMAGE.mark
SCENE = VIDEO.mark


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def test_images_belong_to_the_last_user_message_and_stay_with_it() -> None:
    messages = [{"role": "system", "content": "s"}, user("a")]
    first = turns_of(messages, [], [ONE])
    assert [turn.visuals for turn in first] == [(), (ONE,)]
    later = turns_of([*messages, assistant("x"), user("b")], first, [TWO, THREE])
    assert [turn.visuals for turn in later] == [(), (ONE,), (), (TWO, THREE)]


def test_a_changed_message_forgets_its_images_and_those_after_it() -> None:
    earlier = [Turn(user("a"), (ONE,)), Turn(assistant("x")), Turn(user("b"), (TWO,))]
    found = turns_of([user("a"), assistant("y"), user("b")], earlier, [])
    assert [turn.visuals for turn in found] == [(ONE,), (), ()]


def test_the_same_chat_takes_other_images() -> None:
    earlier = [Turn(user("a"), (ONE,))]
    assert turns_of([user("a")], earlier, [TWO])[0].visuals == (TWO,)
    assert turns_of([user("a")], earlier, [])[0].visuals == (ONE,)


def test_images_are_numbered_across_messages() -> None:
    turns = [
        Turn(user("a"), (ONE, TWO)),
        Turn(assistant("<ov_genai_image_0>")),
        Turn(user("b <ov_genai_image_2>"), (THREE,)),
    ]
    messages, images = mark(turns)
    texts = [message["content"] for message in messages]
    assert texts == [MARK + MARK + "a", "<ov_genai_image_0>", f"b {MARK}"]
    assert images == [ONE, TWO, THREE]


def test_a_message_may_be_a_list_of_texts_and_images() -> None:
    image, parts = {"type": "image"}, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    turns = [Turn(user("x"), (ONE,)), Turn(user([parts[0], image, parts[1], image]), (TWO, THREE))]
    messages, images = mark(turns)
    assert messages[1]["content"] == f"a{MARK}b{MARK}"
    assert images == [ONE, TWO, THREE]


def test_videos_precede_images_and_have_numbers_of_their_own() -> None:
    video, image = {"type": "video"}, {"type": "image"}
    turns = [
        Turn(user("a"), (ONE, FILM)),
        Turn(user("b <ov_genai_image_1><ov_genai_video_1>"), (TWO, CLIP)),
        Turn(user([image, {"type": "text", "text": "c"}, video]), (THREE, FILM)),
    ]
    messages, visuals = mark(turns)
    texts = [message["content"] for message in messages]
    assert texts == [f"{SCENE}{MARK}a", f"b {MARK}{SCENE}", f"{MARK}c{SCENE}"]
    assert visuals == [FILM, ONE, TWO, CLIP, THREE, FILM]


@pytest.mark.parametrize(
    "content", [None, 3, [{"type": "audio"}], ["a"], [{"type": "text", "text": 3}]]
)
def test_other_contents_are_rejected(content: object) -> None:
    with pytest.raises(PromptError, match="pass"):
        mark([Turn(user(content))])


def test_a_chat_needs_a_user_message() -> None:
    with pytest.raises(PromptError, match="no message with the role user"):
        turns_of([assistant("x")], [], [])
