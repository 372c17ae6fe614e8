"""Streamed texts have no half characters, for any byte-level tokenizer and any tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import (
    IncrementalParser,
    LLMPipeline,
    StreamingStatus,
    TextParserStreamer,
    TextStreamer,
    Tokenizer,
)
from genai_layer.testing.memory_runtime import MemoryCore, chain

SPECIAL = ["<s>", "</s>", "<|é|>"]
BYTES = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
TEXT = "aé€😀 \n\ufffd日本👩‍👩‍👧́ "
"""Characters of 1 to 4 bytes, combined ones, and the replacement character itself."""


def spelled(data: bytes) -> str:
    """Return bytes as a byte-level vocabulary spells them."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    return "".join(chr(b) if b in kept else chr(256 + moved.index(b)) for b in data)


@st.composite
def words(draw: st.DrawFn) -> list[bytes]:
    """Draw a vocabulary: all bytes, and byte strings that may begin and end inside characters."""
    texts = draw(st.lists(st.text(TEXT, min_size=1, max_size=4), max_size=12))
    data = [text.encode() for text in texts]
    cuts = st.tuples(st.integers(0, 3), st.integers(0, 3))
    parts = [one[begin : len(one) - end] for one in data for begin, end in [draw(cuts)]]
    raw = draw(st.lists(st.binary(min_size=1, max_size=3), max_size=6))
    return list(dict.fromkeys([*(bytes([b]) for b in range(256)), *filter(None, parts), *raw]))


def write_folder(folder: Path, vocabulary: list[bytes]) -> Path:
    names = [*SPECIAL, *map(spelled, vocabulary)]
    model = tokenizers.models.BPE({name: number for number, name in enumerate(names)}, [])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = BYTES
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    made.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 1}))
    return folder


def stream_of(draw: st.DrawFn, vocabulary: list[bytes]) -> list[int]:
    """Draw tokens: those of a text, cut anywhere, or any."""
    number = {word: at + len(SPECIAL) for at, word in enumerate(vocabulary)}
    rest, ids = draw(st.text(TEXT, max_size=12)).encode(), list[int]()
    while rest:
        fitting = [word for word in vocabulary if rest.startswith(word)]
        word = draw(st.sampled_from(fitting))
        ids.append(number[word])
        rest = rest[len(word) :]
    for token in draw(st.lists(st.integers(0, len(vocabulary) + len(SPECIAL) - 1), max_size=6)):
        ids.insert(draw(st.integers(0, len(ids))), token)
    return ids


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[bytes], list[int], list[int]]:
    """Draw a vocabulary, tokens, and the sizes in which they are written."""
    vocabulary = draw(words())
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return vocabulary, stream_of(draw, vocabulary), sizes


def check(chunks: list[str], text: str) -> None:
    assert "".join(chunks) == text
    assert "" not in chunks
    assert "\ufffd" in text or not any("\ufffd" in chunk for chunk in chunks)


@pytest.mark.parametrize("skip", [True, False])
@given(cases())
@settings(deadline=None, max_examples=20)
def test_chunks_of_a_text_streamer_are_whole_characters(tmp_path_factory, skip, case) -> None:
    vocabulary, ids, sizes = case
    tokenizer = Tokenizer(write_folder(tmp_path_factory.mktemp("t"), vocabulary))
    chunks: list[str] = []
    streamer = TextStreamer(tokenizer, chunks.append, {"skip_special_tokens": skip})
    at = 0
    while at < len(ids):
        size = sizes[at % len(sizes)]
        streamer.write(ids[at : at + size])
        at += size
    streamer.end()
    check(chunks, tokenizer.decode(ids, skip_special_tokens=skip))


@given(cases())
@settings(deadline=None, max_examples=20)
def test_chunks_of_a_pipeline_are_whole_characters(tmp_path_factory, case) -> None:
    vocabulary, ids, _ = case
    folder = write_folder(tmp_path_factory.mktemp("t"), vocabulary)
    # The runtime follows each token by one other, so none may come twice; 1 ends the text.
    answer = [token for token in dict.fromkeys(ids) if token > 1]
    size = len(vocabulary) + len(SPECIAL)
    pipe = LLMPipeline(folder, "CPU", core=MemoryCore(chain([0, *answer, 1], size)))
    tokenizer, chunks = pipe.get_tokenizer(), list[str]()
    pipe.generate([[0]], streamer=chunks.append)
    check(chunks, tokenizer.decode(answer))

    class Streamer(TextParserStreamer):
        def write(self, message):
            chunks.append(message["content"])
            return StreamingStatus.RUNNING

    chunks.clear()
    parsers: list[IncrementalParser] = []
    pipe.generate([[0]], streamer=Streamer(tokenizer, parsers))
    check(chunks, tokenizer.decode(answer))
