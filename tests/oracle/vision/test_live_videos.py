"""Videos in VLMPipeline compared to the real openvino_genai, live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.oracle.vision.both_pipelines import OWN_TAG, check_alike

pytestmark = pytest.mark.oracle


def watch(
    prompt: Any, videos: Sequence[np.ndarray], images: Sequence[np.ndarray] = (), **parameters: Any
) -> Callable[..., Any]:
    """Return an action that generates from videos; ``chosen`` has the frames of each."""
    chosen = parameters.pop("chosen", ())

    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        metadata = [package.VideoMetadata() for _ in chosen]
        for each, frames in zip(metadata, chosen, strict=True):
            each.fps, each.frames_indices = 25.0, frames
        given: dict[str, Any] = {"videos_metadata": metadata} if metadata else {}
        given |= {"videos": [tensor(video) for video in videos]}
        given |= {"images": [tensor(image) for image in images]} if images else {}
        said = pipe.generate(prompt, **given, max_new_tokens=16, **parameters)
        metrics = said.perf_metrics
        return said.texts, metrics.get_num_input_tokens(), metrics.get_total_image_slice_count()

    return act


@pytest.mark.parametrize(
    "sizes", [((4, 60, 90),), ((1, 60, 90),), ((5, 56, 56),), ((12, 40, 60), (3, 90, 60))], ids=str
)
def test_videos_are_encoded_alike(pipes: tuple[Any, Any], tools: Any, sizes: Any) -> None:
    videos = [tools.film(*size, place) for place, size in enumerate(sizes)]
    check_alike(pipes, watch("What happens?", videos))


def test_frames_are_chosen_alike(pipes: tuple[Any, Any], tools: Any) -> None:
    one, two = tools.film(6, 60, 90), tools.film(4, 60, 60, 9)
    found = [
        check_alike(pipes, watch("What?", [one, two], chosen=chosen))
        for chosen in (([0, 2, 5], []), ([5, 0, 0], [3]), ())
    ]
    assert len({tokens for _, tokens, _ in found}) == 3


@pytest.mark.parametrize(
    ("prompt", "images"),
    [
        ("What?", 1),
        ("a <ov_genai_video_1> b <ov_genai_video_0> c", 0),
        ("a <ov_genai_video_0><ov_genai_image_0> b", 1),
        (f"a {OWN_TAG} b {OWN_TAG}".replace("image", "video"), 0),
    ],
)
def test_videos_and_images_have_tags_of_their_own(
    pipes: tuple[Any, Any], tools: Any, prompt: str, images: int
) -> None:
    """Videos precede images; else openvino_genai exchanges their sizes in positions."""
    videos = [tools.film(4, 60, 60), tools.film(3, 60, 90, 5)]
    check_alike(pipes, watch(prompt, videos, [tools.picture(90, 60, 11)] * images))
