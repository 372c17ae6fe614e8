"""WAV files as samples of 16 kHz; other containers are rejected by name."""

from __future__ import annotations

import io
import wave

import numpy as np
import numpy.typing as npt

from genai_layer.serve.errors import BadRequest
from genai_layer.whisper.features import Audio

RATE = 16000
"""Samples per second that the models read."""

_LOWEST, _HIGHEST = 8000, 384000
"""Sampling rates of files."""
_REMEDY = "convert it, e.g. ffmpeg -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav"
_CONTAINERS = {
    (0, b"fLaC"): "FLAC",
    (0, b"OggS"): "Ogg",
    (0, b"ID3"): "MP3",
    (0, b"\xff\xfb"): "MP3",
    (4, b"ftyp"): "MP4 (m4a)",
    (0, b"\x1aE\xdf\xa3"): "WebM",
}
"""Names of other containers by the place of their mark."""

_PLAIN, _EXTENSIBLE = b"\x01\x00", b"\xfe\xff"
"""Formats of samples: PCM, and the one that an identifier names."""
_PCM = bytes.fromhex("0100000000001000800000aa00389b71")
"""Identifier of PCM (KSDATAFORMAT_SUBTYPE_PCM)."""
_STREAMED = 0x7FFFF000
"""Bytes from which a size stands for an unknown one, as programs write that cannot go back."""


def read_wav(data: bytes) -> Audio:
    """Return the samples of a file, f32 [samples], from -1 to 1; channels are averaged.

    Raises:
        BadRequest: the file is no WAV file of PCM samples.
    """
    for (place, mark), name in _CONTAINERS.items():
        if data.startswith(mark, place):
            raise _rejected(f"{name} is not supported")
    try:
        with wave.open(io.BytesIO(_plain(data))) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            size = file.getnframes() * channels * width
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:  # a chunk beyond the end: RuntimeError
        reason = str(error) or "it ends early"
        raise _rejected(f"no WAV file of PCM samples ({reason})") from None
    if not _LOWEST <= rate <= _HIGHEST or width > 4:
        raise _rejected(f"{8 * width} bits and {rate} Hz are not supported")
    if len(frames) < size < _STREAMED:
        raise _rejected(f"the file ends after {len(frames)} of {size} bytes of samples")
    whole = len(frames) // (channels * width) * channels * width
    samples = _samples(np.frombuffer(frames[:whole], np.uint8), width)
    return resampled(samples.reshape(-1, channels).mean(1, np.float64), rate)


def _plain(data: bytes) -> bytes:
    """Return a file of PCM samples with the older of its two headers, which Python 3.11 reads."""
    begin = data.find(b"fmt ") + 8
    if data[begin : begin + 2] == _EXTENSIBLE and data[begin + 24 : begin + 40] == _PCM:
        return data[:begin] + _PLAIN + data[begin + 2 :]
    return data


def _rejected(problem: str) -> BadRequest:
    return BadRequest(f"file: {problem}; {_REMEDY}", param="file")


def _samples(data: npt.NDArray[np.uint8], width: int) -> npt.NDArray[np.float64]:
    """Return little-endian integers of so many bytes as numbers from -1 to 1."""
    if width == 1:
        data = data ^ np.uint8(0x80)  # samples of 8 bits are unsigned
    words = np.zeros((len(data) // width, 4), np.uint8)
    words[:, 4 - width :] = data.reshape(-1, width)
    return words.view("<i4")[:, 0] / 2.0**31


def resampled(samples: npt.NDArray[np.float64], rate: int) -> Audio:
    """Return samples of 16 kHz: the same spectrum, up to the lower of the two limits.

    Args:
        samples: the samples, [samples].
        rate: samples per second.
    """
    count = round(len(samples) * RATE / rate)
    if count in (0, len(samples)):
        return samples[:count].astype(np.float32)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return (np.fft.irfft(spectrum, count) * (count / len(samples))).astype(np.float32)
