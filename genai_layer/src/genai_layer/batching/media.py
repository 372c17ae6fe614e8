"""Images and videos of the prompts of ``ContinuousBatchingPipeline``.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genai_layer.errors import PromptError
from genai_layer.vision.image import Image, read_images
from genai_layer.vision.video import Video, read_videos

NAMES = ("images", "videos", "videos_metadata")


@dataclass(frozen=True, slots=True)
class Media:
    """Images and videos of one prompt."""

    images: list[Image] = field(default_factory=list[Image])
    videos: list[Video] = field(default_factory=list[Video])


def read_media(named: Mapping[str, Any]) -> Media | None:
    """Return the images and videos of one prompt; None if there are no lists of them.

    Args:
        named: lists of tensors ``images`` and ``videos``, and ``videos_metadata``; any may miss.

    Raises:
        PromptError: a tensor is no image or video, or the metadata do not match the videos.
    """
    if all(named.get(name) is None for name in NAMES):
        return None
    videos = read_videos(named.get("videos"), named.get("videos_metadata"))
    return Media(read_images(named.get("images")), videos)


def read_media_of_all(named: Mapping[str, Any], prompts: int) -> list[Media] | list[None]:
    """Return the images and videos of several prompts; None for each if there are no lists.

    Args:
        named: as for ``read_media``, but with a list for each prompt.
        prompts: number of the prompts.

    Raises:
        PromptError: see ``read_media``; or there are not as many lists as prompts.
    """
    if all(named.get(name) is None for name in NAMES):
        return [None] * prompts
    given: dict[str, Sequence[Any]] = {}
    for name in NAMES:
        value = named.get(name)
        lists = [()] * prompts if value is None or len(value) == 0 else value
        if len(lists) != prompts:
            raise PromptError(
                f"{name}: {len(lists)} lists for {prompts} prompts; pass one for each"
            )
        given[name] = lists
    media: list[Media] = []
    for number in range(prompts):
        one = read_media({name: lists[number] for name, lists in given.items()})
        media.append(one or Media())
    return media
