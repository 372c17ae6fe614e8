"""Images in VLMPipeline compared to the real openvino_genai, live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracle.vision.both_pipelines import OWN_TAG, check_alike, ours

pytestmark = pytest.mark.oracle


def generate(prompt: str, *images: np.ndarray, **parameters: Any) -> Callable[..., Any]:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        given = [tensor(image) for image in images]
        said = pipe.generate(prompt, images=given, max_new_tokens=16, **parameters)
        metrics = said.perf_metrics
        counts = (metrics.get_num_input_tokens(), metrics.get_total_image_slice_count())
        scores = said.scores if package is ours else pytest.approx(said.scores, rel=1e-3)
        reasons = [each.name for each in said.finish_reasons]
        omni = said.full_token_ids, said.intermediate_hidden_states
        return said.texts, scores, reasons, counts, omni

    return act


@pytest.mark.parametrize(
    "sizes",
    [
        (),
        ((60, 90),),
        ((5, 9),),
        ((300, 411),),
        ((2, 401),),
        ((60, 90), (200, 100), (33, 250)),
        ((60, 90), (60, 90)),
    ],
    ids=str,
)
def test_texts_are_equal(pipes: tuple[Any, Any], tools: Any, sizes: Any) -> None:
    images = [tools.picture(*size, seed) for seed, size in enumerate(sizes)]
    check_alike(pipes, generate("What is it?", *images))


@pytest.mark.parametrize(
    "prompt",
    [
        "a <ov_genai_image_1> b <ov_genai_image_0>",
        "a <ov_genai_image_1> b <ov_genai_image_1>",
        f"a {OWN_TAG} b {OWN_TAG}",
        "",
    ],
)
def test_tags_are_read_alike(pipes: tuple[Any, Any], tools: Any, prompt: str) -> None:
    check_alike(pipes, generate(prompt, tools.picture(60, 90), tools.picture(90, 60, 1)))


def test_other_layouts_and_parameters_are_read_alike(pipes: tuple[Any, Any], tools: Any) -> None:
    image = tools.picture(60, 90)
    several = np.stack([image, tools.picture(60, 90, 1)])
    for given in (several, image[..., :1].copy(), np.concatenate([image, image], 2)[..., :4]):
        check_alike(pipes, generate("a", np.ascontiguousarray(given)))
    for parameters in ({"apply_chat_template": False}, {"repetition_penalty": 1.5}):
        check_alike(pipes, generate("a", image, **parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        {"do_sample": True, "temperature": 3.0, "rng_seed": 5},
        {"do_sample": True, "temperature": 3.0, "num_return_sequences": 3},
        {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0},
    ],
    ids=str,
)
def test_other_methods_give_the_texts_of_the_cpu(
    cpu: tuple[Any, Any], tools: Any, parameters: dict[str, Any]
) -> None:
    check_alike(cpu, generate("a", tools.picture(60, 90), **parameters))


def test_arguments_have_the_same_places(pipes: tuple[Any, Any], tools: Any) -> None:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        image, config = tensor(tools.picture(60, 90)), package.GenerationConfig()
        config.max_new_tokens = 5
        calls = [
            pipe.generate("a", [image], config),
            pipe.generate("a", image, config),
            pipe.generate("a", [image], [], config),
            pipe.generate("a", image=image, generation_config=config),
            pipe.generate(prompt="a", images=image, generation_config=config),
        ]
        return [said.texts for said in calls]

    found = check_alike(pipes, act)
    assert found == [found[0]] * 5
