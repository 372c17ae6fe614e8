"""Chats in VLMPipeline compared to the real openvino_genai, live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.real_npuw import EXACT
from tests.oracle.vision.both_pipelines import check_alike, theirs

pytestmark = pytest.mark.oracle

Turns = Sequence[tuple[Any, Sequence[np.ndarray]]]


def history(turns: Turns) -> Callable[..., Any]:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        chat, found = package.ChatHistory(), []
        for content, images in turns:
            chat.append({"role": "user", "content": content})
            given = [tensor(image) for image in images]
            said = pipe.generate(chat, images=given, max_new_tokens=9)
            chat.append({"role": "assistant", "content": said.texts[0]})
            found.append((said.texts, said.perf_metrics.get_num_input_tokens()))
        return found

    return act


def started(turns: Turns, system: str) -> Callable[..., Any]:
    def act(_: Any, pipe: Any, tensor: Any) -> Any:
        with pytest.deprecated_call():
            pipe.start_chat(system)
        found = [
            pipe.generate(text, images=[tensor(image) for image in images], max_new_tokens=9).texts
            for text, images in turns
        ]
        with pytest.deprecated_call():
            pipe.finish_chat()
        return found

    return act


def test_chats_are_equal(pipes: tuple[Any, Any], tools: Any) -> None:
    one, two, three = (tools.picture(60, 90 + 30 * seed, seed) for seed in range(3))
    text, image = {"type": "text", "text": "What"}, {"type": "image"}
    for turns in (
        [("What?", [one]), ("And?", [])],
        [("What?", []), ("And?", [two])],
        [("What?", [one]), ("And <ov_genai_image_1>?", [two]), ("x", [three])],
        [([text, image], [one]), ([image, text], [two])],
    ):
        check_alike(pipes, history(turns))
    check_alike(pipes, started([("What?", [one]), ("And?", [two])], "Be brief."))
    check_alike(pipes, started([("What?", [one]), ("And?", [])], ""))


def test_chats_with_videos_are_equal(pipes: tuple[Any, Any], folder: Path, tools: Any) -> None:
    """The real pipeline runs on the CPU, as it rejects such chats on NPU."""
    one, two, image = tools.film(4, 60, 90), tools.film(2, 60, 60, 5), tools.picture(60, 60, 9)
    parts = [{"type": "text", "text": "a"}, {"type": "video"}, {"type": "text", "text": "b"}]

    def talk(*turns: tuple[Any, dict[str, Any]]) -> Callable[..., Any]:
        def act(package: Any, pipe: Any, tensor: Any) -> Any:
            chat, found = package.ChatHistory(), []
            for content, given in turns:
                chat.append({"role": "user", "content": content})
                tensors = {name: [tensor(each) for each in of] for name, of in given.items()}
                said = pipe.generate(chat, **tensors, max_new_tokens=9)
                chat.append({"role": "assistant", "content": said.texts[0]})
                found.append((said.texts, said.perf_metrics.get_num_input_tokens()))
            return found

        return act

    pair = pipes[0], theirs.VLMPipeline(folder, "CPU", **EXACT)
    both = {"videos": [two], "images": [image]}
    check_alike(pair, talk(("What?", {"videos": [one]}), ("And?", {})))
    check_alike(pair, talk(("What?", {"images": [image]}), ("And?", {"videos": [one]})))
    check_alike(pair, talk(("What?", {"videos": [one]}), ("And <ov_genai_video_1>?", both)))
    check_alike(pair, talk((parts, {"videos": [one]}), (parts, {"videos": [two]})))
