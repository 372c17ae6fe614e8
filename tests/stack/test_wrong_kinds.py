"""Values of a wrong kind for the pipelines that need real models; see tests/genai/test_wrong_kinds.

The pipelines run on the real OpenVINO, which compiles a small model at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests import golden_folders
from tests.genai.argument_walk import KINDS, complaint, places

import genai_layer
from genai_layer import GenerationConfig, Tensor, Tokenizer

SHORT = GenerationConfig(max_new_tokens=1)
IMAGE = Tensor(np.zeros((1, 28, 28, 3), np.uint8))
CALL = {"prompt": "a", "generation_config": SHORT}

vision_folder, folders = golden_folders.vision_folder, golden_folders.pipeline_folders

AUDIO = np.zeros(1600, np.float32)
EXAMPLES: dict[str, dict[str, Any]] = {
    "ASRPipeline.generate": {"audio_inputs": AUDIO},
    "EmbeddingPipeline.embed": {"text": "a"},
    "TextEmbeddingPipeline.embed": {"texts": ["a"], "prompt": "b"},
    "TextRerankPipeline.rerank": {"query": "a", "texts": ["b"]},
    "TextRerankPipeline.start_rerank_async": {"query": "a", "texts": ["b"]},
    "VLMPipeline.generate": CALL
    | {"history": genai_layer.ChatHistory([{"role": "user", "content": "a"}])},
    "WhisperPipeline.generate": {"raw_speech_input": AUDIO},
}
PIPELINES = {
    "TextRerankPipeline": "ranks",
    "TextEmbeddingPipeline": "texts",
    "EmbeddingPipeline": "texts",
    "VLMPipeline": "vision",
    "ASRPipeline": "speech",
    "WhisperPipeline": "speech",
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", PIPELINES)
def test_a_value_is_accepted_as_annotated_or_rejected_by_name(folders: Any, name: str) -> None:
    folder = folders[PIPELINES[name]]
    pipe = getattr(genai_layer, name)(folder, "CPU")
    example = {
        "models_path": folder,
        "device": "CPU",
        "models": {},
        "config_dir_path": folder,
        "tokenizer": Tokenizer(folder),
    }
    examples = EXAMPLES | {name: example}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        walked = places(name, examples, lambda: pipe)
        found = [complaint(place, kind) for place in walked for kind in KINDS]
    assert not "\n".join(filter(None, found))
