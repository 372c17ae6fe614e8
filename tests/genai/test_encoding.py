"""encode, decode and vocabularies: the real Tokenizer's results, and rejected arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest

from genai_layer import ConfigError, PromptError, PropertyError, Tensor, TokenizedInputs, Tokenizer
from genai_layer.texts.compiled import TextEncoder
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.token_ids import prompts_ids

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDENS = json.loads((ROOT / "tests" / "goldens" / "encodings.json").read_text())
KINDS = ["demo", "encoder"]


@pytest.fixture(scope="module")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(ROOT / "tools" / "make_encoding_goldens.py")


@pytest.fixture(scope="module")
def open_kind(tools: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tokenizer]:
    """Return a function that opens a tokenizer of the golden file."""
    return lambda kind: Tokenizer(tools.write_folder(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="module")
def encoder(open_kind: Callable[[str], Tokenizer]) -> Tokenizer:
    """Tokenizer that adds [CLS] and [SEP]; its maximum length is 40."""
    return open_kind("encoder")


@pytest.mark.parametrize("kind", KINDS)
def test_ids_texts_and_special_tokens_are_openvino_genais(tools, open_kind, kind) -> None:
    tokenizer, expected = open_kind(kind), GOLDENS[kind]
    found = tools.ask(tokenizer, tokenizer)
    for name in ("encoded", "paired", "decoded", "special"):
        assert found[name] == expected[name], name


@pytest.mark.parametrize("kind", KINDS)
def test_vocabularies_are_openvino_genais(tools, open_kind, kind) -> None:
    tokenizer = open_kind(kind)
    found = tools.ask(tokenizer, tokenizer)["vocab"]
    assert found[:: 20 if kind == "demo" else 1] == GOLDENS[kind]["vocab"]


def test_ids_and_masks_are_tensors_of_i64(encoder) -> None:
    encoded = encoder.encode(["hello", "a"])
    assert isinstance(encoded.input_ids, Tensor)
    assert repr(encoded.input_ids) == f"<Tensor: shape{encoded.attention_mask.shape} type: i64>"


@pytest.mark.parametrize("make", [np.array, Tensor, lambda rows: openvino.Tensor(np.array(rows))])
def test_a_batch_may_be_an_array_or_a_tensor(encoder, make) -> None:
    rows = encoder.encode(["hello", "a text"]).input_ids.data.tolist()
    assert encoder.decode(make(rows)) == encoder.decode(rows) == ["hello", "a text"]


def test_a_row_may_be_an_array_of_any_integers(encoder) -> None:
    ids = encoder.encode("a text").input_ids.data[0]
    assert encoder.decode(ids.astype(np.int32)) == encoder.decode(tuple(ids)) == "a text"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (Tensor([1, 2]), r"shape \[2\]"),
        (Tensor(np.zeros((1, 2), np.int32)), "must be i64"),
        (np.zeros((1, 2, 3), np.int64), r"shape \[1, 2, 3\]"),
        (np.array([1.5]), "tokens = "),
        ([1.0, 2], "tokens = "),
        (["a"], "tokens = "),
        ([[1], 2], "tokens = "),
        (5, "tokens = 5: pass"),
    ],
)
def test_other_ids_are_rejected(encoder, tokens, message) -> None:
    with pytest.raises(PromptError, match=message):
        encoder.decode(tokens)


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        (["a"], {"maxlength": 3}, "did you mean max_length"),
        ([], {}, "once"),
        (["a"], {"prompt": "a"}, "once"),
        (["a", True], {"add_special_tokens": True}, "twice"),
        (["a", True, True, 3, "left", True, 1], {}, "twice"),
        (["a"], {"padding_side": "x"}, "padding_side = 'x'"),
        (["a"], {"max_length": -1}, "max_length = -1"),
        (["a"], {"max_length": 3.5}, "max_length = 3.5"),
        (["a"], {"truncation": "longest_first"}, "truncation = 'longest_first'"),
        (["a"], {"max_length": 1, "truncation": True}, "adds 2 special tokens"),
        ([["a"], ["b"]], {"max_length": 2, "truncation": True}, "adds 3 special tokens"),
    ],
)
def test_wrong_options_are_rejected(encoder, args, named, message) -> None:
    with pytest.raises(ConfigError, match=message):
        encoder.encode(*args, **named)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([5], "prompts = 5: pass a str, "),
        ([[5]], "prompts = "),
        ([[["a", "b", "c"]]], "prompts = "),
        ([["a", "b"], ["a", "b", "c"]], "prompts_1 has 2 texts"),
        (["a\ud800"], "lone surrogate"),
        ([["a"], ["\ud800"]], "lone surrogate"),
    ],
)
def test_other_texts_are_rejected(encoder, args, message) -> None:
    with pytest.raises(PromptError, match=message):
        encoder.encode(*args)


@pytest.mark.parametrize("text", ["a\ud800", ("a", "b\ud800")])
def test_texts_of_embeddings_and_ranks_have_no_lone_surrogate(encoder, text) -> None:
    texts = TextEncoder(encoder, EmbeddingConfig())
    with pytest.raises(PromptError, match=r"'\\ud800', a lone surrogate; pass text in UTF-8$"):
        texts.encode([text])


@pytest.mark.parametrize(
    ("ids", "remedy"),
    [
        (np.zeros((1, 2), np.int32), "convert them to i64"),
        (np.zeros((1, 2), np.float32), "convert them to i64"),
        (np.zeros(2, np.int64), "pass rows"),
    ],
)
def test_other_token_ids_get_a_remedy(ids, remedy) -> None:
    with pytest.raises(PromptError, match=rf"not i64 \[prompts, n\]; {remedy}$"):
        prompts_ids(ids)


def test_padding_to_an_unknown_length_is_rejected(folder) -> None:
    with pytest.raises(ConfigError, match="no model_max_length"):
        Tokenizer(folder).encode("a", pad_to_max_length=True)


def test_the_settings_select_the_sides_of_padding_and_truncation(tools, tmp_path) -> None:
    folder = tools.write_folder("encoder", tmp_path)
    sides = {"padding_side": "left", "truncation_side": "left", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(sides))
    tokenizer = Tokenizer(folder)
    whole = tokenizer.encode("a text", add_special_tokens=False).input_ids.data[0].tolist()
    assert tokenizer.encode(["a", "a text"]).attention_mask.data[0, 0] == 0
    cut = tokenizer.encode("a text", False, max_length=1, truncation=True)
    assert cut.input_ids.data.tolist() == [whole[-1:]]


def test_padding_and_truncation_of_the_file_have_no_effect(tools, tmp_path) -> None:
    folder = tools.write_folder("encoder", tmp_path)
    whole = Tokenizer(folder).encode("what is an npu").input_ids.data.tolist()
    path = folder / "tokenizer.json"
    cut = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"truncation": cut}))
    assert Tokenizer(folder).encode("what is an npu").input_ids.data.tolist() == whole


def test_a_vocabulary_in_utf8_is_a_list_of_texts_and_others_are_rejected(encoder, tmp_path) -> None:
    with pytest.raises(PromptError, match="use get_vocab"):
        encoder.get_vocab_vector()
    path = tmp_path / "tokenizer.json"
    vocabulary = {"a": 0, "##b": 2}
    path.write_text(
        json.dumps(
            {
                "model": {
                    "type": "WordPiece",
                    "vocab": vocabulary,
                    "unk_token": "a",
                    "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 9,
                }
            }
        )
    )
    assert Tokenizer(tmp_path).get_vocab_vector() == [" a", "", "b"]


def test_pairs_are_supported(encoder) -> None:
    assert encoder.supports_paired_input() is True


def test_openvinos_properties_are_accepted_and_others_rejected(folder) -> None:
    Tokenizer(folder, PERF_COUNT=True)
    Tokenizer(folder, {})
    with pytest.warns(DeprecationWarning, match="properties in a dictionary"):
        Tokenizer(folder, {"PERF_COUNT": True})
    for wrong in ({"padding_side": "left"}, {"CACHE_DIR": None}):
        with pytest.raises(PropertyError, match=next(iter(wrong))):
            Tokenizer(folder, **wrong)


def test_tokenized_inputs_are_made_of_lists_arrays_and_tensors() -> None:
    inputs = TokenizedInputs([[1]], attention_mask=openvino.Tensor(np.array([[1]])))
    assert (inputs.input_ids.data.tolist(), inputs.attention_mask.data.tolist()) == ([[1]], [[1]])
