"""Minimum number of a text's tokens: never above the number of its tokens, whatever the text."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from genai_layer.errors import PromptTooLong
from genai_layer.npu import OnFull, StaticLengths
from genai_layer.prompt_limits import check_length
from genai_layer.token_lengths import least_tokens, longest_token
from genai_layer.token_names import FALLBACK_TOKENS
from genai_layer.tokenizer import Tokenizer as OurTokenizer

_MERGES = [("a", "a"), ("aa", "aa"), ("Ġ", "a"), ("Ġ", "Ġ"), ("K", "K")]
_SPACES = [("a", "a"), ("▁", "a"), ("▁", "▁")]


def byte_level(*normalizing: Any, splits: Any = None) -> Tokenizer:
    """Return a byte-level tokenizer, with steps before."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, *(left + right for left, right in _MERGES)]
    made = Tokenizer(models.BPE({one: at for at, one in enumerate(tokens)}, _MERGES))
    made.normalizer = normalizers.Sequence(list(normalizing)) if normalizing else None
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([splits, bytes_of]) if splits else bytes_of
    made.add_special_tokens(["<|end|>"])
    return made


def with_fallback(**options: Any) -> Tokenizer:
    """Return a tokenizer as sentencepiece's, which knows a few letters and all bytes."""
    tokens = ["<unk>", *FALLBACK_TOKENS, "a", "▁", *(left + right for left, right in _SPACES)]
    known = {one: at for at, one in enumerate(tokens)}
    made = Tokenizer(models.BPE(known, _SPACES, unk_token="<unk>", **options))
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    made.normalizer = normalizers.Sequence(steps)
    return made


def spaced(made: Tokenizer) -> Tokenizer:
    made.add_special_tokens([AddedToken("<|user|>", rstrip=True)])
    return made


KNOWN = {
    "byte-level": byte_level(),
    "composed": byte_level(normalizers.NFC()),
    "composed by compatibility": byte_level(normalizers.NFKC(), normalizers.Lowercase()),
    "digits": byte_level(splits=pre_tokenizers.Digits(individual_digits=True)),
    "split": byte_level(splits=pre_tokenizers.Split(Regex(r"\s+"), "isolated")),
    "sentencepiece": with_fallback(byte_fallback=True, fuse_unk=True),
}
UNKNOWN = {
    "spaces beside a token vanish": spaced(byte_level()),
    "spaces vanish": byte_level(splits=pre_tokenizers.Whitespace()),
    "separators vanish": byte_level(splits=pre_tokenizers.Split(" ", "removed")),
    "accents vanish": byte_level(normalizers.NFD(), normalizers.StripAccents()),
    "replaced by less": byte_level(normalizers.Replace(Regex("a+"), "a")),
    "composed after another step": byte_level(normalizers.Lowercase(), normalizers.NFC()),
    "unknown letters are one token": with_fallback(fuse_unk=True),
    "unknown words are one token": Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>")),
}

_HANGUL, _GREEK = "\u1100\u1161\u11a8", "\u03b1\u0313\u0342\u0345"
_TEXTS = st.lists(
    st.sampled_from(["a", "aaaa", " ", "\n", "K", "\u212a", "e\u0301", _HANGUL, _GREEK, "<|end|>"])
    | st.characters(exclude_categories=["Cs"]),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("name", KNOWN)
def test_no_text_has_fewer_tokens(name: str) -> None:
    longest = longest_token(KNOWN[name])
    assert longest is not None

    @given(_TEXTS)
    def check(text: str) -> None:
        count = len(KNOWN[name].encode(text, add_special_tokens=False).ids)
        assert least_tokens(text, longest) <= count

    check()


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_known_where_characters_may_vanish(name: str) -> None:
    assert longest_token(UNKNOWN[name]) is None
    assert least_tokens("a" * 1000, None) == 0


def test_composition_joins_at_most_four_characters() -> None:
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert max(len(unicodedata.normalize("NFD", one)) for one in every) == 4


@pytest.fixture
def tokenizer(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> OurTokenizer:
    """A tokenizer that cannot encode."""
    byte_level().save(str(tmp_path / "tokenizer.json"))
    made = OurTokenizer(tmp_path)
    monkeypatch.setattr(made, "encode", None)
    return made


def test_a_text_that_is_too_long_is_rejected_before_it_is_encoded(tokenizer: OurTokenizer) -> None:
    lengths = StaticLengths(128, 128)
    longest = len("<|end|>")
    check_length("a" * 128 * longest, tokenizer, lengths)
    message = "MAX_PROMPT_LEN=128: the prompt has 897 characters, at least 129 tokens; raise"
    with pytest.raises(PromptTooLong, match=message):
        check_length("a" * (128 * longest + 1), tokenizer, lengths)


@pytest.mark.parametrize("on_full", [OnFull.TRUNCATE, OnFull.SLIDE])
def test_a_text_of_which_a_part_may_fit_is_encoded(
    tokenizer: OurTokenizer, on_full: OnFull
) -> None:
    check_length("a" * 10_000, tokenizer, StaticLengths(128, 128, on_full))
    check_length("a" * 10_000, tokenizer, None)
