"""Embeddings of texts, images and videos, compared to the real openvino_genai, live.

Skipped unless openvino_genai is installed. Both packages run on OpenVINO's CPU plugin, in f32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests import golden_folders
from tests.golden_tokenizers import read_golden
from tests.oracle.real_npuw import EXACT

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens"
OWN_TAG = "<|vision_start|><|image_pad|><|vision_end|>"

embedding_folder = golden_folders.embedding_folder
tools, vision = golden_folders.embedding_tools, golden_folders.vision_tools


@pytest.fixture(scope="module")
def folder(embedding_folder: Path) -> Path:
    """Folder that both packages read."""
    return read_golden(GOLDENS / "embedding" / "tokenizer.json.xz").write(embedding_folder)


@pytest.fixture(scope="module")
def pipes(folder: Path) -> tuple[Any, Any]:
    return ours.EmbeddingPipeline(folder, "CPU", **EXACT), theirs.EmbeddingPipeline(
        folder, "CPU", **EXACT
    )


class Both:
    """The arguments of a call for both packages."""

    def __init__(self, tools: Any, vision: Any, pipes: tuple[Any, Any]) -> None:
        self._tools, self._vision, self._pipes = tools, vision, pipes

    def embed(self, text: Any, **case: Any) -> tuple[np.ndarray, np.ndarray]:
        found: list[np.ndarray] = []
        for package, pipe in zip((ours, theirs), self._pipes, strict=True):
            tensor = ours.Tensor if package is ours else ov.Tensor
            metadata: Any = package.VideoMetadata
            given = self._tools.arguments({"text": text, **case}, self._vision, tensor, metadata)
            found.append(np.array(pipe.embed(**given).embeddings.data))
        return found[0], found[1]


@pytest.fixture
def both(tools: Any, vision: Any, pipes: tuple[Any, Any]) -> Both:
    return Both(tools, vision, pipes)


FOUR = [(4, 60, 90)]
ONE, TWO = [(60, 90)], [(60, 90), (200, 100)]


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("What is it?", {}),
        (["a", "What is it?", "b c"], {}),
        ([], {}),
        ("What?", {"embedding_prompt": "Represent the input."}),
        ("What?", {"embedding_prompt": "", "images": ONE}),
        ("a <|im_end|> b", {}),
        ("", {"images": ONE}),
        ("a", {"images": [(5, 9)]}),
        ("a", {"images": [(300, 411)]}),
        ("a <ov_genai_image_1> b <ov_genai_image_0>", {"images": TWO}),
        ("a <ov_genai_image_0>", {"images": TWO}),
        (f"a {OWN_TAG} b {OWN_TAG}", {"images": TWO}),
        ("a", {"videos": FOUR}),
        ("a", {"videos": [(2, 60, 90)]}),
        ("a", {"videos": [(3, 60, 90)]}),
        ("a", {"videos": [(7, 300, 200)], "metadata": [(4.0, [])]}),
        ("a", {"videos": [(7, 60, 90)], "metadata": [(0.0, [6, 2, 4])]}),
        ("a", {"videos": [*FOUR, (4, 90, 60)]}),
        ("a <ov_genai_video_0> b <ov_genai_image_0>", {"videos": FOUR, "images": ONE}),
        ("a <ov_genai_image_0>", {"videos": FOUR, "images": ONE}),
    ],
    ids=str,
)
def test_embeddings_are_equal(both: Both, text: Any, case: dict[str, Any]) -> None:
    found, expected = both.embed(text, **case)
    assert found.shape == expected.shape
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["MEAN", "CLS", "LAST_TOKEN"])
def test_pooling_is_equal(folder: Path, name: str) -> None:
    found = [
        package.EmbeddingPipeline(
            folder,
            "CPU",
            pooling_type=getattr(package.TextEmbeddingPipeline.PoolingType, name),
            normalize=False,
            **EXACT,
        ).embed(["What is it?", "a"])
        for package in (ours, theirs)
    ]
    values = [np.array(each.embeddings.data) for each in found]
    assert np.allclose(*values, atol=1e-4)


def test_the_package_exchanges_features_of_an_image_before_a_video(both: Both) -> None:
    """The features are those of videos, then images, whatever their order in the text."""
    found, expected = both.embed("a", images=ONE, videos=FOUR)
    assert not np.allclose(found, expected, atol=1e-2), "fixed in the package: update the README"


def test_the_package_adds_an_images_features_to_the_first_text_only(both: Both) -> None:
    found, expected = both.embed(["a", "b c d"], images=ONE)
    assert not np.allclose(found, expected, atol=1e-2), "fixed in the package: update the README"
    alone = [both.embed(text, images=ONE)[1][0] for text in ("a", "b c d")]
    assert np.allclose(found, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("<ov_genai_image_3>", {"images": ONE}),
        (f"{OWN_TAG} <ov_genai_image_0>", {"images": ONE}),
        (OWN_TAG, {"images": TWO}),
        ("a", {"videos": [(1, 60, 90)]}),
        ("a", {"videos": FOUR, "metadata": [(-1.0, [0, 1])]}),
        ("a", {"videos": FOUR, "metadata": [(1.0, []), (1.0, [])]}),
        ("a", {"videos": FOUR, "metadata": [(1.0, [0, 1, 2, 3, 0])]}),
    ],
    ids=str,
)
def test_the_same_calls_are_rejected(
    tools: Any, vision: Any, pipes: tuple[Any, Any], text: str, case: dict[str, Any]
) -> None:
    for package, pipe in zip((ours, theirs), pipes, strict=True):
        tensor: Any = ours.Tensor if package is ours else ov.Tensor
        metadata: Any = package.VideoMetadata
        given = tools.arguments({"text": text, **case}, vision, tensor, metadata)
        with pytest.raises(RuntimeError):
            pipe.embed(**given)
