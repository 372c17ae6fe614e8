"""Arguments of ``VLMPipeline.generate``, which has several forms.

Source: openvino_genai.VLMPipeline.generate, docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genai_layer.chat_history import ChatHistory
from genai_layer.checked import read_named
from genai_layer.errors import PromptError
from genai_layer.generation_config import GenerationConfig
from genai_layer.sinks import Streamer
from genai_layer.vision.visuals import Image, Video, read_images, read_videos

_FIRST = ("prompt", "history")
_IMAGES = ("image", "images")
_UNSUPPORTED = ("audios", "audio_streamer")
_CALL: dict[str, Any] = {
    **dict.fromkeys(_FIRST, str | ChatHistory),
    "generation_config": GenerationConfig | None,
    "streamer": Streamer,
}
"""Annotations of arguments by name."""


@dataclass(frozen=True, slots=True)
class GenerateCall:
    """Arguments of one call."""

    prompt: str | ChatHistory
    images: list[Image]
    videos: list[Video]
    config: GenerationConfig | None
    streamer: Streamer
    parameters: dict[str, Any]
    """Single parameters of the generation."""


def read_call(args: Sequence[Any], named: Mapping[str, Any]) -> GenerateCall:
    """Sort the arguments: (prompt, image or images, videos, generation_config, streamer).

    Args:
        args: positional ones; images and videos may be left out.
        named: the same by name, ``videos_metadata``, and parameters.

    Raises:
        TypeError: the prompt is missing, an argument is given twice, or there are too many.
        ArgumentError: an argument is of another kind.
        PromptError: an image or a video is broken, or there is audio.
    """
    given = dict(named)
    for name, value in _by_name(args).items():
        if name in given or (name in _FIRST and given.keys() & {*_FIRST}):
            raise TypeError(f"generate() got multiple values for argument {name!r}")
        given[name] = value
    given |= read_named("generate", given, _CALL)
    prompts = [given.pop(name) for name in _FIRST if name in given]
    if len(prompts) != 1:
        raise TypeError("generate() takes one prompt or history")
    for name in _UNSUPPORTED:
        value = given.pop(name, None)
        if value is not None and not (isinstance(value, list | tuple) and not value):
            raise PromptError(f"{name}: not supported; leave it out")
    images = [given.pop(name) for name in _IMAGES if given.get(name) is not None]
    if len(images) > 1:
        raise PromptError("image and images are both given; pass all as images")
    for name in _IMAGES:
        given.pop(name, None)
    config = given.pop("generation_config", None)
    streamer = given.pop("streamer", None)
    pixels = read_images(images[0]) if images else []
    videos = read_videos(given.pop("videos", None), given.pop("videos_metadata", None))
    return GenerateCall(prompts[0], pixels, videos, config, streamer, given)


def _by_name(args: Sequence[Any]) -> dict[str, Any]:
    """Return positional arguments by name."""
    names = ["prompt", "images", "videos"]
    for place, value in enumerate(args):
        if isinstance(value, GenerationConfig):
            names = names[:place]
            break
    names += ["generation_config", "streamer"]
    if len(args) > len(names):
        raise TypeError(f"generate() takes at most {len(names)} positional arguments")
    return dict(zip(names, args, strict=False))
