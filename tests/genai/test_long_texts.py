"""Long texts: the ids of their process are the tokenizer's, and it ends if nobody needs them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from tests import tokenizer_folders
from tests.golden_tokenizers import GOLDENS, read_golden

from genai_layer import long_texts
from genai_layer.chat_prompt import ControlTokens
from genai_layer.errors import GenAIError
from genai_layer.long_texts import encode_texts, needed_until
from genai_layer.testing.toy import make_tokenizer
from genai_layer.tokenizer import Tokenizer


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Processes of long texts; all texts are long."""
    begun: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            begun.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(long_texts, "LONG", 0)
    return begun


def golden_folders() -> dict[str, Callable[[Path], Path]]:
    """Return functions that write the folder of each golden tokenizer, by name."""
    writers: dict[str, Callable[[Path], Path]] = {}
    for path in sorted(GOLDENS.glob("*.json.xz")):
        writers[path.name] = lambda folder, path=path: read_golden(path).write(folder)
    for name, forms in tokenizer_folders.cases().items():
        *_, form = forms.values()
        writers[name] = lambda folder, form=form: tokenizer_folders.write(form, folder)
    return writers


FOLDERS = golden_folders()


@pytest.mark.matrix
@pytest.mark.parametrize("name", FOLDERS)
def test_long_texts_have_the_ids_of_the_tokenizer(
    name: str, tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    tokenizer = Tokenizer(FOLDERS[name](tmp_path))
    texts = [*tokenizer_folders.texts(), "".join(tokenizer_folders.texts())]
    expected = tokenizer.encode(texts).input_ids.data
    with needed_until(threading.Event()):
        assert (tokenizer.encode(texts).input_ids.data == expected).all()
    assert [process.returncode for process in processes] == [0]


def test_a_text_longer_than_pipes_and_looks_has_its_ids(
    processes: list[subprocess.Popen[bytes]],
) -> None:
    toy, text = make_tokenizer(), "a b" * (1 << 19)
    expected = encode_texts(toy, [text], True)
    with needed_until(threading.Event()):
        assert encode_texts(toy, [text], True) == expected
    assert len(processes) == 1


def test_special_tokens_of_long_messages_are_text(
    processes: list[subprocess.Popen[bytes]],
) -> None:
    toy = make_tokenizer()
    control = ControlTokens(toy.get_added_tokens_decoder(), toy.to_str)
    text = "<eos>a<eos>"
    chosen = control.spans(text)[1:]
    expected = control.encode(text, chosen)
    with needed_until(threading.Event()):
        assert control.encode(text, chosen) == expected
    assert len(processes) == 1


def test_texts_that_are_not_long_and_texts_without_a_signal_need_no_process(
    processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = make_tokenizer()
    encode_texts(toy, ["long"], True)
    monkeypatch.setattr(long_texts, "LONG", 4)
    with needed_until(threading.Event()):
        encode_texts(toy, [("ab", "cd")], True)
        assert processes == []
        encode_texts(toy, [("abc", "cd")], True)
    assert len(processes) == 1


def test_a_process_ends_if_nobody_needs_its_ids(processes: list[subprocess.Popen[bytes]]) -> None:
    unneeded = threading.Event()
    threading.Timer(0.3, unneeded.set).start()
    with needed_until(unneeded), pytest.raises(CancelledError):
        encode_texts(make_tokenizer(), ["a b" * (1 << 21)], True)
    assert [process.returncode for process in processes] == [-9]


def test_a_process_that_fails_is_an_error(
    processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with needed_until(threading.Event()), pytest.raises(GenAIError, match="ended with 1; see the"):
        encode_texts(make_tokenizer(), ["a"], True)


def test_many_special_tokens_in_a_message_are_read_in_linear_time() -> None:
    toy = make_tokenizer()
    control = ControlTokens(toy.get_added_tokens_decoder(), toy.to_str)
    assert len(control.encode("<eos>" * 100_000, [])) >= 100_000
