"""``npuc export``."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.quantize import format_kinds, store_floats
from compiler_layer.tools.npuc.models import IR_NAME, model_argument, read_model
from compiler_layer.tools.npuc.options import (
    Quantisation,
    quantisation_options,
    quantize_statically,
)
from compiler_layer.tools.npuc.quantize import quantize_into
from compiler_layer.writers.files import scratch_folder, writing
from compiler_layer.writers.openvino_ir import weight_bytes, write_ir
from driver_layer.support.command import PATH, Command
from driver_layer.support.progress import counted

_EXAMPLES = """\
  npuc export llama llama-fp16                                      a Hugging Face folder as IR
  npuc export llama llama-int8 --weight-format int8                 8 bits per channel
  npuc export llama llama-int4 --weight-format int4 --sym --group-size 64
  npuc export llama llama-w8a8 --weight-format int8 --quant-mode int8 --dataset tokens.txt
  npuc export llama-fp16/openvino_model.xml llama-int4 --weight-format int4 --group-size -1

OUT_DIR must be new or empty. It receives the IR and the model's other files: configs, tokenizer,
chat template. With int4, these weights keep 8 bits: embeddings, LM head, and weights whose width
is not a multiple of the group size. The table names the storage of each kind of weight.
"""

_FLOATS = {"fp16": {"f32": "f16", "bf16": "f16"}, "fp32": {"f16": "f32", "bf16": "f32"}}
"""Conversion of constants' types, for each float format."""

_RUNTIME_OPTIONS = {name: {"KV_CACHE_PRECISION": "f16"} for name in _FLOATS}
"""Runtime options of an exported IR, by format; by default OpenVINO's CPU has an 8-bit KV cache."""

_BESIDE = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "openvino_tokenizer.xml",
    "openvino_tokenizer.bin",
    "openvino_detokenizer.xml",
    "openvino_detokenizer.bin",
)
"""Files of a model folder that do not depend on the format of the weights."""


@click.command("export", cls=Command, epilog=_EXAMPLES)
@model_argument
@click.argument("output", type=PATH, metavar="OUT_DIR")
@quantisation_options("fp16", "fp32", "int8", "int4")
def export_command(model: Path, output: Path, **quantisation: Any) -> None:
    """Write a model folder with an OpenVINO IR."""
    began = time.perf_counter()
    wanted = Quantisation(**quantisation)
    _check(wanted)
    _check_new(output)
    read = read_model(model)
    with scratch_folder(output) as scratch:
        table = _convert(read, wanted, scratch)
        folder = scratch / output.name
        with writing(output):
            folder.mkdir()
        with counted("writing", weight_bytes(read), "B") as advance:
            options = _RUNTIME_OPTIONS.get(wanted.weight_format)
            write_ir(read, folder / IR_NAME, advance, options)
        with writing(output):
            _copy_beside(model, folder)
            folder.rename(output)
    if table:
        print(table, file=sys.stderr)
    size = sum(path.stat().st_size for path in output.glob("openvino_model.*"))
    seconds = time.perf_counter() - began
    print(f"{output}: {wanted.weight_format}, {size:,} bytes in {seconds:.2f} s", file=sys.stderr)


def _check(wanted: Quantisation) -> None:
    wanted.check_activations()
    if wanted.weight_format not in _FLOATS:
        _ = wanted.format
    elif wanted.sym or wanted.group_size is not None:
        raise CompilerUsageError("--sym and --group-size need --weight-format int8 or int4")


def _check_new(output: Path) -> None:
    """Check that creating the output folder replaces nothing.

    Raises:
        CompilerUsageError: the path exists and is not an empty folder.
    """
    with writing(output):
        if output.is_dir() and any(output.iterdir()):
            raise CompilerUsageError(f"{output}: the folder is not empty; name a new one")
        if output.exists() and not output.is_dir():
            raise CompilerUsageError(f"{output}: exists, and is not a folder; name a new one")


def _convert(model: Model, wanted: Quantisation, scratch: Path) -> str:
    """Convert the weights to the format; return a text about their storage."""
    floats = _FLOATS.get(wanted.weight_format)
    if floats is not None:
        kept = store_floats(model, floats)
        beyond = f"{len(kept)} weights exceed f16's range and are not converted: {', '.join(kept)}"
        return f"npuc: note: {beyond}" if kept else ""
    if wanted.quant_mode is not None:
        quantize_statically(model, wanted.dataset, wants_report=False)
    return format_kinds(quantize_into(model, wanted.format, scratch))


def _copy_beside(model: Path, folder: Path) -> None:
    if model.suffix == ".mlir":
        return
    source = model if model.is_dir() else model.parent
    for name in _BESIDE:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
