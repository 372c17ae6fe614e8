"""A language model that ends its JSON: a bias of its logits favours quotation marks and brackets.

Spaces and digits are disfavoured. Without the bias, a small model repeats spaces in JSON forever.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from genai_layer import Tokenizer


def save_terse_model(source: Path, target: Path) -> Path:
    """Write a copy of a folder with openvino_model.xml whose model has the bias."""
    target.mkdir(exist_ok=True)
    for file in source.iterdir():
        if file.stem != "openvino_model":
            shutil.copy(file, target)
    model = ov.Core().read_model(source / "openvino_model.xml")
    result = model.output("logits").node
    logits = result.input_value(0)
    names = logits.names
    biased = ops.add(logits, ops.constant(_bias(Tokenizer(source))[None, None]))
    logits.set_names(set())
    biased.output(0).set_names(names)
    result.input(0).replace_source_output(biased.output(0))
    ov.save_model(model, target / "openvino_model.xml", compress_to_fp16=False)
    return target


def _bias(tokenizer: Tokenizer) -> np.ndarray:
    """Return the bias of each token, f32 [vocabulary]."""
    bias = np.zeros(tokenizer.vocabulary_size, np.float32)
    for token, number in tokenizer.get_vocab().items():
        if token[:1].isspace():
            bias[number] = -100
        elif token[:1] in (b'"', b",", b"}", b"]"):
            bias[number] = 20
        elif token[:1].isdigit():
            bias[number] = -5
    return bias
