"""Languages of a served speech recogniser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from genai_layer import WhisperGenerationConfig
from genai_layer.serve.engine.speech import ServedSpeechModel
from genai_layer.serve.errors import BadRequest

SEVERAL = {"lang_to_id": {"<|en|>": 5, "<|de|>": 6}}
ENGLISH = {"is_multilingual": False}


def model_of(values: dict[str, Any]) -> ServedSpeechModel:
    config = WhisperGenerationConfig(**values)
    pipeline: Any = SimpleNamespace(get_generation_config=lambda: config)
    commons: Any = None
    return ServedSpeechModel("speech", pipeline, commons)


@pytest.mark.parametrize(
    ("values", "code", "parameter"),
    [(SEVERAL, "de", "de"), (SEVERAL, None, None), (ENGLISH, "en", None), (ENGLISH, None, None)],
    ids=str,
)
def test_a_language_of_the_model_is_accepted(
    values: dict[str, Any], code: str | None, parameter: str | None
) -> None:
    assert model_of(values).language_of(code) == parameter


@pytest.mark.parametrize(("values", "known"), [(SEVERAL, "de, en"), (ENGLISH, "en")], ids=str)
def test_another_language_is_rejected_by_name(values: dict[str, Any], known: str) -> None:
    with pytest.raises(BadRequest, match=f"language = 'fr': the model supports {known}$") as caught:
        model_of(values).language_of("fr")
    assert caught.value.param == "language"
