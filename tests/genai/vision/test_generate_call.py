"""Arguments of ``VLMPipeline.generate``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genai_layer import ChatHistory, ConfigError, GenerationConfig, PromptError
from genai_layer.vision.generate_call import read_call

IMAGE = np.zeros((4, 5, 3), np.uint8)
CONFIG = GenerationConfig(max_new_tokens=3)


def streamer(text: str) -> None:
    del text


CALLS: list[tuple[tuple[Any, ...], dict[str, Any], int]] = [
    (("a", IMAGE, CONFIG, streamer), {}, 1),
    (("a", [IMAGE, IMAGE], CONFIG, streamer), {}, 2),
    (("a", [IMAGE], [], CONFIG, streamer), {}, 1),
    (("a", CONFIG, streamer), {"image": IMAGE}, 1),
    (("a", [IMAGE]), {"generation_config": CONFIG, "streamer": streamer}, 1),
    (
        (),
        {"prompt": "a", "images": IMAGE, "generation_config": CONFIG, "streamer": streamer},
        1,
    ),
]


@pytest.mark.parametrize(("args", "named", "images"), CALLS)
def test_arguments_have_places_or_names(
    args: tuple[Any, ...], named: dict[str, Any], images: int
) -> None:
    call = read_call(args, named)
    assert (call.prompt, len(call.images)) == ("a", images)
    assert (call.config, call.streamer, call.parameters) == (CONFIG, streamer, {})


def test_videos_follow_images_or_have_a_name() -> None:
    film = np.zeros((3, 4, 5, 3), np.uint8)
    for args, named in ((("a", [IMAGE], [film, film], CONFIG), {}), (("a",), {"videos": film})):
        call = read_call(args, named)
        assert [video.shape for video in call.videos] == [film.shape] * (len(args) // 2 or 1)


def test_other_names_are_parameters_and_a_prompt_may_be_a_history() -> None:
    history = ChatHistory()
    call = read_call((), {"history": history, "max_new_tokens": 3, "videos": [], "image": None})
    assert (call.prompt, call.images, call.parameters) == (history, [], {"max_new_tokens": 3})


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {}),
        (("a",), {"prompt": "b"}),
        (("a",), {"history": "b"}),
        (("a", IMAGE), {"images": IMAGE}),
        (("a", CONFIG, streamer, 1), {}),
    ],
)
def test_missing_and_repeated_arguments_are_type_errors(
    args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"generate\(\)"):
        read_call(args, named)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"videos": [IMAGE]}, r"a video has shape \[4, 5, 3\]"),
        ({"audios": [IMAGE]}, "audios: not supported"),
        ({"audios": IMAGE}, "audios: not supported"),
        ({"image": IMAGE, "images": IMAGE}, "both given"),
        ({"image": "a.png"}, "pass a tensor"),
    ],
)
def test_what_is_not_supported_is_named(named: dict[str, Any], message: str) -> None:
    with pytest.raises(PromptError, match=message):
        read_call(("a",), named)
    with pytest.raises(PromptError, match="pass a str or a ChatHistory"):
        read_call((["a"],), {})
    with pytest.raises(ConfigError, match="pass a GenerationConfig"):
        read_call(("a",), {"generation_config": 3})
