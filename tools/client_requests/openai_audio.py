"""OpenAI's own client, with audio."""

from __future__ import annotations

import io
import wave
from typing import Any

import openai

from client_requests.replies import as_json

CLIENT = DISTRIBUTION = "openai"


def _silence() -> bytes:
    """Return a WAV file of 20 ms."""
    with io.BytesIO() as file:
        with wave.open(file, "wb") as writer:
            writer.setparams((1, 2, 16000, 0, "NONE", ""))
            writer.writeframes(bytes(640))
        return file.getvalue()


def _transcriptions(base_url: str) -> None:
    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)
    create = client.audio.transcriptions.create
    values: Any = {"model": "speech", "file": ("speech.wav", _silence())}
    create(**values)
    create(
        **values, language="en", prompt="Zürich", temperature=0.2, response_format="verbose_json"
    )
    create(**values, response_format="verbose_json", timestamp_granularities=["word", "segment"])


REPLIES = {"/v1/audio/transcriptions": lambda _: as_json({"text": "It is 7."})}
CASES = {"transcriptions": _transcriptions}
