"""The real openvino_genai.Tokenizer compared to the golden file, and to this stack's tokenizer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import genai_layer

pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")
pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDENS = json.loads((ROOT / "tests" / "goldens" / "encodings.json").read_text())


@pytest.fixture(scope="module")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(ROOT / "tools" / "make_encoding_goldens.py")


@pytest.mark.parametrize("kind", ["demo", "encoder"])
def test_the_golden_file_is_the_real_tokenizers(tools, tmp_path, kind) -> None:
    single, paired = (tools.convert(kind, tmp_path / str(n), n) for n in (1, 2))
    found = tools.ask(single, paired)
    ours = genai_layer.Tokenizer(tmp_path / "1")
    assert tools.ask(ours, ours) == found
    found["vocab"] = found["vocab"][:: 20 if kind == "demo" else 1]
    assert found == GOLDENS[kind]


def test_pairs_of_all_lengths_are_truncated_equally(tools, tmp_path) -> None:
    theirs, ours = tools.convert("demo", tmp_path, 2), genai_layer.Tokenizer(tmp_path)
    texts = ["1".join("abcdefgh"[:count]) for count in range(1, 9)]
    for one, two, length in itertools.product(texts, texts, range(12)):
        found = [
            owner.encode([one], [two], max_length=length, truncation=True).input_ids.data.tolist()
            for owner in (theirs, ours)
        ]
        assert found[0] == found[1], (one, two, length)


def test_one_input_rejects_pairs_there_but_not_here(tools, tmp_path) -> None:
    theirs, ours = tools.convert("encoder", tmp_path, 1), genai_layer.Tokenizer(tmp_path)
    assert (theirs.supports_paired_input(), ours.supports_paired_input()) == (False, True)
    with pytest.raises(RuntimeError):
        theirs.encode([["a", "b"]])


def test_two_inputs_truncate_single_texts_too_short_there(tools, tmp_path) -> None:
    theirs, ours = tools.convert("encoder", tmp_path, 2), genai_layer.Tokenizer(tmp_path)
    lengths = [
        owner.encode("what is an npu", max_length=5, truncation=True).input_ids.shape[1]
        for owner in (theirs, ours)
    ]
    assert lengths == [4, 5]
