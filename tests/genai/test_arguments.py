"""Forms of the constructor; each is accepted or rejected as by openvino_genai 2026.4.1.0."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from genai_layer import LLMPipeline, PropertyError, Tokenizer
from genai_layer.testing.toy import answering_core

GIVEN = {"MAX_PROMPT_LEN": 64, "CACHE_DIR": "a"}


@pytest.mark.parametrize(
    "form",
    [
        lambda folder, core: LLMPipeline(folder, "NPU", core=core),
        lambda folder, core: LLMPipeline(str(folder), "NPU", core=core),
        lambda folder, core: LLMPipeline(os.fsencode(folder), "NPU", core=core),
        lambda folder, core: LLMPipeline(models_path=folder, device="NPU", core=core),
        lambda folder, core: LLMPipeline(folder, device="NPU", core=core),
        lambda folder, core: LLMPipeline(folder, Tokenizer(folder), "NPU", core=core),
        lambda folder, core: LLMPipeline(
            models_path=folder, tokenizer=Tokenizer(folder), device="NPU", core=core
        ),
    ],
)
def test_tokenizer_and_device_may_be_positional_or_keywords(folder: Path, form: Any) -> None:
    core = answering_core("hey")
    assert form(folder, core).generate("?") == "hey"
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == 1024, "the device is NPU"


@pytest.mark.parametrize(
    "form",
    [
        lambda folder, core: LLMPipeline(folder, "NPU", GIVEN, core=core),
        lambda folder, core: LLMPipeline(folder, device="NPU", config=GIVEN, core=core),
        lambda folder, core: LLMPipeline(folder, Tokenizer(folder), "NPU", GIVEN, core=core),
        lambda folder, core: LLMPipeline(
            folder, tokenizer=Tokenizer(folder), device="NPU", config=GIVEN, core=core
        ),
    ],
)
def test_properties_in_a_dictionary_are_deprecated(folder: Path, form: Any) -> None:
    core = answering_core("hey")
    with pytest.deprecated_call(match=r"pass \*\*config") as caught:
        form(folder, core)
    assert caught[0].filename == __file__, "the warning names the caller's line"
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == 64
    assert core.config["CACHE_DIR"] == "a"


def test_keywords_override_the_dictionary_which_is_unchanged(folder: Path) -> None:
    core = answering_core("hey")
    with pytest.deprecated_call():
        LLMPipeline(folder, "NPU", GIVEN, core=core, CACHE_DIR="b")
    assert core.config["CACHE_DIR"] == "b"
    assert GIVEN == {"MAX_PROMPT_LEN": 64, "CACHE_DIR": "a"}


def test_a_pipeline_without_a_device_is_rejected(folder: Path) -> None:
    with pytest.raises(TypeError, match="the device is missing"):
        LLMPipeline(folder)


def test_two_devices_are_rejected(folder: Path) -> None:
    with pytest.raises(PropertyError, match="tokenizer is not a Tokenizer"):
        LLMPipeline(folder, "NPU", "CPU")
