"""Patterns of PCRE2 mean the same in Oniguruma after translation.

The real ops are compared over all characters in tests/oracle/test_live_tokenizers.py.
"""

from __future__ import annotations

import pytest
from tokenizers import Regex, normalizers

from genai_layer.openvino_tokenizer.patterns import translate


def matches(pattern: str, text: str) -> str:
    """Return the text with ``#`` for each match."""
    return normalizers.Replace(Regex(translate(pattern)), "#").normalize_str(text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a", "a\na", "#\na"),  # Oniguruma: at each line
        ("a$", "a\na", "a\n#"),
        (r"[\x7F-\x9F]", "a\x80b", "a#b"),  # Oniguruma: a byte
        (r"\w+", "aः1_", "#ः#"),  # Oniguruma: all marks
        (r"[^\s\w]", "aः ", "a# "),
        (r"\s", "\u180e", "#"),
        (r"\S", "a\u180e", "#\u180e"),
        (r"\p{Han}", "々a漢", "#a#"),  # PCRE2: script extensions
        (r"[a[]", "[", "#"),  # Oniguruma: a nested class
        ("(?:abc)+(?=!)(?<=c)", "abcabc!", "#!"),
        (r"[(?<]+", "(?<", "#"),
        (r"(?i:'S)|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*", "'s1234 !\n", "####"),
    ],
)
def test_a_pattern_keeps_its_meaning(pattern: str, text: str, expected: str) -> None:
    assert matches(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\h", r"\R", r"\1", r"\Q.\E", r"(?P<a>b)", "(?#a)", "(?i)a", "a{1,2}+"),
        *(r"[\S]", "[[:alpha:]]", "[a&&b]", r"\p{Greek}", "[a", "[]a]"),
    ],
)
def test_a_pattern_that_may_change_its_meaning_is_rejected(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"support|does not end"):
        translate(pattern)
