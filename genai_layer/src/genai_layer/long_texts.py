"""Encoding of long texts in a process of their own, which is killed if nobody needs the ids.

How it works. A text cannot be encoded in parts: words and merges of its tokens may cross any cut,
and the library cannot be interrupted. So a process encodes a long text as a whole, with a copy of
the tokenizer: the ids are equal, whatever the tokenizer. The process needs 0.1 to 1.2 s more, which
a short text is not worth.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import IO

import tokenizers

from genai_layer.errors import GenAIError

Text = str | tuple[str, str]
"""A text, or a pair that the tokenizer joins."""

LONG = 1 << 18
"""Characters above which texts are long; so many are encoded in half a second (docs/serving.md)."""

_POLL = 0.05
"""Seconds between looks at the signal."""

_unneeded = ContextVar[Event | None]("unneeded", default=None)


@contextmanager
def needed_until(unneeded: Event) -> Generator[None]:
    """Encode long texts of this thread only until a signal is set."""
    before = _unneeded.set(unneeded)
    try:
        yield
    finally:
        _unneeded.reset(before)


def encode_texts(
    tokenizer: tokenizers.Tokenizer, texts: Sequence[Text], add_special_tokens: bool
) -> list[list[int]]:
    """Return the ids of each text.

    Raises:
        CancelledError: the signal of ``needed_until`` was set while long texts were encoded.
        GenAIError: the process of long texts failed.
    """
    unneeded = _unneeded.get()
    if unneeded is None or sum(len(part) for text in texts for part in _parts(text)) <= LONG:
        return _encoded(tokenizer, texts, add_special_tokens)
    special_as_text = tokenizer.encode_special_tokens  # no part of a tokenizer's pickle
    call = (tokenizer, special_as_text, texts, add_special_tokens)
    with tempfile.TemporaryFile() as file:  # communicate forgets its input at the first timeout
        pickle.dump(call, file)
        file.seek(0)
        return pickle.loads(_answer(file, unneeded))


def _parts(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def _encoded(
    tokenizer: tokenizers.Tokenizer, texts: Sequence[Text], add_special_tokens: bool
) -> list[list[int]]:
    # encode would hold the interpreter's lock.
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
    return [one.ids for one in encoded]


def _answer(call: IO[bytes], unneeded: Event) -> bytes:
    """Return the answer of a new process to a call; errors as ``encode_texts``."""
    command = [sys.executable, "-P", "-m", __name__]
    with subprocess.Popen(
        command, stdin=call, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        while (answer := _read(process)) is None:
            if unneeded.is_set():
                process.kill()
                raise CancelledError
    if process.returncode:
        raise GenAIError(
            f"a long text was not encoded: its process ended with {process.returncode}; see the "
            "log, or shorten the text"
        )
    return answer


def _read(process: subprocess.Popen[bytes]) -> bytes | None:
    """Return the answer of a process; None if it takes longer than a look at the signal."""
    try:
        return process.communicate(timeout=_POLL)[0]
    except subprocess.TimeoutExpired:
        return None


def _main() -> None:
    """Answer the call of stdin."""
    tokenizer, special_as_text, texts, add_special_tokens = pickle.load(sys.stdin.buffer)
    tokenizer.encode_special_tokens = special_as_text
    pickle.dump(_encoded(tokenizer, texts, add_special_tokens), sys.stdout.buffer)


if __name__ == "__main__":
    _main()
