"""Bytes of tokens: joined, those of any ids are the decoded text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre

from genai_layer import ModelError
from genai_layer.decoded_tokens import decoded_bytes, find_frame
from genai_layer.token_names import FALLBACK_TOKENS

LETTERS = [*pre.ByteLevel.alphabet()]
WORDS = ["a", "b", "▁a", "▁", "▁▁", "{", '"', "é", "ab", "...", ",", "中", "don't"]


def bytewise(*decoders_: Any) -> Tokenizer:
    """Byte-level tokens, among them parts of characters, and added tokens that are plain text."""
    made = Tokenizer(models.BPE({name: i for i, name in enumerate([*LETTERS, "ĠÃ", "ab"])}, []))
    made.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    made.decoder = joined(*decoders_)
    made.add_tokens([AddedToken(" two words\n"), AddedToken("<tag>")])
    return made


def pieces(*decoders_: Any) -> Tokenizer:
    """Words with a mark for their space, and tokens that stand for bytes."""
    names = [*FALLBACK_TOKENS, *WORDS]
    made = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, [], byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.decoder = joined(*decoders_)
    return made


def words(*decoders_: Any) -> Tokenizer:
    """Whole words, of which some continue another."""
    names = ["[UNK]", "a", "##a", "b", "##b", ".", "hello", "##llo", "n't", "a</w>", "b</w>", "é"]
    made = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}))
    made.decoder = joined(*decoders_)
    return made


def joined(*several: Any) -> Any:
    return decoders.Sequence(list(several)) if len(several) > 1 else several[0] if several else None


SPACES = decoders.Replace("▁", " ")
FALLBACK, FUSE, BYTES = decoders.ByteFallback(), decoders.Fuse(), decoders.ByteLevel()
DECODERS: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": lambda: bytewise(BYTES),
    "a converted GGUF's": lambda: bytewise(FALLBACK, FUSE, SPACES, BYTES),
    "bytes, fused": lambda: bytewise(FUSE, BYTES),
    "bytes, stripped": lambda: bytewise(BYTES, decoders.Strip(" ", 1, 1)),
    "Llama's": lambda: pieces(SPACES, FALLBACK, FUSE, decoders.Strip(" ", 1, 0)),
    "Gemma's": lambda: pieces(SPACES, FALLBACK, FUSE),
    "spaces by a pattern": lambda: pieces(decoders.Replace(Regex("▁"), " "), FALLBACK, FUSE),
    "Metaspace": lambda: pieces(decoders.Metaspace()),
    "Metaspace, never first": lambda: pieces(decoders.Metaspace(prepend_scheme="never")),
    "bytes and Metaspace": lambda: pieces(FALLBACK, decoders.Metaspace()),
    "fused": lambda: pieces(FUSE),
    "stripped": lambda: pieces(FUSE, decoders.Strip("▁", 2, 2)),
    "WordPiece": lambda: words(decoders.WordPiece()),
    "WordPiece, as it is": lambda: words(decoders.WordPiece(cleanup=False)),
    "BPEDecoder": lambda: words(decoders.BPEDecoder()),
    "none": words,
}
MADE = {name: make() for name, make in DECODERS.items()}
FRAMES = {name: find_frame(made) for name, made in MADE.items()}
FOUND = {name: decoded_bytes(made, FRAMES[name]) for name, made in MADE.items()}


def spelled(kind: str, text: str) -> list[int]:
    """Return a token for each byte of a text; none for bytes that have no token."""
    found = FOUND[kind]
    return [found.index(bytes([byte])) for byte in text.encode() if bytes([byte]) in found]


@pytest.mark.parametrize("kind", DECODERS)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_the_bytes_of_tokens_joined_are_the_text(kind: str, data: st.DataObject) -> None:
    made, found, frame = MADE[kind], FOUND[kind], FRAMES[kind]
    usable = [number for number, each in enumerate(found) if each]
    texts = st.text("aé中😀 {\n", max_size=3).map(lambda text: spelled(kind, text))
    parts = st.one_of(st.sampled_from(usable).map(lambda token: [token]), texts)
    ids = [token for part in data.draw(st.lists(parts, max_size=9)) for token in part]
    text = made.decode([*frame.tokens, *ids, *frame.tokens], skip_special_tokens=False)
    try:
        expected = b"".join(found[number] for number in ids).decode()
    except UnicodeDecodeError:
        assert "\ufffd" in text
    else:
        assert text == frame.head + expected + frame.tail


@pytest.mark.parametrize("kind", DECODERS)
def test_almost_all_tokens_have_bytes(kind: str) -> None:
    names = {MADE[kind].id_to_token(number) for number, data in enumerate(FOUND[kind]) if not data}
    fused = kind in ("a converted GGUF's", "bytes, fused")
    assert names == ({" two words\n"} if fused else set())


@pytest.mark.parametrize("text", ['Größe {"a": 1}', " two", "中文\n", "<tag> é", ""])
def test_a_text_has_its_own_bytes(text: str) -> None:
    for kind in ("byte-level", "a converted GGUF's", "bytes, fused"):
        ids = MADE[kind].encode(text, add_special_tokens=False).ids
        assert b"".join(FOUND[kind][number] for number in ids) == text.encode()


def test_parts_of_a_character_keep_their_bytes() -> None:
    made, found = MADE["a converted GGUF's"], FOUND["a converted GGUF's"]
    assert found[made.token_to_id("ĠÃ")] == b" \xc3"
    assert FOUND["Llama's"][0xE2] == b"\xe2"


def test_a_decoder_that_drops_repeated_tokens_is_rejected() -> None:
    made = Tokenizer(models.WordLevel({"a": 0, "b": 1, "<pad>": 2}, "a"))
    made.decoder = decoders.CTC()
    with pytest.raises(ModelError, match="tokens have no bytes of their own"):
        find_frame(made)
