"""Language models without the input position_ids, as exported for LFM-2, on the real OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from genai_layer.adapters.openvino import OpenVINOCore
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.perf_metrics import RawPerfMetrics


def test_a_model_without_positions_runs_on_the_cpu(tmp_path: Path) -> None:
    inputs = {
        "input_ids": ops.parameter([-1, -1], np.int64),
        "attention_mask": ops.parameter([-1, -1], np.int64),
        "beam_idx": ops.parameter([-1], np.int32),
    }
    for name, node in inputs.items():
        node.output(0).set_names({name})
    one, zero = (ops.constant(np.float32(value)) for value in (1, 0))
    logits = ops.one_hot(inputs["input_ids"], ops.constant(np.int64(5)), one, zero, -1)
    logits.output(0).set_names({"logits"})
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([logits], list(inputs.values())), path, compress_to_fp16=False)
    request = OpenVINOCore().compile_model(path, "CPU", {}).create_infer_request()
    model = LanguageModel(StoredTokens(request), RawPerfMetrics())
    assert model.read([[1, 3]], 0)[0, 0].tolist() == [0, 0, 0, 1, 0]
    model.start([[2]], 2)
    assert model.wait()[0, 0].tolist() == [0, 0, 1, 0, 0]
