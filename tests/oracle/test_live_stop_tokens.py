"""Text of a stop token that is not special: this stack and the real openvino_genai, live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import genai_layer

openvino_genai = pytest.importorskip("openvino_genai")
pytestmark = pytest.mark.oracle

PROMPT = "What is a blob?"
PLACE = 5
"""Place of the stop token in the greedy text."""

Generate = Callable[..., tuple[str, str]]


def of_pipeline(package: Any, folder: Path, *device: Any, **options: Any) -> Generate:
    """Return a function that generates a text, and the text that is streamed."""
    pipe = package.LLMPipeline(folder, *device, **options)

    def generate(streamed: bool = True, **values: Any) -> tuple[str, str]:
        parts: list[str] = []
        config = package.GenerationConfig(max_new_tokens=12, **values)
        found = pipe.generate([PROMPT], config, parts.append if streamed else None)
        return found.texts[0], "".join(parts)

    return generate


def of_batching(package: Any, folder: Path, device: str, **options: Any) -> Generate:
    """Return the same for continuous batching; its tokens are what is streamed."""
    scheduler = package.SchedulerConfig()
    pipe = package.ContinuousBatchingPipeline(folder, scheduler, device, options)
    tokenizer = pipe.get_tokenizer()
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": PROMPT}], True)

    def generate(streamed: bool = True, **values: Any) -> tuple[str, str]:
        del streamed
        config = package.GenerationConfig(max_new_tokens=12, apply_chat_template=False, **values)
        (found,) = pipe.generate([prompt], [config])
        handle = pipe.add_request(0, prompt, config)
        while pipe.has_non_finished_requests():
            pipe.step()
        (output,) = handle.read_all()
        return found.get_generation_ids()[0], tokenizer.decode(output.generated_ids)

    return generate


EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}


@pytest.fixture(scope="module", params=["SDPA", "PA", "batching"])
def pair(request: pytest.FixtureRequest, genai_folder: Path) -> tuple[Generate, Generate]:
    if request.param == "batching":
        theirs = of_batching(openvino_genai, genai_folder, "CPU", **EXACT)
        return theirs, of_batching(genai_layer, genai_folder, "NPU", **LENGTHS)
    backend = {"ATTENTION_BACKEND": request.param}
    theirs = of_pipeline(openvino_genai, genai_folder, "CPU", **backend, **EXACT)
    return theirs, of_pipeline(genai_layer, genai_folder, "NPU", **LENGTHS)


@pytest.mark.parametrize("extra", [{}, {"stop_strings"}, {"num_beams"}], ids=str)
def test_the_text_of_a_stop_token_is_kept_and_streamed(
    pair: tuple[Generate, Generate], genai_folder: Path, extra: set[str]
) -> None:
    tokenizer = genai_layer.Tokenizer(genai_folder)
    whole = tokenizer.encode(pair[1](ignore_eos=True)[0]).input_ids.data[0].tolist()
    stop, word = whole[PLACE], tokenizer.decode([whole[PLACE]])
    values = {"stop_strings": {word}, "num_beams": 2}
    options = {name: values[name] for name in extra}
    streamed = "num_beams" not in extra
    theirs, ours = (generate(streamed, stop_token_ids={stop}, **options) for generate in pair)
    assert ours == theirs
    assert ours[0].endswith(word)
