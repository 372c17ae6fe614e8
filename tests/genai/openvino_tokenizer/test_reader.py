"""Tokenizers of openvino_tokenizers' models return what the real openvino_genai.Tokenizer returns.

The goldens are from tools/make_tokenizer_goldens.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from genai_layer.errors import ModelError

FAMILIES = (
    "demo",
    "gpt2",
    "prefix",
    "qwen2",
    "llama3",
    "llama2",
    "mistral",
    "gemma",
    "bert",
    "bert_cased",
    "unigram",
)
BYTE_TOKEN, UNDERLINE, COMPOSED, LONG = "<0x41>", "▁a", "ﬁ\u0301 \u1f88\u0301", "h" * 60 + "é" * 30
DIFFERENT = {
    "qwen2": {COMPOSED},
    "llama2": {BYTE_TOKEN},
    "mistral": {BYTE_TOKEN, UNDERLINE},
    "gemma": {BYTE_TOKEN},
    "bert_cased": {LONG},
    "unigram": {COMPOSED},
}
"""Texts that are tokenized in another way: docs/reference/genai.md lists the reasons."""


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_become_the_ids_of_the_real_tokenizer(golden: Any, name: str) -> None:
    models = golden(name)
    made = models.read().tokenizer
    different = {
        text
        for text, expected in models.results["ids"].items()
        if [made.encode(text, add_special_tokens=s).ids for s in (True, False)] != expected
    }
    assert different == DIFFERENT.get(name, set())


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_become_the_texts_of_the_real_tokenizer(golden: Any, name: str) -> None:
    models = golden(name)
    made = models.read().tokenizer
    for ids, without, complete in models.results["texts"]:
        assert made.decode(ids) == without
        assert made.decode(ids, skip_special_tokens=False) == complete


@pytest.mark.parametrize("name", FAMILIES)
def test_special_tokens_and_the_template_are_those_of_the_real_tokenizer(
    golden: Any, name: str
) -> None:
    models = golden(name)
    found = models.read()
    assert found.chat_template == models.results["chat_template"]
    special = models.results["special"]
    assert [found.ids["bos"], found.tokens["bos"]] == special["bos"]
    assert [found.ids["eos"], found.tokens["eos"]] == special["eos"]
    if found.ids["pad"] >= 0:  # openvino_genai names the end-of-text token if there is none
        assert [found.ids["pad"], found.tokens["pad"]] == special["pad"]


def test_a_pair_of_texts_has_the_form_of_the_rt_info(golden: Any) -> None:
    encoding = golden("bert").read().tokenizer.encode("a", "b")
    assert encoding.tokens == ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("demo", 'type="BPETokenizer"', 'type="VocabEncoder"', "VocabEncoder .*not supported"),
        ("demo", 'type="BPETokenizer"', 'type="Trie"', "has 0 ops BPETokenizer or"),
        ("demo", 'type="RegexSplit"', 'type="Shuffle"', "Shuffle .* not supported; add the tok"),
        ("demo", 'max_splits="-1"', 'max_splits="2"', "RegexSplit .*max_splits"),
        ("demo", 'behaviour="isolate"', 'behaviour="mergedwithprevious"', "mergedwithprevious"),
        ("demo", 'end_suffix=""', 'end_suffix="x"', "BPETokenizer .*end_suffix='x'"),
        ("llama2", 'byte_fallback="true"', 'byte_fallback="false"', "are not bytes"),
        ("bert", 'normalization_form="nfd"', 'normalization_form="nfc"', "case_fold"),
        ("bert", 'normalization_form="nfd"', 'normalization_form=""', "normalization_form=''"),
        ("bert", 'nmt="false"', 'nmt="true"', "CharsMapNormalization .*nmt=true"),
        ("unigram", 'fuse_unk="true"', 'fuse_unk="false"', "UnigramTokenizer .*fuse_unk"),
        ("unigram", 'unk_token_id="3"', 'unk_token_id="x"', "unk_token_id='x'"),
        ("demo", 'eos_token_id value="2"', 'eos_token_id value="[2]"', "eos_token_id='\\[2\\]'"),
        ("bert", '"pair&quot;: {', '"pair&quot;: [', "rt_info .* is broken"),
        ("bert", 'type="Parameter"', 'type="Input"', "0 inputs become 1 texts"),
        ("bert_pairs", 'type="Multiply"', 'type="Add"', "CombineSegments .* not a constant"),
        ("demo", 'type="Select"', 'type="If"', "Truncate .*input 3 is not a constant"),
    ],
)
def test_an_op_without_exact_counterpart_is_rejected_by_name(
    golden: Any, name: str, old: str, new: str, message: str
) -> None:
    old, new = old.replace('"pair', "&quot;pair"), new.replace('"pair', "&quot;pair")
    with pytest.raises(ModelError, match=message):
        golden(name).read(tokenizer=[(old, new)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('replace_mode="true"', 'replace_mode="false"', "invalid UTF-8 is not replaced"),
        ('type="UTF8Validate"', 'type="CharsToBytes"', "CharsToBytes .*not supported"),
        ('skip_special_tokens value="True"', 'skip_special_tokens value="False"', "convert with"),
    ],
)
def test_a_detokenizer_without_exact_counterpart_is_rejected_by_name(
    golden: Any, old: str, new: str, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        golden("demo").read(detokenizer=[(old, new)])


def test_a_detokenizer_of_another_model_is_rejected(golden: Any) -> None:
    other, models = golden("bert"), golden("demo")
    for suffix in ("xml", "bin"):
        name = f"openvino_detokenizer.{suffix}"
        models.files[name] = other.files[name]
    with pytest.raises(ModelError, match=r"tokens \[3, 4\] are not special"):
        models.read()


@pytest.mark.parametrize(
    ("name", "token", "quoted", "message"),
    [
        ("llama2", "<p▁n>", r"\<p▁n\>", "no merge makes the token '<p▁n>'"),
        ("gpt2", "\nplain>", "\\\nplain\\>", "one token takes spaces, another begins"),
        ("mistral", "\nplain>", "\\\nplain\\>", "a special token may begin with spaces"),
    ],
)
def test_a_special_token_that_would_be_found_elsewhere_is_rejected(
    golden: Any, name: str, token: str, quoted: str, message: str
) -> None:
    models = golden(name)
    for file, data in models.files.items():
        renamed = data.replace(rb"\<plain\>", quoted.encode()).replace(b"<plain>", token.encode())
        models.files[file] = renamed
    with pytest.raises(ModelError, match=message):
        models.read()


def test_a_token_that_no_merge_makes_is_rejected(golden: Any) -> None:
    models = golden("gpt2")
    weights = models.files["openvino_tokenizer.bin"]
    made = models.read().tokenizer
    longest = max((t for t in made.get_vocab() if t.isalpha() and t.isascii()), key=len)
    assert longest.encode() in weights
    models.files["openvino_tokenizer.bin"] = weights.replace(
        longest.encode(), longest.encode()[::-1], 1
    )
    with pytest.raises(ModelError, match=r"no merge makes|is broken"):
        models.read()
