"""Golden files tests/goldens/sentences: sentence-transformers' reading of its own files.

``pooling.npz`` has embeddings of random hidden states by each combination of modes. ``files.json``
has the settings of models with other files each, and the texts that prompts make. In
``vectors.json`` are embeddings of the model ``bert`` of tests/goldens/texts, with the tokenizer of
tests/goldens/rag, on OpenVINO in f32.

Needs sentence-transformers and optimum-intel:

    pip install "sentence-transformers==5.7.0" "optimum-intel[openvino]==2.2.0"
    python tools/make_sentence_goldens.py       # from the checkout, a minute
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import GOLDENS, restore

TARGET = GOLDENS / "sentences"
SAID = json.loads((GOLDENS / "rag" / "said.json").read_text())
FLAGS = (
    *("cls_token", "max_tokens", "mean_tokens"),
    *("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"),
)
TEXTS, TOKENS, CHANNELS = 3, 7, 4
WIDTH = {"word_embedding_dimension": 64}
POSITIONS, TOKENIZER_LIMIT = 130, 120

Files = dict[str, Any]
"""Contents of JSON files by name."""


def modules(*classes: str) -> list[dict[str, Any]]:
    """Return a ``modules.json`` of classes, by default those of sentence-transformers.models."""
    return [
        {
            "idx": idx,
            "name": str(idx),
            "path": f"{idx}_{name.rpartition('.')[2]}" if idx else "",
            "type": f"sentence_transformers.{name if '.' in name else f'models.{name}'}",
        }
        for idx, name in enumerate(classes)
    ]


def pooling(*flags: str) -> Files:
    """Return a Pooling's ``config.json`` of the older form."""
    return WIDTH | {f"pooling_mode_{flag}": flag in flags for flag in FLAGS}


POOLING, LENGTHS = "1_Pooling/config.json", "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
BASE: Files = {
    "modules.json": modules("Transformer", "Pooling", "Normalize"),
    POOLING: pooling("mean_tokens"),
}
NEWER = (
    "base.modules.transformer.Transformer",
    "sentence_transformer.modules.pooling.Pooling",
    "sentence_transformer.modules.normalize.Normalize",
)


def cases() -> dict[str, Files]:
    """Return files by the name of their case."""
    found: dict[str, Files] = {
        "plain": BASE,
        "without normalisation": BASE | {"modules.json": modules("Transformer", "Pooling")},
        "dropout": BASE
        | {"modules.json": modules("Transformer", "Pooling", "Dropout", "Normalize")},
        "newer names": BASE
        | {
            "modules.json": modules(*NEWER),
            POOLING: {"embedding_dimension": 64, "pooling_mode": "cls", "include_prompt": True},
            LENGTHS: {
                "transformer_task": "feature-extraction",
                "modality_config": {
                    "text": {"method": "forward", "method_output_name": "last_hidden_state"}
                },
                "module_output_name": "token_embeddings",
            },
        },
        "modes in a list": BASE | {POOLING: WIDTH | {"pooling_mode": ["lasttoken", "cls"]}},
        "mode and flags": BASE | {POOLING: {"pooling_mode": "max", **pooling("cls_token")}},
        "no flags": BASE | {POOLING: WIDTH},
    }
    for flags in [*itertools.combinations(FLAGS, 1), *itertools.combinations(FLAGS, 2), FLAGS]:
        found["+".join(flags)] = BASE | {POOLING: pooling(*flags)}
    for name, value in (
        ("length", {"max_seq_length": 50, "do_lower_case": False}),
        ("length beyond the tokenizer's", {"max_seq_length": 125}),
        ("no length", {"max_seq_length": None}),
    ):
        found[name] = BASE | {LENGTHS: value}
    found["length of an old name"] = BASE | {"sentence_roberta_config.json": {"max_seq_length": 9}}
    for name, prompts, default in (
        ("no prompts", {}, None),
        ("query", {"query": "how "}, None),
        ("query is the default", {"query": "how "}, "query"),
        ("both", {"query": "how ", "document": "text "}, None),
        ("both and a default", {"query": "how ", "document": "text ", "other": "on "}, "other"),
        ("others", {"other": "on "}, None),
        ("another is the default", {"other": "on "}, "other"),
        ("nulls", {"query": None, "document": "text "}, "query"),
    ):
        found[f"prompts: {name}"] = BASE | {
            PROMPTS: {"prompts": prompts, "default_prompt_name": default}
        }
    return found


def write(files: Files, folder: Path) -> None:
    """Write JSON files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))


def write_model(folder: Path, model: Path) -> Path:
    """Write a folder with the IR ``bert`` and a tokenizer; return its path."""
    from transformers import BertConfig, PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_file=str(GOLDENS / "rag" / "encoder.json"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=TOKENIZER_LIMIT,
    ).save_pretrained(folder)
    BertConfig(
        vocab_size=512, hidden_size=64, max_position_embeddings=POSITIONS, pad_token_id=1
    ).save_pretrained(folder)
    (folder / "openvino").mkdir()
    for suffix in (".xml", ".bin"):
        shutil.copy(model.with_suffix(suffix), folder / "openvino" / f"openvino_model{suffix}")
    return folder


def read(files: Files, base: Path, work: Path) -> Any:
    """Return sentence-transformers' model of a folder with these files."""
    from sentence_transformers import SentenceTransformer

    folder = Path(tempfile.mkdtemp(dir=work))
    shutil.copytree(base, folder, dirs_exist_ok=True)
    write(files, folder)
    exact = {"device": "CPU", "ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}
    return SentenceTransformer(str(folder), backend="openvino", model_kwargs=exact, device="cpu")


def settings(model: Any) -> dict[str, Any]:
    """Return a model's settings, and the prompt that each of its methods puts before a text."""
    mode = model[1].pooling_mode
    text = "the text"
    after = {
        prompt: model.encode(prompt + text, prompt="")
        for prompt in ("", *filter(None, model.prompts.values()))
    }

    def prompt(vector: np.ndarray) -> str:
        return next(name for name, other in after.items() if np.allclose(vector, other, atol=1e-5))

    return {
        "modes": [mode] if isinstance(mode, str) else list(mode),
        "normalize": any(type(each).__name__ == "Normalize" for each in model),
        "max_length": model.max_seq_length,
        **{
            method: prompt(getattr(model, method)(text))
            for method in ("encode_query", "encode_document")
        },
    }


def poolings() -> dict[str, np.ndarray]:
    """Return embeddings f32 [texts, channels · modes] by the combination of modes."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    random = np.random.RandomState(3)
    hidden = random.standard_normal((TEXTS, TOKENS, CHANNELS)).astype(np.float32)
    mask = (np.arange(TOKENS)[None] < np.array([[TOKENS], [3], [1]])).astype(np.int64)
    found = {"hidden": hidden, "mask": mask}
    modes = Pooling.POOLING_MODES
    for count in range(1, len(modes) + 1):
        for chosen in itertools.combinations(modes, count):
            features = {
                "token_embeddings": torch.tensor(hidden),
                "attention_mask": torch.tensor(mask),
            }
            vectors = Pooling(CHANNELS, chosen)(features)["sentence_embedding"]
            found["+".join(chosen)] = vectors.numpy()
    return found


VECTORS: dict[str, Files] = {
    "combined": BASE
    | {
        POOLING: pooling("cls_token", "max_tokens", "weightedmean_tokens"),
        LENGTHS: {"max_seq_length": 12},
        PROMPTS: {"prompts": {"query": "how ", "document": "the text: "}},
    },
    "unscaled": BASE
    | {
        "modules.json": modules("Transformer", "Pooling"),
        POOLING: pooling("mean_sqrt_len_tokens", "lasttoken"),
    },
}


def main() -> None:
    """Write all golden files."""
    TARGET.mkdir(exist_ok=True)
    np.savez_compressed(TARGET / "pooling.npz", **poolings())
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        ir, base = work / "ir", work / "base"
        base.mkdir()
        write_model(base, restore.restore(GOLDENS / "texts", "bert", ir))
        found = {
            name: {"files": files, **settings(read(files, base, work))}
            for name, files in cases().items()
        }
        (TARGET / "files.json").write_text(json.dumps(found) + "\n")
        said: dict[str, Any] = {}
        for name, files in VECTORS.items():
            model = read(files, base, work)
            said[name] = {
                "files": files,
                "documents": np.round(model.encode_document(SAID["documents"]), 6).tolist(),
                "query": np.round(model.encode_query(SAID["query"]), 6).tolist(),
            }
        text = json.dumps(said)
        short = json.loads(text, parse_float=lambda number: round(float(number), 6))
        (TARGET / "vectors.json").write_text(json.dumps(short) + "\n")


if __name__ == "__main__":
    main()
