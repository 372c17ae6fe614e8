"""Golden file tests/goldens/encodings.json: ids and texts of the real openvino_genai.Tokenizer.

The tokenizers are the demo model's and that of tests/goldens/rag/encoder.json, which adds [CLS] and
[SEP]. openvino_tokenizers converts them with one input, and with two inputs for pairs of texts.

Needs openvino_genai, openvino_tokenizers and transformers:

    pip install openvino-genai==2026.4.1 openvino-tokenizers transformers
    python tools/make_encoding_goldens.py       # from the checkout, seconds
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "goldens" / "encodings.json"
KINDS = ("demo", "encoder")
LONG = "what is an npu and how long is the text"
PAIRS = [["what is an npu?", "no"], ["a", "the text is short"]]
ENCODED: list[tuple[list[Any], dict[str, Any]]] = [
    (["hello world, yes!"], {}),
    ([["hello world", "a"]], {}),
    ([["hello world", "a"]], {"padding_side": "left"}),
    ([["hello world", "a"], False], {}),
    ([["hello world", "a"]], {"max_length": 2}),
    ([[LONG, "a"]], {"max_length": 5, "truncation": True}),
    ([[LONG, "a"], False, True, 12], {"padding_side": "left"}),
    (["a"], {"pad_to_max_length": True}),
    ([LONG * 9], {"truncation": True}),
    ([], {"prompt": "hello"}),
    ([], {"prompts": ["hello", "a"], "max_length": 7, "pad_to_max_length": True}),
]
"""Calls of encode: positional and named arguments."""
PAIRED: list[tuple[list[Any], dict[str, Any]]] = [
    ([PAIRS], {}),
    ([PAIRS], {"padding_side": "left", "add_special_tokens": False}),
    ([["hello"], ["a", "the text"]], {}),
    ([["hello", "a"], ["the text"]], {"max_length": 30, "pad_to_max_length": True}),
    ([], {"prompts_1": ["hello"], "prompts_2": ["a"]}),
    *(([[[LONG, LONG]], False], {"max_length": n, "truncation": True}) for n in (0, 4, 5)),
    ([[[LONG, "a text"]]], {"max_length": 9, "truncation": True}),
    ([[["a text", LONG]]], {"max_length": 9, "truncation": True}),
]
DECODED: list[tuple[list[Any], dict[str, Any]]] = [
    ([[2, 270, 300, 99999, -1, 290]], {}),
    ([[2, 270, 300, 99999, -1, 290], False], {}),
    ([[[2, 270], [300]]], {}),
    ([[[2, 270], [300]]], {"skip_special_tokens": False}),
    ([[]], {}),
    ([[[], []]], {}),
]
"""Calls of decode."""


def write_folder(kind: str, folder: Path) -> Path:
    """Write a tokenizer's Hugging Face folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "demo":
        for file in (ROOT / "models" / "demo").glob("*.json"):
            shutil.copy(file, folder)
        return folder
    shutil.copy(ROOT / "tests" / "goldens" / "rag" / "encoder.json", folder / "tokenizer.json")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "[PAD]",
        "model_max_length": 40,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def convert(kind: str, folder: Path, inputs: int) -> Any:
    """Return the real Tokenizer of a folder that is written and converted here."""
    import openvino as ov
    import openvino_genai as genai
    from openvino_tokenizers import convert_tokenizer
    from transformers import AutoTokenizer

    source: Any = AutoTokenizer.from_pretrained(str(write_folder(kind, folder)))
    models = convert_tokenizer(source, with_detokenizer=True, number_of_inputs=inputs)
    for model, name in zip(models, ("tokenizer", "detokenizer"), strict=True):
        ov.save_model(model, folder / f"openvino_{name}.xml")
    return genai.Tokenizer(folder)


def ask(tokenizer: Any, paired: Any) -> dict[str, Any]:
    """Return the results of a tokenizer, either the real one or genai_layer's."""

    def encoded(owner: Any, calls: list[tuple[list[Any], dict[str, Any]]]) -> list[Any]:
        results = [owner.encode(*args, **named) for args, named in calls]
        return [[one.input_ids.data.tolist(), one.attention_mask.data.tolist()] for one in results]

    names = [f"get_{name}_token{end}" for name in ("bos", "eos", "pad") for end in ("", "_id")]
    return {
        "encoded": encoded(tokenizer, ENCODED),
        "paired": encoded(paired, PAIRED),
        "decoded": [tokenizer.decode(*args, **named) for args, named in DECODED],
        "special": {name: getattr(tokenizer, name)() for name in names},
        "vocab": sorted([token.hex(), number] for token, number in tokenizer.get_vocab().items()),
    }


def main() -> None:
    """Write the results of both tokenizers."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in KINDS:
            single, paired = (convert(kind, Path(scratch) / f"{kind}{n}", n) for n in (1, 2))
            found[kind] = ask(single, paired)
    found["demo"]["vocab"] = found["demo"]["vocab"][::20]
    TARGET.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
