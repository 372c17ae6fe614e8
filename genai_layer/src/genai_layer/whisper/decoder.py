"""Decoder: one window of audio to tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.task import Sink
from genai_layer.detokenizer import Detokenizer
from genai_layer.errors import RuntimeFailure
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.runtime import Array, InferRequest, last_logits
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler
from genai_layer.streamers import StreamingStatus
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.timestamps import constrain_timestamps


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens of a window, including the end-of-text token."""

    tokens: list[int]
    status: StreamingStatus


class Decoder:
    """Decoder of audio windows.

    Args:
        request: request of the decoder model.
        positions: maximum number of tokens in prompt and text together.
        raw: collects the measurements.
    """

    def __init__(self, request: InferRequest, positions: int, raw: RawPerfMetrics) -> None:
        self._request = request
        self._positions = positions
        self._raw = raw

    def detect_language(self, states: Array, config: WhisperGenerationConfig) -> str:
        """Return the likeliest language, as a key of ``lang_to_id``.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        self.reset()
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
        self.reset()
        sampler, history = Sampler(config), TokenHistory(prompt)
        room = self._positions - len(prompt)
        limit = min(config.get_max_new_tokens(len(prompt)), max(room, 1))
        logits = self._infer(prompt, states)
        while True:
            allowed = _suppressed(logits, history, config)
            if timestamps:
                allowed = constrain_timestamps(allowed, history.generated, config)
            token = sampler.next_token(allowed, history)
            history.generated.append(token)
            ended = token in config.stop_token_ids and not config.ignore_eos
            status = StreamingStatus.RUNNING if ended else sink(token)
            if ended or status is not StreamingStatus.RUNNING or len(history.generated) >= limit:
                return Decoded(history.generated, status)
            logits = self._infer([token], states)

    def reset(self) -> None:
        """Reset the state.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        try:
            self._request.reset_state()
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error

    def _infer(self, tokens: list[int], states: Array) -> Logits:
        watch = Stopwatch()
        inputs = {
            "input_ids": np.array([tokens], np.int64),
            "encoder_hidden_states": states,
            "beam_idx": np.zeros(1, np.int32),
        }
        try:
            self._request.infer(inputs)
            logits = last_logits(self._request)
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error
        self._raw.token_infer_durations.append(watch.microseconds())
        return logits


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
