"""Embeddings of texts, images and videos on the complete stack, compared to openvino_genai's.

The model is tiny and random; tools/make_embedding_goldens.py wrote model and embeddings.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import golden_folders

from genai_layer import (
    ConfigError,
    EmbeddingPipeline,
    EmbedResult,
    ModelError,
    PromptError,
    Tensor,
    TextEmbeddingPipeline,
    VideoMetadata,
)

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
CASES: dict[str, Any] = json.loads((GOLDENS / "embedding" / "embeddings.json").read_text())
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
OPTIONS: dict[str, dict[str, Any]] = {"CPU": F32, "NPU": {**F32, "MAX_PROMPT_LEN": 128}}

folder, tools = golden_folders.embedding_folder, golden_folders.embedding_tools
vision = golden_folders.vision_tools


@pytest.fixture(scope="module", params=["NPU", "CPU"])
def pipeline(folder: Path, request: pytest.FixtureRequest) -> EmbeddingPipeline:
    """Pipeline on this stack's NPU, and on the real OpenVINO."""
    return EmbeddingPipeline(folder, request.param, **OPTIONS[request.param])


@pytest.fixture(scope="module")
def cpu(folder: Path) -> EmbeddingPipeline:
    return EmbeddingPipeline(folder, "CPU", **F32)


def embedded(pipeline: EmbeddingPipeline, *args: Any, **given: Any) -> np.ndarray:
    return np.array(pipeline.embed(*args, **given).embeddings.data)


@pytest.mark.matrix
@pytest.mark.parametrize("name", CASES)
def test_embeddings_equal_openvino_genais(
    pipeline: EmbeddingPipeline, tools: Any, vision: Any, name: str
) -> None:
    given = tools.arguments(CASES[name], vision, Tensor, VideoMetadata)
    found, expected = embedded(pipeline, **given), CASES[name]["embedding"]
    assert found.shape == (1, 96)
    assert np.allclose(found[0, : len(expected)], expected, atol=1e-4)


def test_npu_computes_in_f16_too(folder: Path, cpu: EmbeddingPipeline, vision: Any) -> None:
    image = vision.picture(60, 90)
    found = embedded(EmbeddingPipeline(folder, "NPU", MAX_PROMPT_LEN=64), "a", [image])
    assert np.sum(found * embedded(cpu, "a", [image])) > 0.999


def test_each_text_of_a_batch_is_embedded_as_alone(cpu: EmbeddingPipeline, vision: Any) -> None:
    image, texts = vision.picture(60, 90), ["a", "a longer one", "<ov_genai_image_0> b"]
    for images in ([], [image]):
        given = texts if images else texts[:2]
        alone = [embedded(cpu, text, images)[0] for text in given]
        assert np.allclose(embedded(cpu, given, images), alone, atol=1e-6)
    assert embedded(cpu, []).shape == (0, 0)


def test_pooling_and_normalization_are_parameters(folder: Path, cpu: EmbeddingPipeline) -> None:
    pooling = TextEmbeddingPipeline.PoolingType
    plain = EmbeddingPipeline(folder, "CPU", normalize=False, **F32)
    last = embedded(plain, "a b")
    assert np.allclose(last / np.linalg.norm(last), embedded(cpu, "a b"), atol=1e-6)
    config = TextEmbeddingPipeline.Config(pooling_type=pooling.MEAN)
    mean = embedded(EmbeddingPipeline(folder, "CPU", text_embedding_config=config, **F32), "a b")
    assert not np.allclose(mean, embedded(cpu, "a b"), atol=1e-2)
    with pytest.raises(ConfigError, match="pooling_type = MEAN: on NPU"):
        EmbeddingPipeline(folder, "NPU", pooling_type=pooling.MEAN)
    with pytest.raises(ConfigError, match="normalize: given in addition"):
        EmbeddingPipeline(folder, "CPU", text_embedding_config=config, normalize=False)


def test_wrong_calls_are_rejected(cpu: EmbeddingPipeline, vision: Any) -> None:
    video, facts = vision.film(4, 60, 90), VideoMetadata()
    facts.fps = -1.0
    with pytest.raises(PromptError, match=r"fps = -1\.0"):
        cpu.embed("a", videos=[video], videos_metadata=[facts])
    with pytest.raises(PromptError, match="2 items for 1 videos"):
        cpu.embed("a", videos=[video], videos_metadata=[VideoMetadata(), VideoMetadata()])
    with pytest.raises(PromptError, match="has 1 frames"):
        cpu.embed("a", videos=[video[:1]])
    with pytest.raises(PromptError, match="no such image"):
        cpu.embed("<ov_genai_image_1>", images=[vision.picture(60, 90)])
    with pytest.raises(PromptError, match="pass a str or a list of str"):
        cpu.embed(["a", 5])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="prompt"):
        cpu.embed("a", prompt="b")  # pyright: ignore[reportCallIssue]


def test_prompts_of_an_npu_are_limited(folder: Path, vision: Any) -> None:
    pipeline = EmbeddingPipeline(folder, "NPU", MAX_PROMPT_LEN=64)
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=64"):
        pipeline.embed("a b c d " * 20)


def test_broken_folders_are_rejected(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    config = json.loads((folder / "config.json").read_text())
    vision = config["vision_config"]
    for changed, message in (
        ({"model_type": "qwen2_vl"}, "qwen2_vl is a vision language model; use VLMPipeline"),
        ({"vision_config": vision | {"num_position_embeddings": 24}}, "a square number"),
        ({"vision_config": vision | {"deepstack_visual_indexes": 3}}, "deepstack_visual_indexes"),
        ({"vision_config": None}, "deepstack_visual_indexes"),
    ):
        (broken / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(ModelError, match=message):
            EmbeddingPipeline(broken, "CPU")
    (broken / "config.json").write_text(json.dumps(config))
    (broken / "openvino_vision_embeddings_pos_model.xml").unlink()
    with pytest.raises(ModelError, match="--task feature-extraction"):
        EmbeddingPipeline(broken, "CPU")


def test_results_hold_any_tensor() -> None:
    result = EmbedResult(np.ones((1, 2), np.float32).view())  # pyright: ignore[reportArgumentType]
    result.embeddings = Tensor([[1.0, 2.0]])
    assert result.embeddings.data.tolist() == [[1.0, 2.0]]
