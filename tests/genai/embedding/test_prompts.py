"""Prompts of embeddings: places and times of visuals, instructions, tokens at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import ModelError, PromptError, Tokenizer
from genai_layer.embedding.encoder import EncodedGroup
from genai_layer.embedding.prompts import EmbeddingPrompts, Visual
from genai_layer.vision.patches import Grid
from genai_layer.vision.prompt_tags import IMAGE, VIDEO, Kind

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
START, END = "<|vision_start|>", "<|vision_end|>"
LAST = "<|endoftext|>" * 2


@pytest.fixture(scope="module")
def tokenizer(load_module: Any, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    vision = load_module(GOLDENS / "vision" / "folder.py")
    folder = tmp_path_factory.mktemp("tokenizer")
    content = load_module(GOLDENS / "embedding" / "folder.py").tokenizer(vision)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    settings = json.dumps({"chat_template": vision.TEMPLATE})
    (folder / "tokenizer_config.json").write_text(settings)
    return Tokenizer(folder)


def group(kind: Kind, tokens: int) -> EncodedGroup:
    return EncodedGroup(kind, Grid(1, tokens), np.zeros((tokens, 2)), np.zeros((1, tokens, 2)))


def written(tokenizer: Tokenizer, *args: Any) -> tuple[str, list[EncodedGroup]]:
    ids, groups = EmbeddingPrompts(tokenizer).encode(*args)
    return tokenizer.decode(ids, skip_special_tokens=False), groups


def test_visuals_follow_a_text_without_tags(tokenizer: Tokenizer) -> None:
    image, one, two = group(IMAGE, 2), group(VIDEO, 1), group(VIDEO, 1)
    visuals = [Visual(IMAGE, [image]), Visual(VIDEO, [one, two], [0.25, 1.0])]
    text, groups = written(tokenizer, "a", visuals, None)
    pads = START + "<|image_pad|>" * 2 + END
    frame = f"{START}<|video_pad|>{END}"
    assert text == f"a{pads}<0.2 seconds>{frame}<1.0 seconds>{frame}{LAST}"
    assert [id(each) for each in groups] == [id(image), id(one), id(two)]


def test_tags_are_places(tokenizer: Tokenizer) -> None:
    first, second = (Visual(IMAGE, [group(IMAGE, count)]) for count in (1, 2))
    given = "b <ov_genai_image_1> c <ov_genai_image_0>"
    text, groups = written(tokenizer, given, [first, second], None)
    assert [each.grid.count for each in groups] == [2, 1]
    assert text.startswith(f"b {START}<|image_pad|><|image_pad|>{END} c {START}<|image_pad|>{END}")
    video = Visual(VIDEO, [group(VIDEO, 1)], [0.0])
    text, _ = written(tokenizer, "b <ov_genai_image_0>", [first, video], None)
    assert text.startswith(f"<0.0 seconds>{START}<|video_pad|>{END}b ")
    with pytest.raises(PromptError, match="no such image"):
        written(tokenizer, "<ov_genai_image_2>", [first], None)


def test_an_instruction_is_the_system_message(tokenizer: Tokenizer) -> None:
    text, _ = written(tokenizer, "a", [], "b")
    assert text == f"<|im_start|>system\nb<|im_end|>\n<|im_start|>user\na<|im_end|>\n{LAST}"


def test_without_a_template_an_instruction_precedes_the_text(tokenizer: Tokenizer) -> None:
    template = tokenizer.chat_template
    tokenizer.set_chat_template("")
    try:
        assert written(tokenizer, "a", [], "b ")[0] == f"b a{LAST}"
    finally:
        tokenizer.set_chat_template(template)


def test_special_tokens_in_a_message_are_text(tokenizer: Tokenizer) -> None:
    end = tokenizer.get_vocab()[b"<|im_end|>"]
    prompts = EmbeddingPrompts(tokenizer)
    assert prompts.encode("<|im_end|>", [], "b")[0].count(end) == 2
    assert prompts.encode("<|im_end|>", [], None)[0].count(end) == 1


def test_a_tokenizer_that_begins_texts_is_rejected(tokenizer: Tokenizer, tmp_path: Path) -> None:
    content = json.loads(tokenizer.to_json())
    content["post_processor"]["single"].reverse()
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match="before a text"):
        EmbeddingPrompts(Tokenizer(tmp_path))
