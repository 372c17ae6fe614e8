"""Tiny random language models, and models of texts, for ``make_hub.py``.

Each has the architecture that its name promises, and a tokenizer of its family, trained on the
texts of ``tools/make_tokenizer_goldens.py``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers as hf

ROOT = Path(__file__).resolve().parents[3]

CHAT = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
TESTING = "optimum-intel-internal-testing"
SENTENCE = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
QWEN = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
LLAMA3 = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<|eot_id|>"}
OPT = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}
BERT = {
    **{"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    "mask_token": "[MASK]",
}


def module(path: Path) -> Any:
    """Import a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


trained = module(ROOT / "tools" / "make_tokenizer_goldens.py")


@cache
def tokenizer(family: str, chat: bool = True) -> Any:
    """Return the tokenizer of a family, with or without a chat template."""
    import transformers as t

    makes: dict[str, tuple[Callable[[], hf.Tokenizer], dict[str, str]]] = {
        "llama2": (trained.llama2, SENTENCE),
        "gemma": (trained.gemma, SENTENCE),
        "qwen2": (qwen2, QWEN),
        "llama3": (llama3, LLAMA3),
        "gpt2": (trained.FAMILIES["gpt2"][0], trained.FAMILIES["gpt2"][1]),
        "opt": (opt, OPT),
        "bert": (trained.FAMILIES["bert"][0], BERT),
    }
    make, special = makes[family]
    template = {"chat_template": CHAT} if chat and family not in ("bert", "opt") else {}
    # BERT's own class lists token_type_ids, which the converter of tokenizers needs.
    kind = t.BertTokenizer if family == "bert" else t.PreTrainedTokenizerFast
    return kind(tokenizer_object=make(), model_max_length=512, **special, **template)


def qwen2() -> hf.Tokenizer:
    """Return Qwen's tokenizer; rerankers score the words yes and no."""
    made = trained.FAMILIES["qwen2"][0]()
    made.add_tokens(["yes", "no"])
    return made


def llama3() -> hf.Tokenizer:
    """Return Llama 3's tokenizer: byte-level BPE, with a token that begins a text."""
    made = trained.FAMILIES["llama3"][0]()
    names = ("begin_of_text", "start_header_id", "end_header_id", "eot_id")
    made.add_special_tokens([f"<|{name}|>" for name in names])
    made.post_processor = trained.bos("<|begin_of_text|>", made.token_to_id("<|begin_of_text|>"))
    return made


def opt() -> hf.Tokenizer:
    """Return OPT's tokenizer: byte-level BPE, and ``</s>`` begins a text."""
    made = trained.FAMILIES["gpt2"][0]()
    made.add_special_tokens(["</s>", "<pad>"])
    made.post_processor = trained.bos("</s>", made.token_to_id("</s>"))
    return made


def decoder(architecture: str, kind: str = "", **more: Any) -> Callable[[Any], Any]:
    """Return a function that makes a model (by default a causal one) for a tokenizer."""

    def make(tokens: Any) -> Any:
        import transformers as t

        config = getattr(t, f"{architecture}Config")(**{**sizes(tokens), **more})
        return getattr(t, kind or f"{architecture}ForCausalLM")(config)

    return make


def sizes(tokens: Any) -> dict[str, Any]:
    """Return the parameters that most architectures share."""
    ids = {f"{name}_token_id": getattr(tokens, f"{name}_token_id") for name in ("eos", "pad")}
    begin = tokens.bos_token_id
    return {
        "vocab_size": len(tokens),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "bos_token_id": ids["eos_token_id"] if begin is None else begin,
        **ids,
    }


def gemma2(tokens: Any) -> Any:
    """Return a small Gemma 2."""
    return decoder("Gemma2", head_dim=16, query_pre_attn_scalar=16, sliding_window=512)(tokens)


def lfm2(tokens: Any) -> Any:
    """Return a small LFM-2: short convolutions and attention."""
    layers = ["conv", "full_attention"]
    return decoder("Lfm2", layer_types=layers, block_auto_adjust_ff_dim=False)(tokens)


def facebook_opt(tokens: Any) -> Any:
    """Return a small OPT."""
    return decoder("OPT", ffn_dim=96, word_embed_proj_dim=64)(tokens)


def bert(kind: str) -> Callable[[Any], Any]:
    """Return a function that makes a small BERT of a kind."""
    return decoder("Bert", kind, num_labels=1)


def qwen3(kind: str = "Qwen3ForCausalLM") -> Callable[[Any], Any]:
    """Return a function that makes a small Qwen 3 of a kind."""
    return decoder("Qwen3", kind, head_dim=16, num_labels=1)


def nothing(_: Any) -> None:
    """Make no model: tests use the tokenizer alone."""


MODELS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    f"{TESTING}/tiny-random-Phi3ForCausalLM": ("llama2", decoder("Phi3")),
    "katuni4ka/tiny-random-phi3": ("llama2", decoder("Phi3")),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": ("llama2", decoder("Llama")),
    f"{TESTING}/tiny-random-PhiForCausalLM": ("gpt2", decoder("Phi")),
    f"{TESTING}/tiny-random-gemma2": ("gemma", gemma2),
    f"{TESTING}/tiny-random-lfm2": ("llama3", lfm2),
    "facebook/opt-125m": ("opt", facebook_opt),
    "Qwen/Qwen2-0.5B-Instruct": ("qwen2", decoder("Qwen2")),
    "Qwen/Qwen3-1.7B": ("qwen2", qwen3()),
    **{
        f"HuggingFaceTB/SmolLM2-{size}": ("qwen2", decoder("Llama"))
        for size in ("360M", "135M", "360M-Instruct", "135M-Instruct")
    },
    "BAAI/bge-small-en-v1.5": ("bert", bert("BertModel")),
    "mixedbread-ai/mxbai-embed-xsmall-v1": ("bert", bert("BertModel")),
    "cross-encoder/ms-marco-TinyBERT-L2-v2": ("bert", bert("BertForSequenceClassification")),
    "tomaarsen/Qwen3-Reranker-0.6B-seq-cls": ("qwen2", qwen3("Qwen3ForSequenceClassification")),
    "Qwen/Qwen3-Reranker-0.6B": ("qwen2", qwen3()),
    "Qwen/Qwen3-Embedding-0.6B": ("qwen2", qwen3("Qwen3Model")),
    "answerdotai/ModernBERT-base": ("bert", nothing),
    f"{TESTING}/tiny-random-llava-next": ("llama2", nothing),
    "microsoft/phi-1_5": ("gpt2", nothing),
    "openbmb/MiniCPM-o-2_6": ("qwen2", nothing),
    "NousResearch/Meta-Llama-3-8B-Instruct": ("llama3", nothing),
    "llamafactory/tiny-random-Llama-3": ("llama3", nothing),
    "Xenova/c4ai-command-r-v01-tokenizer": ("llama3", nothing),
}
"""Families of tokenizers and functions that make models, by name on the hub."""


def scaled(model: Any, factor: float = 8) -> Any:
    """Enlarge the weights of a model that writes texts: greedy decoding has no near-ties then."""
    import torch

    with torch.no_grad():
        for values in model.parameters():
            if values.dim() > 1 and model.can_generate():
                values.mul_(factor)
    return model.eval()
