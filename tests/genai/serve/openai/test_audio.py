"""/v1/audio/transcriptions with the official client: forms, formats, WAV files."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import struct
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import openai
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from tests.genai.serve.openai.conftest import Serve
from tests.genai.serve.openai.scripted import ScriptedModels, ScriptedSpeech

from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.audio.form import read_form
from genai_layer.serve.openai.audio.wav import RATE, read_wav

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
RECORDED = json.loads((CLIENTS / "openai_audio-transcriptions.json").read_text())

Transcribe = Callable[..., Any]


def tone(rate: int, hertz: float, seconds: float = 0.5) -> Any:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


def wav(samples: Any, rate: int = RATE, width: int = 2, channels: int = 1) -> bytes:
    """Return a file; samples are from -1 to 1, the channels of a frame after another."""
    words = np.round(np.asarray(samples) * (2.0 ** (8 * width - 1) - 1)).astype("<i4")
    if width == 1:
        words = words + 128
    data = words.view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    with io.BytesIO() as file:
        with wave.open(file, "wb") as writer:
            writer.setparams((channels, width, rate, 0, "NONE", ""))
            writer.writeframes(data)
        return file.getvalue()


SPEECH = wav(tone(RATE, 300))


@pytest.fixture
def speaker(models: ScriptedModels) -> ScriptedSpeech:
    models.speaker = ScriptedSpeech("speech")
    return models.speaker


@pytest.fixture
def transcribe(serve: Serve, speaker: ScriptedSpeech) -> Transcribe:
    """Return the official client's method, with a file and a model."""
    client, _ = serve("x")

    def send(file: bytes = SPEECH, **values: Any) -> Any:
        return client.audio.transcriptions.create(
            file=("a.wav", file), **{"model": "speech", **values}
        )

    return send


def test_a_transcription_is_a_text(transcribe: Transcribe, speaker: ScriptedSpeech) -> None:
    found = transcribe()
    assert (found.text, found.usage.seconds) == ("Hello wörld now.", 0.5)
    audio, parameters = speaker.heard[0]
    np.testing.assert_allclose(audio, tone(RATE, 300), atol=1e-4)
    assert parameters == {
        "language": None,
        "initial_prompt": None,
        "return_timestamps": False,
        "word_timestamps": False,
    }


@pytest.mark.parametrize("request_", RECORDED, ids=range(len(RECORDED)))
def test_requests_of_the_official_client_are_answered(
    http: TestClient, speaker: ScriptedSpeech, request_: Any
) -> None:
    reply = http.request(
        request_["method"],
        request_["path"],
        content=base64.b64decode(request_["body_base64"]),
        headers=request_["headers"],
    )
    assert reply.json()["text"] == "Hello wörld now."
    assert speaker.heard[0][0].shape == (320,)


def test_fields_of_the_form_reach_the_pipeline(
    transcribe: Transcribe, speaker: ScriptedSpeech
) -> None:
    transcribe(language="en", prompt="wörld", temperature=0.5)
    _, first = speaker.heard[0]
    assert (first["language"], first["initial_prompt"]) == ("en", "wörld")
    assert (first["do_sample"], first["temperature"]) == (True, 0.5)
    transcribe(temperature=0.5)
    assert speaker.heard[1][1]["rng_seed"] != first["rng_seed"]
    transcribe(temperature=0)
    assert "do_sample" not in speaker.heard[2][1]


def test_texts_have_times_as_subtitles(transcribe: Transcribe) -> None:
    assert transcribe(response_format="text") == "Hello wörld now.\n"
    begin, end = "01:01:01,250", "01:01:01,250"
    assert transcribe(response_format="srt") == (
        f"1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n{begin} --> {end}\nwörld -> now.\n\n"
    )
    begin, end = begin.replace(",", "."), end.replace(",", ".")
    assert transcribe(response_format="vtt") == (
        f"WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello\n\n{begin} --> {end}\nwörld -> now.\n\n"
    )


@pytest.mark.parametrize("times", [None, ["word"], ["segment"], ["word", "segment"]], ids=str)
def test_a_verbose_transcription_has_the_requested_times(
    transcribe: Transcribe, times: Any
) -> None:
    values = {} if times is None else {"timestamp_granularities": times}
    found = transcribe(wav(tone(RATE, 300, 2)), response_format="verbose_json", **values)
    assert (found.language, found.duration, found.task) == ("en", 2.0, "transcribe")
    wanted = times or ["segment"]
    assert (found.segments is not None) == ("segment" in wanted)
    assert (found.words is not None) == ("word" in wanted)
    if found.segments:
        assert [(one.id, one.start, one.end) for one in found.segments] == [
            (0, 0.0, 1.5),
            (1, 3661.25, 3661.25),
        ]
    if found.words:
        assert [(one.word, one.start, one.end) for one in found.words] == [
            ("Hello", 0.0, 0.5),
            ("now.", 1.0, 2.0),
        ]


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"stream": True}, "stream"),
        ({"response_format": "diarized_json"}, "response_format"),
        ({"timestamp_granularities": ["segment"]}, "timestamp_granularities[]"),
        ({"temperature": 1.5}, "temperature"),
        ({"include": ["logprobs"]}, "include[]"),
        ({"chunking_strategy": "auto"}, "chunking_strategy"),
        ({"extra_body": {"speed": 2}}, "speed"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_rejected_by_name(
    transcribe: Transcribe, values: Any, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        transcribe(**values)
    assert caught.value.param == param


def test_times_of_words_need_a_model_that_has_them(
    transcribe: Transcribe, speaker: ScriptedSpeech
) -> None:
    speaker.times_words = False
    with pytest.raises(openai.BadRequestError, match="-c word_timestamps=true"):
        transcribe(response_format="verbose_json", timestamp_granularities=["word"])


@pytest.mark.parametrize(
    ("width", "channels", "rate"),
    [*itertools.product([1, 2, 3, 4], [1, 2], [RATE]), (2, 1, 8000), (2, 2, 44100), (3, 1, 48000)],
)
def test_a_file_becomes_samples_of_16_khz(width: int, channels: int, rate: int) -> None:
    """A tone below both limits is the same tone; channels are averaged."""
    given = np.stack([tone(rate, 440) * weight for weight in (1.5, 0.5)[:channels]], -1)
    found = read_wav(wav(given, rate, width, channels))
    expected = tone(RATE, 440) * (1.5 if channels == 1 else 1)
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    inner = slice(200, -200)  # the ends of another rate have ripples
    np.testing.assert_allclose(found[inner], expected[inner], atol=2e-2 if width == 1 else 2e-3)


@pytest.mark.parametrize("width", [2, 3])
def test_both_headers_of_pcm_are_read(width: int) -> None:
    """The later header, of 24 bytes more, is ffmpeg's for more than 16 bits or two channels."""
    plain = wav(tone(RATE, 440), width=width)
    more = struct.pack("<HHI", 22, 8 * width, 4) + bytes.fromhex("0100000000001000800000aa00389b71")
    size = struct.pack("<I", len(plain) + 24 - 8)
    form = struct.pack("<IH", 40, 0xFFFE) + plain[22:36] + more
    later = plain[:4] + size + plain[8:16] + form + plain[36:]
    np.testing.assert_array_equal(read_wav(later), read_wav(plain))


def test_the_size_of_a_stream_is_that_of_the_file() -> None:
    streamed = SPEECH[:40] + b"\xff" * 4 + SPEECH[44:]
    np.testing.assert_array_equal(read_wav(streamed), read_wav(SPEECH))


def test_a_tone_above_the_limit_is_silent() -> None:
    assert np.abs(read_wav(wav(tone(48000, 12000), 48000))[200:-200]).max() < 2e-3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"ID3\x04abc", "MP3 is not supported"),
        (b"OggS\0", "Ogg is not supported"),
        (b"\0\0\0\x20ftypM4A ", "MP4 (m4a) is not supported"),
        (b"", "no WAV file of PCM samples (it ends early)"),
        (SPEECH[:20] + b"\x03" + SPEECH[21:], "no WAV file of PCM samples (unknown format: 3)"),
        (SPEECH[:1001], "the file ends after 957 of 16000 bytes of samples"),
        (wav([0.0] * 9, 100), "16 bits and 100 Hz are not supported"),
    ],
)
def test_other_files_are_rejected_with_the_command_that_converts_them(
    data: bytes, reason: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        read_wav(data)
    assert str(caught.value).startswith(f"file: {reason}; convert it, e.g. ffmpeg")


@given(st.integers(0, 43), st.binary(min_size=1, max_size=4), st.integers(0, 60))
def test_a_damaged_file_is_read_or_rejected(place: int, patch: bytes, size: int) -> None:
    data = bytearray(wav([0.25] * 8))
    data[place : place + len(patch)] = patch
    for one in (bytes(data), bytes(data[:size])):
        with contextlib.suppress(BadRequest):
            assert read_wav(one).ndim == 1


NAMES = st.from_regex(r"[a-z_ ;=]{1,9}(\[\])?", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8"))


@given(
    st.dictionaries(NAMES, VALUES, max_size=20),
    st.dictionaries(st.from_regex(r"[A-Z]{1,9}", fullmatch=True), st.binary(), max_size=20),
)
def test_a_form_has_what_a_client_put_in(fields: dict[str, str], files: dict[str, bytes]) -> None:
    """The client httpx2 writes the form."""
    named = {"file": b"\r\n--\r\n", **files}
    uploads = {name: ('Zürich "1".wav', data) for name, data in named.items()}
    request = httpx2.Request("POST", "http://x", data=fields, files=uploads)
    found = read_form(request.headers["content-type"], request.read())
    expected = {name: [value] if name.endswith("[]") else value for name, value in fields.items()}
    assert found.fields == expected
    assert found.files == named


BEGIN = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
MANY = BEGIN.replace(b"model", b"include[]") + b"\r\n"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("application/json", b"{}", "Content-Type: 'application/json' is no form"),
        ("multipart/form-data", b"", "Content-Type: 'multipart/form-data' is no form"),
        ("multipart/form-data; boundary=b", b"", "body: the form has no end"),
        ("multipart/form-data; boundary=b", BEGIN + b"speech", "body: the form has no end"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nx\r\n--b--", "body: a part of the form"),
        ("multipart/form-data; boundary=b", BEGIN + b"\xff\r\n--b--", "model: is no UTF-8"),
        ("multipart/form-data; boundary=b", BEGIN + b"\r\n" + BEGIN + b"\r\n--b--", "model: given"),
        ("multipart/form-data; boundary=b", MANY * 65 + b"--b--", "body: the form has no end, or"),
        ("multipart/form-data; boundary=b", BEGIN + b"a\r\n--b--", "file: the form needs one"),
    ],
)
def test_a_body_that_is_no_form_is_rejected(
    http: TestClient, kind: str, body: bytes, message: str
) -> None:
    reply = http.post("/v1/audio/transcriptions", content=body, headers={"content-type": kind})
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(message)
