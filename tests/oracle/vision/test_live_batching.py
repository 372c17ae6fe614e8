"""Continuous batching with images and videos, compared to the real openvino_genai, live.

Skipped unless openvino_genai is installed. Both packages run on OpenVINO's CPU plugin, in f32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.oracle.vision.both_pipelines import check_alike

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

EXACT = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture(scope="module")
def pipes(folder: Path) -> tuple[Any, Any]:
    made = [
        package.ContinuousBatchingPipeline(folder, package.SchedulerConfig(), "CPU", EXACT)
        for package in (ours, theirs)
    ]
    return made[0], made[1]


def nine(package: Any, **values: Any) -> Any:
    config = package.GenerationConfig()
    config.max_new_tokens = 9
    for name, value in values.items():
        setattr(config, name, value)
    return config


@pytest.mark.parametrize("values", [{}, {"apply_chat_template": False}, {"num_beams": 2}], ids=str)
def test_texts_are_equal(pipes: tuple[Any, Any], tools: Any, values: dict[str, Any]) -> None:
    prompts = ["What?", "b <ov_genai_image_1> a <ov_genai_image_0>", "And?"]
    pictures = [[tools.picture(60, 90)], [tools.picture(60, 90), tools.picture(90, 60, 1)], []]

    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        images = [[tensor(each) for each in one] for one in pictures]
        configs = [nine(package, **values) for _ in prompts]
        found = pipe.generate(prompts, images=images, generation_config=configs)
        reasons = [each.name for result in found for each in result.finish_reasons]
        return [result.texts for result in found], reasons, type(found[0]).__name__

    check_alike(pipes, act)


def test_videos_and_histories_are_equal(pipes: tuple[Any, Any], tools: Any) -> None:
    film, picture = tools.film(3, 60, 90), tools.picture(60, 90)

    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        configs = [nine(package)]
        videos = pipe.generate(["a"], videos=[[tensor(film)]], generation_config=configs)
        both = pipe.generate(["a"], [[tensor(picture)]], [[tensor(film)]], configs)
        history = package.ChatHistory()
        history.append({"role": "user", "content": "What?"})
        chat = pipe.generate([history], images=[[tensor(picture)]], generation_config=configs)
        return [result.texts for result in (*videos, *both, *chat)]

    check_alike(pipes, act)


def test_without_lists_results_have_only_texts(pipes: tuple[Any, Any]) -> None:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        found = pipe.generate(["What?"], [nine(package)])
        return found[0].m_generation_ids, type(found[0]).__name__

    check_alike(pipes, act)


@pytest.mark.parametrize("template", [True, False])
def test_requests_with_images_are_equal(pipes: tuple[Any, Any], tools: Any, template: bool) -> None:
    picture, film = tools.picture(60, 90), tools.film(3, 60, 90)

    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        config = nine(package, apply_chat_template=template)
        handles = [
            pipe.add_request(0, "What?", [tensor(picture)], config),
            pipe.add_request(1, "What?", [], [tensor(film)], config),
            pipe.add_request(2, "What?", config),
        ]
        while pipe.has_non_finished_requests():
            pipe.step()
        metrics = [handle.get_vlm_perf_metrics() for handle in handles]
        counts = [(m.get_total_image_slice_count(), m.get_num_input_tokens()) for m in metrics]
        encoded = [len(m.vlm_raw_metrics.vision_encoding_durations) for m in metrics]
        return [handle.read_all()[0].generated_ids for handle in handles], counts, encoded

    check_alike(pipes, act)
