"""Golden file tests/goldens/tokenizer_settings.json.xz: folders whose settings act on tokenizers.

Each case is a tokenizer.json with a tokenizer_config.json and perhaps further files, in four forms:
written by hand, as saved by transformers 4 and 5, and, for cases of settings alone, converted by
openvino_tokenizers. The first three have the results of the transformers that reads or wrote them.
The file also has the fast classes that transformers 4 gives to types of models.

Needs transformers, once version 4 with openvino_tokenizers and once version 5; a minute each:

    python4 tools/make_tokenizer_setting_goldens.py      # from the checkout
    python5 tools/make_tokenizer_setting_goldens.py      # adds its results
"""

from __future__ import annotations

import base64
import json
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_tokenizer_goldens as families
import tokenizers as hf
import transformers
from tokenizers import normalizers, pre_tokenizers

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "goldens" / "tokenizer_settings.json.xz"
VERSION = transformers.__version__.partition(".")[0]

TEXTS = (
    *("", " ", "Hello world", " Hello  world ", "Hello , world . I 'm do n't ?", "<s>"),
    *(
        "a<s> b </s>c",
        "x <mask> y",
        "x<mask>y",
        "x <MASK> y",
        "  <|im_start|>  user\n",
        "😀👩‍👩‍👧 é e\u0301 한국어",
    ),
    *("\n\n\n", "\t tab", "▁a ▁", "<0xFF>", "ＡＢＣ ﬁ", "İstanbul ß", "a" * 300, "\0 nul"),
    *("\U0010ffff", "foo<|tool|>bar <|tool|> baz", "HELLO There"),
)

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
END = {name: "<|endoftext|>" for name in NAMES}
BERT = families.BERT
PLAIN = {"tokenizer_class": "PreTrainedTokenizerFast"}


def added(content: str, **flags: bool) -> dict[str, Any]:
    """Return a token as the files describe it."""
    names = ("lstrip", "rstrip", "normalized", "single_word", "special")
    return {"content": content, **dict.fromkeys(names, False), **flags}


def of_class(name: str, *tokens: dict[str, str], **settings: Any) -> dict[str, Any]:
    """Return the settings of a tokenizer class."""
    given = {"tokenizer_class": f"{name}TokenizerFast", **settings}
    return given | {key: text for each in tokens for key, text in each.items()}


def sentences() -> hf.Tokenizer:
    """Return Llama 2's tokenizer without its post-processor."""
    made = json.loads(families.llama2().to_str())
    return hf.Tokenizer.from_str(json.dumps(made | {"post_processor": None}))


def bytewise(prefix: bool = False) -> hf.Tokenizer:
    """Return GPT-2's tokenizer with the special tokens of sentences."""
    made = families.byte_level(pre_tokenizers.ByteLevel(add_prefix_space=prefix))
    made.add_special_tokens(list(NAMES.values()))
    return made


def words() -> hf.Tokenizer:
    """Return BERT's tokenizer without its post-processor."""
    made = json.loads(families.bert(lowercase=True).to_str())
    return hf.Tokenizer.from_str(json.dumps(made | {"post_processor": None}))


def with_mask(lstrip: bool) -> hf.Tokenizer:
    """Return bytewise with a mask token of its own."""
    made = bytewise()
    made.add_special_tokens([hf.AddedToken("<mask>", lstrip=lstrip)])
    return made


def pieces() -> hf.Tokenizer:
    """Return the unigram tokenizer with a normalizer that shows which tokens are normalized."""
    made = families.unigram()
    made.normalizer = normalizers.Replace("MASK", "mask")
    return made


ROBERTA = NAMES | {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<unk>",
    "mask_token": "<mask>",
}
MAP, NUMBERED, CONFIG = "special_tokens_map.json", "added_tokens.json", "config.json"
LISTED = {"added_tokens_decoder": {"400": added("<s>", special=True)}}
TOOLS = {"<|tool|>": 403, "<mask>": 404}


def of_model(made: Callable[[], hf.Tokenizer], model: str, **config: Any) -> Case:
    """Return a case whose settings have no class."""
    return made, {**NAMES}, {CONFIG: {"model_type": model, **config}}


Case = tuple[Callable[[], hf.Tokenizer], dict[str, Any], dict[str, dict[str, Any]]]
"""Tokenizer, entries of tokenizer_config.json, and further files by name."""

FILES: dict[str, Case] = {
    "map": (
        bytewise,
        PLAIN | NAMES | {"additional_special_tokens": ["<mask>"]},
        {
            MAP: {
                "bos_token": "</s>",
                "eos_token": "<s>",
                "additional_special_tokens": ["<|tool|>"],
            }
        },
    ),
    "map_null": (bytewise, PLAIN | NAMES, {MAP: {"bos_token": None}}),
    "map_listed": (bytewise, PLAIN | NAMES | LISTED, {MAP: {"bos_token": "</s>"}}),
    "map_addbos": (sentences, of_class("Llama", NAMES), {MAP: {"bos_token": "</s>"}}),
    "numbered": (bytewise, PLAIN | NAMES | {"mask_token": "<mask>"}, {NUMBERED: TOOLS}),
    "numbered_known": (
        lambda: with_mask(lstrip=True),
        PLAIN | NAMES,
        {NUMBERED: {"<|tool|>": 404, "<mask>": 403, "<s> b": 401}},
    ),
    "numbered_listed": (bytewise, PLAIN | NAMES | LISTED, {NUMBERED: TOOLS}),
    "config_class": of_model(sentences, "gpt2", tokenizer_class="LlamaTokenizer"),
    "config_class_unused": (
        sentences,
        PLAIN | NAMES,
        {CONFIG: {"model_type": "llama", "tokenizer_class": "LlamaTokenizer"}},
    ),
    "type_mistral": of_model(sentences, "mistral"),
    "type_gemma": of_model(sentences, "gemma3_text", transformers_version="4.57.6"),
    "type_bert": (words, {**BERT}, {CONFIG: {"model_type": "bert"}}),
    "type_gpt2": of_model(lambda: bytewise(True), "gpt2"),
    "type_smollm3": of_model(bytewise, "smollm3"),
    "type_version_5": of_model(sentences, "mistral", transformers_version="5.24.0"),
    **{
        f"mask_{name}": (made, of_class(name, ROBERTA), {})
        for name, made in {
            "Roberta": bytewise,
            "Longformer": bytewise,
            "Bart": bytewise,
            "XLMRoberta": pieces,
            "Camembert": pieces,
            "MPNet": words,
        }.items()
    },
    "mask_object": (
        bytewise,
        of_class("Roberta", ROBERTA) | {"mask_token": {"__type": "AddedToken", **added("<mask>")}},
        {},
    ),
    "mask_known": (lambda: with_mask(lstrip=False), of_class("Roberta", ROBERTA), {}),
    "mask_unlisted": (lambda: with_mask(lstrip=False), of_class("Bart", ROBERTA) | LISTED, {}),
    "mask_type": (bytewise, {**ROBERTA}, {CONFIG: {"model_type": "roberta"}}),
}

SETTINGS: dict[str, tuple[Callable[[], hf.Tokenizer], dict[str, Any]]] = {
    "llama_plain": (sentences, PLAIN | NAMES),
    "llama_class_addbos": (sentences, of_class("Llama", NAMES, add_bos_token=True)),
    "llama_class_default": (sentences, {"tokenizer_class": "LlamaTokenizer"}),
    "llama_class_addeos": (sentences, of_class("Llama", NAMES, add_eos_token=True)),
    "llama_class_nobos": (sentences, of_class("Llama", NAMES, add_bos_token=False)),
    "code_llama": (
        sentences,
        of_class(
            "CodeLlama",
            NAMES,
            prefix_token=None,
            middle_token=None,
            suffix_token=None,
            eot_token=None,
        ),
    ),
    "gemma": (sentences, of_class("Gemma", add_eos_token=True)),
    "cohere": (bytewise, of_class("Cohere")),
    "neox_addbos": (bytewise, of_class("GPTNeoX", add_bos_token=True)),
    "neox": (bytewise, of_class("GPTNeoX")),
    "qwen2": (bytewise, of_class("Qwen2")),
    "gpt2_cleanup": (bytewise, PLAIN | NAMES | {"clean_up_tokenization_spaces": True}),
    "gpt2_nocleanup": (bytewise, PLAIN | NAMES | {"clean_up_tokenization_spaces": False}),
    "gpt2_prefix_space": (bytewise, of_class("GPT2", NAMES, add_prefix_space=True)),
    "gpt2_no_prefix_space": (lambda: bytewise(True), of_class("GPT2")),
    "gpt2_addbos": (bytewise, of_class("GPT2", NAMES, add_bos_token=True)),
    "bert_plain": (words, of_class("Bert", BERT, do_lower_case=True)),
    "bert_cased": (words, of_class("Bert", BERT, do_lower_case=False)),
    "bert_default": (lambda: families.bert(lowercase=False), {"tokenizer_class": "BertTokenizer"}),
    "bert_accents": (words, of_class("DistilBert", BERT, strip_accents=False)),
    "bert_cleanup": (words, of_class("Electra", BERT, clean_up_tokenization_spaces=True)),
    "mpnet": (words, of_class("MPNet", BERT, do_lower_case=False)),
    "unigram": (families.unigram, PLAIN | NAMES),
    "unigram_cleanup": (families.unigram, PLAIN | NAMES | {"clean_up_tokenization_spaces": True}),
    "lstrip_mask": (
        bytewise,
        PLAIN
        | NAMES
        | {
            "added_tokens_decoder": {
                "403": added("<mask>", lstrip=True, special=True),
                "404": added("<|tool|>", rstrip=True),
            }
        },
    ),
    "extra_special_list": (
        bytewise,
        PLAIN | NAMES | {"extra_special_tokens": ["<|tool|>", "<mask>"]},
    ),
    "extra_special_dict": (
        bytewise,
        PLAIN
        | NAMES
        | {"extra_special_tokens": {"image_token": "<mask>", "tool_token": "<|tool|>"}},
    ),
    "additional_special": (
        bytewise,
        PLAIN | NAMES | {"additional_special_tokens": ["<|tool|>", "<mask>"]},
    ),
    "split_special": (bytewise, PLAIN | NAMES | {"split_special_tokens": True}),
    "bos_as_dict": (
        bytewise,
        PLAIN
        | {
            "bos_token": {"__type": "AddedToken", **added("<s>")},
            "eos_token": {"__type": "AddedToken", **added("</s>")},
            "unk_token": "<unk>",
        },
    ),
    "eos_not_in_vocab": (bytewise, PLAIN | NAMES | {"eos_token": "<|no_token|>"}),
}

CASES: dict[str, Case] = {name: (*pair, {}) for name, pair in SETTINGS.items()} | FILES


def model_types() -> dict[str, str]:
    """Return the fast class of each type of model that has one, without "TokenizerFast"."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    classes = {name: fast for name, (_, fast) in TOKENIZER_MAPPING_NAMES.items() if fast}
    return {name: fast.removesuffix("TokenizerFast") for name, fast in classes.items()}


def results(folder: Path) -> dict[str, Any]:
    """Return the special ids, and each text's ids and their texts, as transformers has them."""
    real = transformers.AutoTokenizer.from_pretrained(folder)
    rows = [real(text)["input_ids"] for text in TEXTS]
    return {
        "special": [real.bos_token_id, real.eos_token_id, real.pad_token_id],
        "side": real.padding_side,
        "rows": [
            [row, *(real.decode(row, skip_special_tokens=skip) for skip in (True, False))]
            for row in rows
        ],
    }


def files(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Return the named files of a folder that exist."""
    paths = [folder / name for name in names if (folder / name).exists()]
    return {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths}


JSON = ("tokenizer.json", "tokenizer_config.json", MAP, NUMBERED, CONFIG)
MODELS = tuple(
    f"openvino_{name}.{kind}" for name in ("tokenizer", "detokenizer") for kind in ("xml", "bin")
)


def saved(source: Path, target: Path) -> dict[str, Any]:
    """Save a folder's tokenizer again; return its files and results."""
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(target)
    return {"files": files(target, JSON), **results(target)}


def converted(source: Path, target: Path) -> dict[str, Any]:
    """Convert a folder's tokenizer; return the files that optimum would write."""
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer

    made = transformers.AutoTokenizer.from_pretrained(source)
    made.save_pretrained(target)
    for model, name in zip(
        convert_tokenizer(made, with_detokenizer=True), MODELS[::2], strict=True
    ):
        ov.save_model(model, target / name)
    return {"files": files(target, (*JSON, *MODELS))}


def main() -> None:
    """Write the golden file, or add the results of transformers 5."""
    found: dict[str, Any] = {}
    types: dict[str, str] = {}
    if VERSION == "5":
        before = json.loads(lzma.decompress(TARGET.read_bytes()))
        found, types = before["cases"], before["types"]
    else:
        types = model_types()
    for name, (make, settings, further) in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            plain = Path(scratch) / "plain"
            plain.mkdir()
            if VERSION == "4":
                make().save(str(plain / "tokenizer.json"))
                for file, entries in {"tokenizer_config.json": settings, **further}.items():
                    (plain / file).write_text(json.dumps(entries))
                found[name] = {"plain": {"files": files(plain, JSON)}}
            else:
                for file, data in found[name]["plain"]["files"].items():
                    (plain / file).write_bytes(base64.b64decode(data))
            case = found[name]
            if further.get(CONFIG, {}).get("transformers_version", VERSION)[0] != VERSION:
                continue
            try:
                if "rows" not in case["plain"]:
                    case["plain"] |= results(plain)
                case[f"saved {VERSION}"] = saved(plain, Path(scratch) / "saved")
                if VERSION == "4" and name in SETTINGS:
                    case["converted"] = converted(plain, Path(scratch) / "converted")
            except Exception as error:  # transformers 4 cannot read lists of extra tokens
                print(f"{name}: transformers {VERSION}: {str(error)[:80]!r}")
    content = json.dumps({"texts": TEXTS, "types": types, "cases": found}, ensure_ascii=False)
    TARGET.write_bytes(lzma.compress(content.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
