"""Words of a transcription, and punctuation beside them."""

from __future__ import annotations

import numpy as np

from genai_layer.whisper.words import Word, split_words, timed_words

END = 100
TEXTS = {0: " Hel", 1: "lo", 2: ",", 3: " wor", 4: "ld", 5: "!", 6: ' "', 7: " a", END: "<end>"}
HALVES = {10: b" \xc3", 11: b"\xa9", 12: "日".encode(), 13: "本".encode()}


def decode(ids: list[int]) -> str:
    parts = (HALVES.get(each) or TEXTS[each].encode() for each in ids)
    return b"".join(parts).decode(errors="replace")


def split(*tokens: int, language: str = "en") -> list[Word]:
    return split_words([*tokens, END], language, END, decode)


def timed(*tokens: int) -> list[str]:
    """Return words with times, for attention that moves ten frames per token."""
    scores = np.zeros((1, len(tokens) + 3, 10 * (len(tokens) + 1)), np.float32)
    for index in range(len(tokens) + 1):
        scores[0, index + 1, 10 * index : 10 * index + 10] = 9
    return [each.word for each in timed_words(scores, 1, split(*tokens), 30.0)]


def test_words_begin_with_spaces_and_punctuation_stands_alone() -> None:
    assert split(0, 1, 2, 3, 4, 5) == [
        (" Hello", [0, 1]),
        (",", [2]),
        (" world", [3, 4]),
        ("!", [5]),
        ("<end>", [END]),
    ]


def test_a_character_is_never_divided() -> None:
    assert split(10, 11)[0] == (" é", [10, 11])


def test_without_spaces_each_character_is_a_word() -> None:
    assert [text for text, _ in split(12, 13, language="ja")] == ["日", "本", "<end>"]
    assert [text for text, _ in split(12, 13)] == ["日本", "<end>"]


def test_punctuation_joins_the_word_beside_it() -> None:
    assert timed(0, 1, 2, 3, 4, 5) == [" Hello,", " world!"]
    assert timed(6, 7, 2) == [' " a,']


def test_words_follow_each_other_from_the_beginning_of_the_window() -> None:
    scores = np.random.RandomState(2).standard_normal((2, 7, 50)).astype(np.float32)
    words = timed_words(scores, 1, split(0, 1, 3, 4), 30.0)
    assert [each.token_ids for each in words] == [[0, 1], [3, 4]]
    assert words[0].end_ts == words[1].start_ts
    assert all(30.0 <= each.start_ts <= each.end_ts <= 31.0 for each in words)


def test_no_audio_or_no_text_has_no_words() -> None:
    assert timed_words(np.zeros((1, 4, 0), np.float32), 1, split(7), 0.0) == []
    assert timed_words(np.zeros((1, 3, 9), np.float32), 1, split(), 0.0) == []
