"""The real openvino_genai.Tokenizer compared to the golden file, and to this stack's tokenizer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import genai_layer

openvino_genai = pytest.importorskip("openvino_genai")
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


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_folder_without_tokenizer_json_has_the_real_length_and_sides(
    load_module: Callable[[Path], Any], tmp_path: Path, inputs: int, side: str
) -> None:
    goldens = load_module(ROOT / "tools" / "make_tokenizer_goldens.py")
    settings = {"padding_side": side, "truncation_side": side, "model_max_length": 32}
    make, special = goldens.FAMILIES["bert"]
    goldens.write(make(), special | settings, inputs, tmp_path)
    packages = (openvino_genai, genai_layer)
    theirs, ours = (package.Tokenizer(tmp_path) for package in packages)
    texts = ["", "a sun", "the " * 31, "a moon and " * 60]
    given = texts if inputs == 1 else [[one, two] for one in texts for two in texts]
    for options in (
        {},
        {"truncation": True},
        {"pad_to_max_length": True},
        {"pad_to_max_length": True, "truncation": True},
    ):
        found, expected = (owner.encode(given, **options) for owner in (ours, theirs))
        assert found.input_ids.data.tolist() == expected.input_ids.data.tolist()
        assert found.attention_mask.data.tolist() == expected.attention_mask.data.tolist()


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
