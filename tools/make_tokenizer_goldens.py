"""Golden files tests/goldens/tokenizers: openvino_tokenizers' models of small tokenizers.

Each file has the tokenizer and the detokenizer of one family, as the real openvino_tokenizers
converts them, and the results of the real openvino_genai.Tokenizer for texts and ids.

Needs openvino_genai, openvino_tokenizers and transformers:

    python tools/make_tokenizer_goldens.py [NAME …]       # from the checkout, a few seconds
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import AddedToken, Regex, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre
from tokenizers import processors as post

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "goldens" / "tokenizers"
VOCABULARY = 400
FILES = ("openvino_tokenizer", "openvino_detokenizer")

CORPUS = (ROOT / "tools" / "demo_corpus" / "greetings.txt").read_text(encoding="utf-8").splitlines()
CORPUS += [
    "Größe, naïve café, ÇA VA? Да, привет.",
    "日本語 と 中文 한국어",
    "a1b22 333 don't it's 😀👍🏽",
]

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>\n\t{{ m['content'] }}{% endfor %}"

TEXTS = (
    "",
    " ",
    "   ",
    "Hello, world!",
    " Hello  world ",
    "\n\n\tHello\r\n  there \n",
    "It's 12345 o'clock; don't (worry).",
    "naïve Größe ÇA Éa e\u0301 ﬁn Ⅻ ½ İıß Σς",
    "Да, привет! Ёж й",
    "日本語と中文 한국어 ไทย हिन्दी",
    "😀 👍🏽 👨‍👩‍👧 🇩🇪",
    "a\u200bb\u00a0c\u3000d\u2003e\u0085f\u2028g\ufeffh",
    "\x01\x02 \x7f\x80\x9f null\x00end",
    "an▁under▁ _line_ ▁",
    "<unk> [UNK] ##ing",
    "x" * 120,
    "я" * 50,
    "a.b,c!d?e 's 've n't . , ! ?",
    "<s> </s><special>x<special> <spaces> y <spaces>z",
    "<|im_start|>user\nHi<|im_end|>\n",
    "[CLS] a [SEP]b [MASK] c[PAD]",
    "<special><special>\n<special> Hello",
    "end <spaces>",
    "\nHello",
    "\tHello",
)

DIFFERENT = ("<0x41>", "▁a", "ﬁ\u0301 \u1f88\u0301", "h" * 60 + "é" * 30)
"""Texts that this stack deliberately tokenizes in another way, for some families."""


def train(tokenizer: hf.Tokenizer, trainer: Any) -> hf.Tokenizer:
    """Train a small vocabulary on the corpus."""
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def add_tokens(tokenizer: hf.Tokenizer, wide: bool) -> hf.Tokenizer:
    """Add a special token, one that is not special, and one that takes the spaces around it."""
    tokenizer.add_special_tokens([AddedToken("<special>", normalized=False)])
    tokenizer.add_tokens([AddedToken("<plain>", normalized=False)])
    if wide:
        token = AddedToken("<spaces>", lstrip=True, rstrip=True, normalized=False)
        tokenizer.add_tokens([token])
    return tokenizer


def bos(token: str, number: int) -> Any:
    """Return a post-processor that adds the token that begins a text."""
    return post.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token}:1 $B:1", special_tokens=[(token, number)]
    )


def byte_level(*steps: Any, normalizer: Any = None) -> hf.Tokenizer:
    """Return a byte-level BPE tokenizer."""
    made = hf.Tokenizer(models.BPE())
    made.pre_tokenizer = pre.Sequence(list(steps)) if len(steps) > 1 else steps[0]
    made.decoder = decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre.ByteLevel.alphabet()
    return train(
        made,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=special,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )


BYTES = pre.ByteLevel(add_prefix_space=False, use_regex=False)


def split(pattern: str) -> Any:
    """Return the pre-tokenizer of a byte-level tokenizer with its own pattern."""
    return pre.Split(Regex(pattern), "isolated")


def byte_fallback(normalizer: Any, pre_tokenizer: Any, strip: bool) -> hf.Tokenizer:
    """Return a BPE tokenizer of characters, where unknown ones become bytes."""
    made = hf.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence(steps + [decoders.Strip(" ", 1, 0)] * strip)
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    settings = {"limit_alphabet": 90, "special_tokens": special, "show_progress": False}
    # The pipeline without a normalizer would learn spaces; a training pipeline has it.
    train(made, trainers.BpeTrainer(vocab_size=VOCABULARY + 256, **settings))
    # Byte tokens are ordinary tokens of the model.
    state = json.loads(made.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    made = hf.Tokenizer.from_str(json.dumps(state))
    made.post_processor = bos("<s>", 1)
    return made


def bert(lowercase: bool) -> hf.Tokenizer:
    """Return BERT's WordPiece tokenizer."""
    made = hf.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    train(
        made,
        trainers.WordPieceTrainer(
            vocab_size=VOCABULARY, special_tokens=special, show_progress=False
        ),
    )
    made.decoder = decoders.WordPiece()
    made.post_processor = post.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def unigram() -> hf.Tokenizer:
    """Return an XLM-RoBERTa-like Unigram tokenizer."""
    made = hf.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    train(
        made,
        trainers.UnigramTrainer(
            vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    made.decoder = decoders.Metaspace()
    made.post_processor = post.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return made


def llama2() -> hf.Tokenizer:
    """Return Llama 2's tokenizer: spaces are written as U+2581 by normalizers."""
    return byte_fallback(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, True
    )


def mistral() -> hf.Tokenizer:
    """Return Mistral's tokenizer: the first word alone gets a space."""
    return byte_fallback(None, pre.Metaspace(prepend_scheme="first", split=False), True)


def gemma() -> hf.Tokenizer:
    """Return Gemma's tokenizer: spaces are written as U+2581, none is added."""
    return byte_fallback(
        normalizers.Replace(" ", "▁"), pre.Split(" ", "merged_with_previous"), False
    )


BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
SETTINGS = {"padding_side": "left", "truncation_side": "left", "model_max_length": 64}
SENTENCE = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

Family = tuple[Callable[[], hf.Tokenizer], dict[str, Any]]

FAMILIES: dict[str, Family] = {
    "demo": (
        lambda: hf.Tokenizer.from_file(str(ROOT / "models" / "demo" / "tokenizer.json")),
        {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    ),
    "gpt2": (
        lambda: byte_level(pre.ByteLevel(add_prefix_space=False)),
        {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"},
    ),
    "prefix": (
        lambda: byte_level(pre.Digits(True), pre.ByteLevel(add_prefix_space=True)),
        {"eos_token": "<|endoftext|>"},
    ),
    "qwen2": (
        lambda: byte_level(split(QWEN), BYTES, normalizer=normalizers.NFC()),
        {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    ),
    "llama3": (
        lambda: byte_level(split(LLAMA3), BYTES),
        {"eos_token": "<|im_end|>", "bos_token": "<|endoftext|>"},
    ),
    "llama2": (llama2, SENTENCE),
    "mistral": (mistral, SENTENCE),
    "gemma": (gemma, SENTENCE),
    "bert": (lambda: bert(lowercase=True), BERT),
    "bert_cased": (lambda: bert(lowercase=False), BERT),
    "bert_pairs": (lambda: bert(lowercase=True), BERT | SETTINGS),
    "unigram": (unigram, {**SENTENCE, "pad_token": "<pad>"}),
}


def convert(name: str, folder: Path) -> None:
    """Write the models of a family."""
    make, special = FAMILIES[name]
    made = make()
    if "cls_token" not in special:  # WordPiece finds no token that is not in its vocabulary
        add_tokens(made, wide=name != "mistral")
    write(made, special, 2 if name == "bert_pairs" else 1, folder)


def write(made: hf.Tokenizer, special: dict[str, Any], inputs: int, folder: Path) -> None:
    """Write the models of a tokenizer of one text or two."""
    import openvino as ov
    import transformers
    from openvino_tokenizers import convert_tokenizer

    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=TEMPLATE, **special
    )
    converted = convert_tokenizer(fast, with_detokenizer=True, number_of_inputs=inputs)
    for model, file in zip(converted, FILES, strict=True):
        ov.save_model(model, folder / f"{file}.xml")


PAIRS = [("hi", "the sun"), ("hi", "the " * 40), ("the " * 70, "a " * 50)]


def encoded(tokenizer: Any, text: str, special: bool) -> list[int]:
    """Return what the real tokenizer makes of a text."""
    return tokenizer.encode(text, add_special_tokens=special).input_ids.data[0].tolist()


def results(folder: Path) -> dict[str, Any]:
    """Return what the real openvino_genai.Tokenizer makes of texts and ids."""
    import openvino_genai

    real = openvino_genai.Tokenizer(folder)
    texts = {
        text: [encoded(real, text, special) for special in (True, False)]
        for text in (*TEXTS, *DIFFERENT)
    }
    rows = [ids for text in TEXTS for ids in texts[text] if ids]
    return {
        "ids": texts,
        "texts": [
            [row, *(real.decode(row, skip_special_tokens=s) for s in (True, False))] for row in rows
        ],
        "special": {
            name: [getattr(real, f"get_{name}_token_id")(), getattr(real, f"get_{name}_token")()]
            for name in ("bos", "eos", "pad")
        },
        "chat_template": real.chat_template,
        "pairs": [pair(real, *texts) for texts in PAIRS if real.supports_paired_input()],
    }


def pair(tokenizer: Any, first: str, second: str) -> list[Any]:
    """Return two texts, their ids, and those that pad_to_max_length and truncation make."""
    options = {"pad_to_max_length": True, "truncation": True}
    ids = [tokenizer.encode([[first, second]], **given).input_ids for given in ({}, options)]
    return [first, second, *(tensor.data[0].tolist() for tensor in ids)]


def main() -> None:
    """Write all golden files, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names or list(FAMILIES)
    TARGET.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            convert(name, folder)
            files = {
                path.name: base64.b64encode(path.read_bytes()).decode()
                for path in sorted(folder.iterdir())
            }
            content = json.dumps({"files": files, **results(folder)}, ensure_ascii=False)
        target = TARGET / f"{name}.json.xz"
        target.write_bytes(lzma.compress(content.encode(), preset=9))
        print(f"{name}: {target.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
