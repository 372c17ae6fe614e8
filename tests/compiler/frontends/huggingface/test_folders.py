"""Checkpoints as found in practice: sharded, without the outermost name, incomplete, damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter

FolderOf = Callable[..., Path]


def logits(folder: Path) -> np.ndarray:
    ids = np.array([[3, 1, 4, 1, 5]])
    inputs = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.arange(5)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    return Interpreter(read_folder(folder)).run(inputs)["logits"]


def rewrite_tensors(families: Any, folder: Path, name: str, tensors: dict[str, list[int]]) -> None:
    """Write the same random numbers under other names or in other shapes."""
    description = families.descriptions()[name] | {"tensors": tensors}
    families.write_folder(folder, description)


def test_a_sharded_folder_computes_the_same(folder_of: FolderOf) -> None:
    whole = logits(folder_of("mistral"))
    (sharded,) = {folder_of("mistral", shards=3)}
    (sharded / "model.safetensors").unlink()
    (sharded / "model.safetensors").mkdir()  # no file, so the index counts
    assert len(list(sharded.glob("model-*-of-00003.safetensors"))) == 3
    assert np.array_equal(logits(sharded), whole)


def test_other_weight_files_of_a_folder_are_ignored(families: Any, folder_of: FolderOf) -> None:
    """Transformers reads model.safetensors, else the index and its files, nothing else."""
    folder = folder_of("mistral")
    expected = logits(folder)
    shapes = families.descriptions()["mistral"]["tensors"]
    zeros = {name: (shape, bytes(4 * math.prod(shape))) for name, shape in shapes.items()}
    for name in ("adapter_model", "model_ema", "optimizer", "z-old", "model-00001-of-00002"):
        families.write_safetensors(folder / f"{name}.safetensors", zeros, "F32")
    index = {"weight_map": dict.fromkeys(shapes, "model-00001-of-00002.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert np.array_equal(logits(folder), expected)
    (folder / "model.safetensors").unlink()
    assert not logits(folder).any()


def test_a_stored_head_precedes_a_tied_one_since_transformers_5(
    families: Any, tmp_path: Path
) -> None:
    """Measured: 5.24.0 ties only a head that the checkpoint lacks; 4.57.6 ignores a stored one."""

    def said(version: str, tied: bool, stored: bool) -> np.ndarray:
        known = families.descriptions()["llama_linear"]
        shapes = {
            name: shape for name, shape in known["tensors"].items() if name != "lm_head.weight"
        }
        written = {"transformers_version": version, "tie_word_embeddings": tied}
        description = {"config": known["config"] | written, "tensors": shapes}
        folder = families.write_folder(tmp_path, known | description)
        if stored:
            zeros = {"lm_head.weight": (known["tensors"]["lm_head.weight"], bytes(96 * 32 * 4))}
            families.write_safetensors(folder / "head.safetensors", zeros, "F32")
            index = dict.fromkeys(shapes, "body.safetensors") | dict.fromkeys(
                zeros, "head.safetensors"
            )
            (folder / "model.safetensors").rename(folder / "body.safetensors")
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
        found = logits(folder)
        for file in folder.iterdir():
            file.unlink()
        return found

    tied = said("5.24.0", True, stored=False)
    assert tied.any()
    assert np.array_equal(said("4.57.6", True, stored=True), tied)
    assert not said("5.24.0", True, stored=True).any()
    assert not said("4.57.6", False, stored=True).any()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "has no model.safetensors; convert the weights to safetensors"),
        (["weights"], "if weights.safetensors has the model's weights, rename it to model.safe"),
        (["a", "b"], "no model.safetensors.index.json that lists its shards, of a.safetensors, b"),
    ],
)
def test_a_folder_without_a_checkpoint_is_named(
    folder_of: FolderOf, names: list[str], says: str
) -> None:
    folder = folder_of("mistral")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    for name in names:
        (folder / f"{name}.safetensors").write_bytes(content)
    with pytest.raises(BadModel) as raised:
        read_folder(folder)
    assert says in str(raised.value)


def test_an_index_may_begin_with_a_byte_order_mark(folder_of: FolderOf) -> None:
    expected = logits(folder_of("mistral"))
    folder = folder_of("mistral", shards=2)
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text(), encoding="utf-8-sig")
    assert np.array_equal(logits(folder), expected)


def test_a_missing_shard_is_named(folder_of: FolderOf) -> None:
    folder = folder_of("mistral", shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(BadModel, match=r"model-00002-of-00003\.safetensors: No such file"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"weight_map": {"a": "../secret.safetensors"}}, "a shard is not beside it; move all"),
        ({"weight_map": {"a": "deep/a.safetensors"}}, "a shard is not beside it; move all"),
        ({"weight_map": ["a"]}, "is not an index of shards"),
        ({}, "is not an index of shards"),
    ],
)
def test_a_damaged_index_is_named(folder_of: FolderOf, index: object, says: str) -> None:
    folder = folder_of("mistral", shards=2)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadModel, match=says):
        read_folder(folder)


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_names_may_lack_the_outermost_module(families: Any, folder_of: FolderOf, name: str) -> None:
    folder = folder_of(name)
    expected = logits(folder)
    shapes = families.descriptions()[name]["tensors"]
    bare = {key.removeprefix("transformer.").removeprefix("model."): shapes[key] for key in shapes}
    assert bare.keys() != shapes.keys()
    rewrite_tensors(families, folder, name, bare)
    assert np.array_equal(logits(folder), expected)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("qwen2", "model.layers.1.self_attn.k_proj.bias"),
        ("qwen3", "model.layers.0.self_attn.q_norm.weight"),
        ("gemma2", "model.layers.3.post_feedforward_layernorm.weight"),
        ("gpt2", "transformer.wpe.weight"),
        ("gpt_neox", "gpt_neox.final_layer_norm.bias"),
    ],
)
def test_a_missing_tensor_is_named(
    families: Any, folder_of: FolderOf, name: str, tensor: str
) -> None:
    folder = folder_of(name)
    shapes = families.descriptions()[name]["tensors"]
    rewrite_tensors(families, folder, name, {k: v for k, v in shapes.items() if k != tensor})
    with pytest.raises(BadModel) as raised:
        read_folder(folder)
    assert f"{tensor}: the checkpoint does not have this tensor" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("phi3", {"num_key_value_heads": 4}, "weight: is [64, 32], but the config needs [96, 32]"),
        (
            "phi3",
            {"intermediate_size": 50},
            "gate_up_proj.weight: is [96, 32], but the config needs [100, 32]",
        ),
        ("gpt2", {"n_inner": 64}, "c_fc.weight: is [32, 128], but the config needs [32, 64]"),
        ("gpt2", {"n_positions": 512}, "wpe.weight: is [256, 32], but the config needs [512, 32]"),
        (
            "gpt_neox",
            {"vocab_size": 97},
            "embed_in.weight: is [96, 32], but the config needs [97, 32]",
        ),
        ("gemma3", {"head_dim": 16}, "q_proj.weight: is [48, 32], but the config needs [64, 32]"),
    ],
)
def test_a_tensor_of_another_shape_is_named(
    folder_of: FolderOf, name: str, values: dict[str, object], says: str
) -> None:
    with pytest.raises(BadModel) as raised:
        read_folder(folder_of(name, **values))
    assert says in str(raised.value)


def test_integer_weights_are_named(families: Any, tmp_path: Path) -> None:
    shape = [96, 32]
    description = families.descriptions()["mistral"]
    families.write_folder(tmp_path, description)
    content = {"model.embed_tokens.weight": (shape, bytes(96 * 32))}
    families.write_safetensors(tmp_path / "model.safetensors", content, "I8")
    with pytest.raises(BadModel, match="weights of i8 are not supported"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (
            "llama_linear",
            {"rope_theta": 5000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
            {
                "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
                "rope_scaling": None,
            },
        ),
        (
            "gemma3",
            {"rope_theta": 5000.0, "rope_local_base_freq": 50.0, "rope_scaling": None},
            {
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
                },
                "rope_scaling": None,
            },
        ),
    ],
)
def test_rotary_embeddings_may_be_described_as_in_transformers_5(
    folder_of: FolderOf, name: str, old: dict[str, object], new: dict[str, object]
) -> None:
    plain = read_folder(folder_of(name))
    before = read_folder(folder_of(name, **old))
    after = read_folder(folder_of(name, **new))
    assert after.module.is_structurally_equivalent(before.module)
    assert not after.module.is_structurally_equivalent(plain.module)


def test_the_config_determines_windows_that_it_does_not_list(folder_of: FolderOf) -> None:
    for name in ("qwen2", "gemma2", "gemma3"):
        listed = read_folder(folder_of(name))
        derived = read_folder(folder_of(name, layer_types=None, sliding_window_pattern=3))
        assert derived.module.is_structurally_equivalent(listed.module)
