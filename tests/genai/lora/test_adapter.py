"""Adapter files: pairs by layer, or an error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from genai_layer import Adapter, AdapterError
from genai_layer.testing.memory_runtime import MemoryTensor

A, B = np.ones((2, 3), np.float32), np.ones((4, 2), np.float32)


@pytest.fixture(scope="module")
def write(load_module) -> Any:
    return load_module(GOLDENS / "adapter_files.py").write_tensors


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("lora_A", "lora_B"),
        ("lora_down", "lora_up"),
        ("lora.down", "lora.up"),
    ],
)
def test_names_of_peft_and_kohya_are_supported(write, tmp_path, first, second) -> None:
    tensors = {f"m.x.{first}.weight": A, f"m.x.{second}.weight": B, "m.x.alpha": A[0, :1]}
    adapter = Adapter(write(tmp_path / "x.safetensors", tensors))
    (layer,) = adapter.layers
    pair = adapter.layers[layer]
    assert (layer, pair.a.shape, pair.b.shape, pair.rank) == ("m.x", (2, 3), (4, 2), 2)


def test_both_matrices_of_a_pair_have_one_type(write, tmp_path) -> None:
    half = A.astype(np.float16)
    for a, b, kind in ((half, B, "float32"), (half, B.astype(np.float16), "float16")):
        tensors = {"x.lora_A.weight": a, "x.lora_B.weight": b}
        pair = Adapter(write(tmp_path / "x.safetensors", tensors)).layers["x"]
        assert pair.a.dtype.name == pair.b.dtype.name == kind


def test_paths_and_tensors_of_bytes_are_accepted(write, tmp_path) -> None:
    tensors = {"x.lora_A.weight": A, "x.lora_B.weight": B}
    path = write(tmp_path / "x.safetensors", tensors)
    content = np.frombuffer(path.read_bytes(), np.uint8)
    every = (
        Adapter(path),
        Adapter(str(path)),
        Adapter(str(path).encode()),
        Adapter(path=path),
        Adapter(content),
        Adapter(MemoryTensor(content.view(np.int8))),
        Adapter(safetensor=content),
    )
    for adapter in every:
        assert adapter
        assert np.array_equal(adapter.layers["x"].b, B)
    path.unlink()
    assert every[0].layers["x"].a.sum() == 6, "the file is read at construction"
    assert not Adapter()


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({}, "the file has no LoRA pair"),
        ({"x.lora_A.weight": A}, "layer 'x' has no lora_B"),
        ({"x.lora_up.weight": B}, "layer 'x' has no lora_A"),
        ({"x.lora_A.weight": A, "x.lora_B.weight": B[:, :1]}, r"A \[2, 3\] and B \[4, 1\]; exp"),
        ({"x.lora_A.weight": A[0], "x.lora_B.weight": B}, r"A \[3\] and B \[4, 2\]; expected"),
        ({"x.lora_A.weight": A[:0], "x.lora_B.weight": B[:, :0]}, r"A \[0, 3\] and B \[4, 0\]"),
        ({"x.lora_A.default.weight": A}, "'x.lora_A.default.weight' belongs to no LoRA pair"),
        ({"x.lora_magnitude_vector": A}, "'x.lora_magnitude_vector' belongs to no LoRA pair"),
        ({"base_model.model.lm_head.weight": A}, "replaces a full weight matrix .modules_to_save"),
        ({"m.embed_tokens.weight": A}, "replaces a full weight matrix .modules_to_save"),
        ({"x.lora_A.weight": A.astype(np.int64)}, "is I64; supported:"),
    ],
)
def test_an_invalid_adapter_is_rejected_with_its_file_name(write, tmp_path, tensors, why) -> None:
    path = write(tmp_path / "mine.safetensors", tensors)
    with pytest.raises(AdapterError, match=rf"mine\.safetensors: .*{why}"):
        Adapter(path)


def test_missing_and_damaged_files_are_named(tmp_path) -> None:
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(b"\x10\0\0\0")
    folder = tmp_path / "folder.safetensors"
    folder.mkdir()
    for path, why in (
        (tmp_path / "no.safetensors", r"no\.safetensors: no such file"),
        (folder, r"folder\.safetensors: no such file"),
        (tmp_path / "x.gguf", r"x\.gguf: adapters must be \.safetensors files; convert the file"),
        (cut, r"cut\.safetensors: the file is truncated"),
        (Path("a\0b.safetensors"), "no such file"),
        ("x" * 300 + ".safetensors", r"x\.safetensors: File name too long"),
        (3, "path = 3: pass a str"),
    ):
        with pytest.raises(AdapterError, match=why):
            Adapter(path)
