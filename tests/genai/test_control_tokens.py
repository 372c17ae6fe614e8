"""Encoding of texts in which only some special tokens are tokens."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from genai_layer.chat_prompt import ControlTokens
from genai_layer.errors import PromptError
from genai_layer.testing.toy import SPECIAL, make_tokenizer

TOY = make_tokenizer()


def control(tokenizer: tokenizers.Tokenizer) -> ControlTokens:
    return ControlTokens(tokenizer.get_added_tokens_decoder(), tokenizer.to_str)


def plain(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def words(*special: AddedToken) -> tokenizers.Tokenizer:
    """Return a tokenizer of words, whose vocabulary has the special tokens as words, too."""
    known = ["?", "a", "b", "▁a", "▁", *(token.content for token in special)]
    model = models.WordLevel({word: at for at, word in enumerate(known)}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(special))
    return tokenizer


PARTS = st.lists(st.sampled_from([*SPECIAL, "a", " ", "<", "<e", "os>", "é"]), max_size=8)


@given(PARTS)
def test_with_all_special_tokens_chosen_ids_are_the_usual_ones(parts) -> None:
    text, toy = "".join(parts), control(TOY)
    assert toy.encode(text, toy.spans(text)) == plain(TOY, text)


@given(PARTS, st.sets(st.integers(0, 7)))
def test_chosen_tokens_alone_are_tokens_and_all_text_is_kept(parts, numbers) -> None:
    text, toy = "".join(parts), control(TOY)
    chosen = [span for at, span in enumerate(toy.spans(text)) if at in numbers]
    ids = toy.encode(text, chosen)
    assert [TOY.id_to_token(one) for one in ids if one < len(SPECIAL)] == [
        text[begin:end] for begin, end in chosen
    ]
    assert TOY.decode(ids, skip_special_tokens=False) == text


def test_without_special_tokens_all_is_text() -> None:
    tokenizer = words()
    assert control(tokenizer).spans("<eos>") == []
    assert control(tokenizer).encode("a b", []) == plain(tokenizer, "a b")


def test_spaces_beside_a_token_belong_to_it_as_before() -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens([AddedToken("<sep>", lstrip=True, rstrip=True)])
    text = "a <sep> b"
    found = control(tokenizer).encode(text, [(2, 7)])
    assert found == plain(tokenizer, text)
    assert len(found) == 3


def test_the_first_word_alone_has_a_space_mark_as_before() -> None:
    tokenizer = words(AddedToken("<s>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.normalizer = normalizers.NFC()
    assert control(tokenizer).encode("a<s>a", [(1, 4)]) == plain(tokenizer, "a<s>a")


def test_the_longest_special_token_counts() -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens(["<eos>2"])
    assert control(tokenizer).spans("<eos>2<eos>") == [(0, 6), (6, 11)]


def test_a_special_token_that_is_a_word_is_an_error() -> None:
    tokenizer = words(AddedToken("eos"))
    with pytest.raises(PromptError, match=r"'eos', a special token that is a word .* remove it"):
        control(tokenizer).encode("a eos", [])
    assert control(tokenizer).encode("a eos", [(2, 5)]) == plain(tokenizer, "a eos")
