"""Golden files tests/goldens/rag: the real openvino_genai's embeddings and ranks, on its CPU.

Its TextEmbeddingPipeline and TextRerankPipeline run models of tests/goldens, with two tokenizers
that are trained here on a few words: the encoders' adds [CLS] and [SEP] to texts and pairs, the
decoders' adds no tokens.

Needs openvino_genai, openvino_tokenizers and transformers:

    pip install openvino-genai==2026.4.1 openvino-tokenizers transformers
    python tools/make_rag_goldens.py       # from the checkout, a minute
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from golden_ir import GOLDENS, restore

TARGET = GOLDENS / "rag"
VOCABULARY = 400
SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]"]
WORDS = "yes no the a of on and an npu runs static programs text long short is what how model " * 3
QUERY = "what runs on an npu?"
DOCUMENTS = [
    "an npu runs static programs",
    "no",
    "the model is long and the text is short and how long is the text of the model on the npu",
    "bread, butter & jam",
]
EMBEDDINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert_cls": ("bert", {}),
    "bert_mean": ("bert", {"pooling_type": "MEAN", "normalize": False}),
    "bert_cut": ("bert", {"pooling_type": "MEAN", "max_length": 8}),
    "bert_padded": (
        "bert",
        {"pooling_type": "MEAN", "max_length": 24, "pad_to_max_length": True, "batch_size": 4},
    ),
    "qwen3_last": ("qwen3", {"pooling_type": "LAST_TOKEN", "padding_side": "right"}),
    "qwen3_left": ("qwen3", {"pooling_type": "LAST_TOKEN", "padding_side": "left"}),
    "qwen3_told": (
        "qwen3",
        {
            "pooling_type": "LAST_TOKEN",
            "query_instruction": "how ",
            "embed_instruction": "the text: ",
        },
    ),
}
"""Cases by name: a model of tests/goldens/texts, and a configuration."""
RANKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "xlmr": ("texts", "xlmr", {"top_n": 4}),
    "xlmr_two": ("texts", "xlmr", {"top_n": 2, "max_length": 16}),
    "qwen3_score": ("texts", "qwen3_score", {}),
    "qwen3": ("exported", "qwen3_fp16", {"padding_side": "left"}),
}
"""Cases by name: a folder of tests/goldens, a model there, and a configuration."""


def train(encoder: bool) -> Any:
    """Train a small byte-level tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet
    )
    tokenizer.train_from_iterator([WORDS, *(f"{word} " * 9 for word in WORDS.split())], trainer)
    if encoder:
        ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
        )
    return tokenizer


def folder(source: str, name: str, work: Path) -> Path:
    """Write a model's folder like the exporter."""
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer
    from transformers import PreTrainedTokenizerFast

    target = work / name
    if target.exists():
        return target
    restore.restore(GOLDENS / source, name, target)
    kind = "decoder" if name.startswith("qwen3") else "encoder"
    fast = PreTrainedTokenizerFast(
        tokenizer_file=str(TARGET / f"{kind}.json"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )
    for one, kind in zip(
        convert_tokenizer(fast, with_detokenizer=True), ("tokenizer", "detokenizer"), strict=True
    ):
        ov.save_model(one, target / f"openvino_{kind}.xml")
    model_type = "qwen3" if name.startswith("qwen3") else name
    (target / "config.json").write_text(json.dumps({"model_type": model_type}))
    return target


def main() -> None:
    """Write the tokenizers, and all results."""
    import openvino_genai as genai

    TARGET.mkdir(exist_ok=True)
    for kind in ("encoder", "decoder"):
        train(kind == "encoder").save(str(TARGET / f"{kind}.json"), pretty=False)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    said: dict[str, Any] = {"query": QUERY, "documents": DOCUMENTS, "embeddings": {}, "ranks": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for name, (model, config) in EMBEDDINGS.items():
            pooling = getattr(
                genai.TextEmbeddingPipeline.PoolingType, config.get("pooling_type", "CLS")
            )
            pipe = genai.TextEmbeddingPipeline(
                folder("texts", model, Path(scratch)),
                "CPU",
                genai.TextEmbeddingPipeline.Config(**{**config, "pooling_type": pooling}),
                **exact,
            )
            found = {"documents": pipe.embed_documents(DOCUMENTS)}
            if "batch_size" not in config:
                found["query"] = pipe.embed_query(QUERY)
            rounded = json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 6))
            said["embeddings"][name] = {"model": model, "config": config, **rounded}
        for name, (source, model, config) in RANKS.items():
            pipe = genai.TextRerankPipeline(
                folder(source, model, Path(scratch)),
                "CPU",
                genai.TextRerankPipeline.Config(**config),
                **exact,
            )
            ranks = [[index, round(score, 7)] for index, score in pipe.rerank(QUERY, DOCUMENTS)]
            said["ranks"][name] = {
                "folder": source,
                "model": model,
                "config": config,
                "said": ranks,
            }
            print(name, ranks, flush=True)
    (TARGET / "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
