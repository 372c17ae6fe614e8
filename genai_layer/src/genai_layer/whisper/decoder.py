"""Decoder: one window of audio to tokens, and timestamp tokens.

Timestamps constrain logits, and divide a text into segments.

Source: the rules of openai/whisper, as openvino_genai has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from genai_layer.decoding.reads import Sink
from genai_layer.detokenizer import Detokenizer
from genai_layer.errors import ConfigError, runtime_failures
from genai_layer.runtime import Array, InferRequest, last_logits
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler
from genai_layer.streamers import StreamingStatus
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.results import Recorder

_FRAMES_OF_A_STEP = 2
"""Frames of the spectrogram per timestamp step."""

OPEN_END = -1.0
"""End of a segment that continues beyond the audio."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment of a text between two timestamps, in seconds."""

    tokens: list[int]
    start: float
    end: float


@dataclass(slots=True)
class Segments:
    """Segments of a window's text."""

    parts: list[Segment] = field(default_factory=list[Segment])
    frames: int = 0
    """Frames from the window's beginning to the next window's."""

    @property
    def tokens(self) -> list[int]:
        """Tokens of all segments, without timestamps."""
        return [token for part in self.parts for token in part.tokens]


def constrain_timestamps(
    logits: Logits, generated: Sequence[int], config: WhisperGenerationConfig
) -> Logits:
    """Forbid tokens that would violate the rules for timestamps.

    Timestamps come in pairs, except at the end, and never decrease. A text begins with one. If all
    timestamps together are likelier than any other token, only timestamps are allowed.
    """
    first, allowed = config.first_timestamp, logits.copy()
    allowed[config.no_timestamps_token_id] = -np.inf
    times = [token for token in generated if token >= first]
    last_is_time = bool(generated) and generated[-1] >= first
    alone = last_is_time and len(generated) > 1 and generated[-2] < first
    if alone:
        allowed[: config.eos_token_id] = -np.inf
    elif last_is_time:
        allowed[first:] = -np.inf
    if times:
        allowed[first : times[-1] + (0 if alone else 1)] = -np.inf
    if not generated:
        allowed[:first] = -np.inf
        allowed[first + config.max_initial_timestamp_index + 1 :] = -np.inf
    if _log_sum(allowed[first:]) > allowed[:first].max():
        allowed[:first] = -np.inf
    return allowed


def _log_sum(logits: Logits) -> float:
    """Return the logarithm of the sum of the logits' exponentials."""
    highest = float(logits.max(initial=-np.inf))
    if not np.isfinite(highest):
        return highest
    return highest + float(np.log(np.exp(logits - highest, dtype=np.float64).sum()))


def cut_segments(
    tokens: Sequence[int], first: int, frames: int, step: float, offset: float
) -> Segments:
    """Divide a window's text at its timestamps.

    Args:
        tokens: the generated tokens.
        first: the token of the timestamp 0.
        frames: number of frames in the window.
        step: seconds per timestamp step.
        offset: beginning of the window in seconds.
    """
    found = Segments()
    begin: int | None = None
    for index, token in enumerate(tokens):
        if token < first:
            continue
        if begin is None:
            begin = index
        elif tokens[begin] != token:  # a repeated timestamp counts once
            start, end = ((each - first) * step + offset for each in (tokens[begin], token))
            found.parts.append(Segment([*tokens[begin + 1 : index]], start, end))
            found.frames = (token - first) * _FRAMES_OF_A_STEP
            begin = None
    if begin is None:
        found.frames = frames
    elif not found.parts and begin < len(tokens) - 1:
        start = (tokens[begin] - first) * step + offset
        found.parts.append(Segment([*tokens[begin + 1 :]], start, OPEN_END))
        found.frames = frames
    # A window without further segments is not read again.
    found.frames = found.frames or frames
    return found


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens of a window, including the end-of-text token."""

    tokens: list[int]
    status: StreamingStatus


class Decoder:
    """Decoder of audio windows.

    Args:
        request_for: returns a request of a decoder model that reads a prompt of so many tokens.
        positions: maximum number of tokens in prompt and text together.
        recorder: collects the measurements.
    """

    def __init__(
        self, request_for: Callable[[int], InferRequest], positions: int, recorder: Recorder
    ) -> None:
        self._request_for = request_for
        self._request = request_for(1)
        self._positions = positions
        self._recorder = recorder

    def detect_language(self, states: Array, config: WhisperGenerationConfig) -> str:
        """Return the likeliest language, as a key of ``lang_to_id``.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        self._begin(1)
        with self._recorder.measure(self._recorder.detections):
            logits = self._infer([config.decoder_start_token_id], states)
        return max(config.lang_to_id, key=lambda name: _known(logits, config.lang_to_id[name]))

    def decode(
        self,
        states: Array,
        prompt: list[int],
        config: WhisperGenerationConfig,
        timestamps: bool,
        sink: Callable[[int], StreamingStatus],
    ) -> Decoded:
        """Decode one window.

        Args:
            states: hidden states of the encoder.
            prompt: language, task and context tokens.
            config: validated parameters.
            timestamps: True if the text contains timestamp tokens.
            sink: receives each token; its status may end the text.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        self._begin(len(prompt))
        sampler, history = Sampler(config), TokenHistory(prompt)
        room = self._positions - len(prompt)
        limit = min(config.get_max_new_tokens(len(prompt)), max(room, 1))
        logits = self._next_logits(prompt, states)
        while True:
            with self._recorder.measure(self._recorder.raw.sampling_durations):
                allowed = _suppressed(logits, history, config)
                if timestamps:
                    allowed = constrain_timestamps(allowed, history.generated, config)
                token = sampler.next_token(allowed, history)
            history.generated.append(token)
            self._recorder.tokens.note()
            ended = token in config.stop_token_ids and not config.ignore_eos
            status = StreamingStatus.RUNNING if ended else sink(token)
            if ended or status is not StreamingStatus.RUNNING or len(history.generated) >= limit:
                return Decoded(history.generated, status)
            logits = self._next_logits([token], states)

    def scores(self, states: Array, tokens: list[int], heads: Sequence[tuple[int, int]]) -> Array:
        """Return the scores of cross-attention before the softmax, f32 [heads, tokens, frames].

        Args:
            states: hidden states of the encoder.
            tokens: all tokens of a new text.
            heads: layer and head of each result.

        Raises:
            ConfigError: the decoder has no such layer or head.
            RuntimeFailure: the runtime failed.
        """
        self._begin(len(tokens))
        self._infer(tokens, states)
        return np.array([self._scores_of(*each) for each in heads], np.float32)

    def _scores_of(self, layer: int, head: int) -> Array:
        try:
            found = self._request.get_tensor(f"cross_attention_qk_scaled_scores_{layer}")
            return found.data[0, head]
        except (RuntimeError, IndexError):
            raise ConfigError(
                f"alignment_heads has ({layer}, {head}): the decoder has no such layer or head; "
                "take those of its generation_config.json"
            ) from None

    def _begin(self, prompt: int) -> None:
        """Begin a new text with a prompt of so many tokens."""
        self._request = self._request_for(prompt)
        with runtime_failures():
            self._request.reset_state()

    def _next_logits(self, tokens: list[int], states: Array) -> Logits:
        raw, speech = self._recorder.raw, self._recorder.speech
        with self._recorder.measure(raw.token_infer_durations, speech.decode_inference_durations):
            return self._infer(tokens, states)

    def _infer(self, tokens: list[int], states: Array) -> Logits:
        inputs = {
            "input_ids": np.array([tokens], np.int64),
            "encoder_hidden_states": states,
            "beam_idx": np.zeros(1, np.int32),
        }
        with runtime_failures():
            self._request.infer(inputs)
            return last_logits(self._request)


class TokenText:
    """Adapter that decodes tokens and passes complete text to a sink.

    Args:
        decode: returns the text of ids.
        sink: receives tokens and text.
    """

    def __init__(self, decode: Callable[[list[int]], str], sink: Sink) -> None:
        self._detokenizer = Detokenizer(decode)
        self._sink = sink

    def __call__(self, token: int) -> StreamingStatus:
        """Receive a token; return the status of the caller's streamer."""
        return self._sink.write(token, self._detokenizer.add(token))

    def end(self) -> None:
        """Pass on the remaining text."""
        self._sink.end(self._detokenizer.flush())


def _suppressed(logits: Logits, history: TokenHistory, config: WhisperGenerationConfig) -> Logits:
    """Forbid suppressed tokens, and at the beginning those that no text begins with."""
    first = () if history.generated else config.begin_suppress_tokens
    forbidden = [*config.suppress_tokens, *first]
    allowed = logits.copy()
    allowed[[token for token in forbidden if token < len(logits)]] = -np.inf
    return allowed


def _known(logits: Logits, token: int) -> float:
    return float(logits[token]) if token < len(logits) else -np.inf
