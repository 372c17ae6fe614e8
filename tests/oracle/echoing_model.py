"""A model whose answer is its prompt, so that a test decides what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo

LENGTH = 96
"""Number of tokens of every prompt."""


def save_echoing_model(path: Path, vocabulary: int) -> None:
    """Write an IR that repeats its prompt of ``LENGTH`` tokens.

    The state holds a zero and all tokens, also those of earlier prompts, as OpenVINO's CPU plugin
    does not reset it. The logits after a token prefer the one that is LENGTH - 1 tokens before.
    """
    inputs = {
        name: ops.parameter([-1, -1], np.int64, name=name)
        for name in ("input_ids", "attention_mask", "position_ids")
    }
    inputs["beam_idx"] = ops.parameter([-1], np.int32, name="beam_idx")
    for name, node in inputs.items():
        node.output(0).set_names({name})
    ids = inputs["input_ids"]
    info = VariableInfo()
    info.data_shape = ov.PartialShape([-1, 1, -1, 1])
    info.data_type = ov.Type.f32
    info.variable_id = "past_key_values.0.keypresent.0.key"
    variable = Variable(info)
    axes = [ops.constant(np.int64(axis)) for axis in range(4)]
    batch = ops.gather(ops.shape_of(ids), ops.constant(np.int64([0])), axes[0])
    one = ops.constant(np.int64([1]))
    first = ops.broadcast(ops.constant(np.float32(0)), ops.concat([batch, one, one, one], 0))
    past = ops.gather(ops.read_value(first, variable), inputs["beam_idx"], axes[0])
    new = ops.convert(ops.unsqueeze(ops.unsqueeze(ids, axes[1]), axes[3]), "f32")
    stored = ops.concat([past, new], 2)
    length = ops.gather(ops.shape_of(stored), axes[2], axes[0])
    positions = inputs["position_ids"]
    to_last = ops.subtract(positions, ops.reduce_max(positions, one, keep_dims=True))
    before = ops.subtract(length, ops.constant(np.int64(LENGTH)))
    wanted = ops.maximum(ops.add(to_last, before), axes[0])
    flat = ops.reshape(stored, ops.constant(np.int64([0, -1])), special_zero=True)
    said = ops.convert(ops.gather(flat, wanted, axes[1], 1), "i64")
    spent = ops.reduce_sum(ops.convert(inputs["attention_mask"], "f32"), one, keep_dims=True)
    zero = ops.unsqueeze(ops.multiply(spent, ops.constant(np.float32(0))), axes[2])
    scores = ops.one_hot(
        said,
        ops.constant(np.int64(vocabulary)),
        ops.constant(np.float32(10)),
        ops.constant(np.float32(0)),
        axis=-1,
    )
    result = ops.result(ops.add(scores, zero))
    result.output(0).set_names({"logits"})
    model = ov.Model([result], [ops.assign(stored, variable)], [*inputs.values()], "echoing")
    ov.save_model(model, path, compress_to_fp16=False)
