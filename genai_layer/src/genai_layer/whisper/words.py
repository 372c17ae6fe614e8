"""Words of a window's text, with their times, from the scores of the decoder's cross-attention.

Each token is assigned to the frames of audio that the alignment heads attend to when the decoder
reads the token. Dynamic time warping makes the assignment monotone.

Source: docs/reference/genai.md#timestamps-of-words; the rules are those of openai/whisper.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from genai_layer.whisper.results import WhisperWordTiming

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

_MEDIAN = 7
"""Frames of the median filter."""
_LEAST_DEVIATION = np.float32(1e-6)
_DIAGONAL, _NEXT_TOKEN, _NEXT_FRAME = 0, 1, 2


def first_frames(scores: Floats, skipped: int) -> Indices:
    """Return the frame at which each token begins, [tokens - skipped - 1].

    Args:
        scores: scores before the softmax, f32 [heads, tokens, frames].
        skipped: number of first tokens without a time; the last token has none either.
    """
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    deviations = np.maximum(weights.std(1, keepdims=True), _LEAST_DEVIATION)
    weights = (weights - weights.mean(1, keepdims=True)) / deviations
    costs = -_smoothed(weights).mean(0)[skipped:-1]
    tokens, frames = warp(costs)
    begins = np.flatnonzero(np.diff(tokens, prepend=-1))
    return frames[begins]


def _smoothed(values: Floats) -> Floats:
    """Filter the last axis by the median of neighbours; at its ends, of those that exist."""
    reach, frames = _MEDIAN // 2, values.shape[-1]
    found = np.empty_like(values)
    if frames >= _MEDIAN:
        windows = np.lib.stride_tricks.sliding_window_view(values, _MEDIAN, -1)
        found[..., reach : frames - reach] = np.median(windows, -1)
    for frame in {*range(min(reach, frames)), *range(max(frames - reach, 0), frames)}:
        found[..., frame] = np.median(values[..., max(frame - reach, 0) : frame + reach + 1], -1)
    return found


def warp(costs: Floats) -> tuple[Indices, Indices]:
    """Return the cheapest monotone path through costs, as rows and columns from first to last.

    As in openai/whisper, the next frame wins every tie.

    Args:
        costs: f32 [rows, columns], neither 0.
    """
    rows, columns = (int(length) for length in costs.shape)
    total = np.full((rows + 1, columns + 1), np.inf, np.float32)
    total[0, 0] = 0
    steps = np.full(total.shape, _NEXT_FRAME, np.int8)
    steps[:, 0] = _NEXT_TOKEN
    # Entries of an antidiagonal depend on those of the two before it alone.
    for both in range(2, rows + columns + 1):
        row = np.arange(max(1, both - columns), min(rows, both - 1) + 1)
        column = both - row
        diagonal = total[row - 1, column - 1]
        above, left = total[row - 1, column], total[row, column - 1]
        by_diagonal = (diagonal < above) & (diagonal < left)
        by_above = (above < diagonal) & (above < left)
        cheapest = np.where(by_diagonal, diagonal, np.where(by_above, above, left))
        steps[row, column] = np.where(
            by_diagonal, _DIAGONAL, np.where(by_above, _NEXT_TOKEN, _NEXT_FRAME)
        )
        total[row, column] = costs[row - 1, column - 1] + cheapest
    return _traced(steps)


def _traced(steps: npt.NDArray[np.int8]) -> tuple[Indices, Indices]:
    """Follow the steps from the last entry to the first."""
    row, column = (length - 1 for length in steps.shape)
    path: list[tuple[int, int]] = []
    while row or column:
        path.append((max(row - 1, 0), max(column - 1, 0)))
        step = int(steps[row, column])
        row -= int(step != _NEXT_FRAME)
        column -= int(step != _NEXT_TOKEN)
    rows, columns = zip(*reversed(path), strict=True)
    return np.array(rows), np.array(columns)


_SECONDS = 0.02
"""Seconds per frame of the encoder's output."""
_INCOMPLETE = "\ufffd"
_WITHOUT_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Languages that are written without spaces: each character is a word."""
_BEFORE = "\"'“¿([{-"
_AFTER = frozenset("\"'.,!?:)]}")
_ENDS = ".。!！?？"
_LONGEST_MEDIAN = 0.7
"""Limit of the median duration, in seconds."""

Word = tuple[str, list[int]]
"""Text and tokens."""


def timed_words(
    scores: Floats, skipped: int, words: Sequence[Word], offset: float
) -> list[WhisperWordTiming]:
    """Return the words of a window with their times in seconds.

    Args:
        scores: scores of the alignment heads, f32 [heads, tokens, frames], for tokens that
            precede the text, the token for no timestamps, and the text with its end token.
        skipped: number of tokens before that for no timestamps.
        words: ``split_words`` of the text; the last is the end token.
        offset: beginning of the window in seconds.
    """
    if not scores.shape[-1] or len(words) < 2:
        return []
    times = first_frames(scores, skipped) * _SECONDS + offset
    bounds = np.cumsum([0, *(len(tokens) for _, tokens in words[:-1])])
    found = [
        WhisperWordTiming(word, tokens, float(times[begin]), float(times[end]))
        for (word, tokens), (begin, end) in zip(words, pairwise(bounds), strict=False)
    ]
    _shorten(found)
    return _joined(found)


def split_words(
    tokens: Sequence[int], language: str, end: int, decode: Callable[[list[int]], str]
) -> list[Word]:
    """Split tokens into words.

    Args:
        tokens: text tokens and the end token.
        language: e.g. "en".
        end: the end token; it and later tokens are words of their own.
        decode: returns the text of ids, special tokens included.
    """
    parts = _characters(tokens, decode)
    if language in _WITHOUT_SPACES:
        return parts
    words: list[Word] = []
    for text, ids in parts:
        bare = text.strip(string.whitespace)
        begins = text[:1] in string.whitespace if text else False
        mark = len(bare) == 1 and bare in string.punctuation
        if not words or ids[0] >= end or begins or mark:
            words.append((text, ids))
        else:
            before, earlier = words[-1]
            words[-1] = before + text, earlier + ids
    return words


def _characters(tokens: Sequence[int], decode: Callable[[list[int]], str]) -> list[Word]:
    """Split tokens where no character is divided; tokens of an incomplete one are left out."""
    parts: list[Word] = []
    held: list[int] = []
    for token in tokens:
        held.append(token)
        text = decode(held)
        if _INCOMPLETE not in text:
            parts.append((text, held))
            held = []
    return parts


def _shorten(words: Sequence[WhisperWordTiming]) -> None:
    """Shorten words beside the end of a sentence that last twice as long as others."""
    durations = [word.end_ts - word.start_ts for word in words]
    spoken = [duration for duration in durations if duration > 0]
    if not spoken:
        return
    longest = 2 * min(_LONGEST_MEDIAN, float(np.median(spoken)))
    for before, word in pairwise(words):
        if word.end_ts - word.start_ts <= longest:
            continue
        if word.word in _ENDS:
            word.end_ts = word.start_ts + longest
        elif before.word in _ENDS:
            word.start_ts = word.end_ts - longest


def _joined(words: Sequence[WhisperWordTiming]) -> list[WhisperWordTiming]:
    """Join punctuation with the words beside it, whose times are kept."""
    found = list(words)
    for index in range(len(found) - 2, -1, -1):
        mark, word = found[index], found[index + 1]
        if len(mark.word) > 1 and mark.word[0] == " " and mark.word[1:] in _BEFORE:
            word.word, word.token_ids = mark.word + word.word, mark.token_ids + word.token_ids
            del found[index]
    kept: list[WhisperWordTiming] = []
    for word in found:
        if kept and word.word in _AFTER and not kept[-1].word.endswith(" "):
            kept[-1].word += word.word
            kept[-1].token_ids = kept[-1].token_ids + word.token_ids
        else:
            kept.append(word)
    return [word for word in kept if word.word]
