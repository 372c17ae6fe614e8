"""Transcription of one audio, window by window.

How it works. The spectrogram is read in windows of 30 seconds. Long audio always generates
timestamps, as the next window begins at the end of the last complete segment.
"""

from __future__ import annotations

from collections.abc import Callable

from genai_layer.errors import PromptError
from genai_layer.runtime import Array
from genai_layer.streamers import StreamingStatus
from genai_layer.whisper.decoder import Decoder, Segment, TokenText, cut_segments
from genai_layer.whisper.features import Audio, window
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.models import WhisperModels
from genai_layer.whisper.results import Recorder, WhisperWordTiming
from genai_layer.whisper.words import split_words, timed_words

_FRAMES_OF_A_STATE = 2
"""Frames of the spectrogram per hidden state of the encoder."""


class Transcription:
    """Transcription of one audio.

    Args:
        models: the models.
        config: validated parameters.
        recorder: collects the measurements.
        text: receives the tokens of the text.
    """

    def __init__(
        self,
        models: WhisperModels,
        config: WhisperGenerationConfig,
        recorder: Recorder,
        text: TokenText,
    ) -> None:
        self._models = models
        self._config = config
        self._recorder = recorder
        self._decoder = Decoder(models.decoder, models.folder.target_positions, recorder)
        self._text = text
        self._begin: list[int] = []
        self.language = "en"
        self.tokens: list[int] = []
        self.segments: list[Segment] = []
        self.words: list[WhisperWordTiming] = []

    def run(self, audio: Audio) -> None:
        """Transcribe all windows.

        Raises:
            PromptError: the audio is too short, or the context is too long.
            RuntimeFailure: the runtime failed.
        """
        config, extractor = self._config, self._models.folder.features
        with self._recorder.measure(self._recorder.speech.features_extraction_durations):
            features = extractor.extract(audio)
        length, frames = features.shape[1], extractor.nb_max_frames
        timestamps = config.return_timestamps or length > frames
        seconds = extractor.hop_length / extractor.sampling_rate
        step = extractor.chunk_length / self._models.folder.source_positions
        first, frame, status = config.first_timestamp, 0, StreamingStatus.RUNNING
        sink: Callable[[int], StreamingStatus] = _go_on if timestamps else self._text
        while frame < length and status is StreamingStatus.RUNNING:
            with self._recorder.measure(self._recorder.speech.encode_inference_durations):
                states = self._models.encode(window(features, frame, frames))
            prompt = self._prompt(states, frame, timestamps)
            found = self._decoder.decode(states, prompt, config, timestamps, sink)
            status, begin = found.status, frame
            if timestamps:
                cut = cut_segments(found.tokens, first, frames, step, frame * seconds)
                self.segments += cut.parts
                self.tokens += cut.tokens
                for token in cut.tokens:
                    status = max(status, self._text(token), key=int)
                frame += cut.frames
            else:
                self.tokens += found.tokens
                frame = length
            if config.word_timestamps and status is StreamingStatus.RUNNING:
                heard = min(frames, len(audio) // extractor.hop_length - begin)
                with self._recorder.measure(self._recorder.words):
                    self.words += self._words(states, found.tokens, heard, begin * seconds)
        self._text.end()

    def _words(
        self, states: Array, tokens: list[int], frames: int, offset: float
    ) -> list[WhisperWordTiming]:
        """Return the words of a window with their times.

        Args:
            states: hidden states of the encoder.
            tokens: the generated tokens.
            frames: number of frames of the spectrogram that are not silence after the audio.
            offset: beginning of the window in seconds.
        """
        config, models = self._config, self._models
        before = [*self._begin, config.no_timestamps_token_id]
        room = models.folder.target_positions - len(before) - 2  # of 448 positions 447 are read
        text = [token for token in tokens if token < config.eos_token_id][:room]
        text.append(config.eos_token_id)
        scores = self._decoder.scores(states, [*before, *text], config.alignment_heads)
        words = split_words(
            text,
            self.language,
            config.eos_token_id,
            lambda ids: models.tokenizer.decode(ids, skip_special_tokens=False),
        )
        states_heard = frames // _FRAMES_OF_A_STATE
        return timed_words(scores[..., :states_heard], len(self._begin), words, offset)

    def _prompt(self, states: Array, frame: int, timestamps: bool) -> list[int]:
        """Return the prompt of a window.

        Raises:
            PromptError: the prompt leaves no position for a token.
        """
        config = self._config
        self._begin = self._begin or self._beginning(states)
        context = self._models.words(config.initial_prompt) if frame == 0 else []
        context += self._models.words(config.hotwords)
        before = [config.prev_sot_token_id, *context] if context else []
        prompt = [*before, *self._begin]
        prompt += [] if timestamps else [config.no_timestamps_token_id]
        positions = self._models.folder.target_positions
        if len(prompt) >= positions:
            raise PromptError(
                f"the prompt fills {len(prompt)} of {positions} positions; shorten "
                "initial_prompt or hotwords"
            )
        return prompt

    def _beginning(self, states: Array) -> list[int]:
        """Return start, language and task tokens; the language is detected if it is not set."""
        config = self._config
        if not config.is_multilingual:
            return [config.decoder_start_token_id]
        language = config.language or self._decoder.detect_language(states, config)
        self.language = language.strip("<|>")
        token = config.language_token_id(language)
        return [config.decoder_start_token_id, token, config.task_token_id]


def _go_on(token: int) -> StreamingStatus:
    del token
    return StreamingStatus.RUNNING
