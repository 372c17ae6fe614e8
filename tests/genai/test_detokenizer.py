"""Detokenizer: complete characters only; stop strings are found in any tokenisation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_layer.detokenizer import Detokenizer, StopStrings
from genai_layer.testing.toy import EOS, ids_of, is_plain, make_tokenizer

TOKENIZER = make_tokenizer()


def decode(ids: list[int]) -> str:
    return TOKENIZER.decode(ids, skip_special_tokens=True)


def pieces(ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(decode)
    return [*(detokenizer.add(token) for token in ids), detokenizer.flush()]


@given(st.text(max_size=60).filter(is_plain))
def test_returned_texts_joined_are_the_text(text: str) -> None:
    assert "".join(pieces(ids_of(text))) == text


def test_a_character_of_several_bytes_is_returned_at_once() -> None:
    found = pieces(ids_of("a😀b"))
    assert [piece for piece in found if piece] == ["a", "😀", "b"]


@given(st.lists(st.integers(5, 260), max_size=30))
def test_broken_bytes_are_replaced_and_nothing_is_lost(ids: list[int]) -> None:
    joined = "".join(pieces(ids))
    assert joined.replace("\ufffd", "") == decode(ids).replace("\ufffd", "")


def test_special_tokens_have_no_text() -> None:
    assert pieces([*ids_of("a"), EOS]) == ["a", "", ""]


def stopped(chunks: list[str], *stops: str, include: bool = False) -> tuple[str, bool]:
    watcher = StopStrings(stops, include)
    text = "".join(watcher.feed(chunk) for chunk in chunks) + watcher.flush()
    return text, watcher.found


@pytest.mark.parametrize(
    ("chunks", "stops", "expected"),
    [
        (["ab", "cd"], ("bc",), ("a", True)),
        (["a", "b", "c", "d"], ("bc",), ("a", True)),
        (["abab", "ac"], ("abac",), ("ab", True)),
        (["abc"], ("abcd",), ("abc", False)),
        (["ab", "x"], ("abc",), ("abx", False)),
        (["xaby"], ("ab", "b"), ("x", True)),
        (["x\n\ny"], ("\n\n",), ("x", True)),
        (["stop"], ("stop",), ("", True)),
    ],
)
def test_a_stop_string_is_found_and_cut_exactly(chunks, stops, expected) -> None:
    assert stopped(chunks, *stops) == expected


def test_a_stop_string_can_be_kept() -> None:
    assert stopped(["one two three"], "two", include=True) == ("one two", True)


words = st.text("ab", max_size=20)


@given(words, st.lists(st.text("ab", min_size=1, max_size=4), min_size=1), st.randoms())
def test_stop_strings_are_found_in_any_chunking(text, stops, draw) -> None:
    cuts = sorted(draw.randint(0, len(text)) for _ in range(draw.randint(0, 6)))
    edges = [0, *cuts, len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges)]
    assert stopped(chunks, *stops) == stopped(list(text), *stops)
    result, found = stopped(chunks, *stops)
    assert found == any(stop in text for stop in stops)
    assert text.startswith(result)
    assert not any(stop in result for stop in stops)
