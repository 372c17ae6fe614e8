"""Program that runs the real openvino_genai on "NPU"; ``npu-run``'s environment gives it a device.

It runs in a process of its own, as a process has an NPU, or has none, from its start. The job is
JSON on the command line: the name of a function here, and its arguments. The result is JSON, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai

from driver_layer.tools.npu_run import environment

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 32}

Options = Mapping[str, Any]


def ask(job: Callable[..., Any], *arguments: object) -> Any:
    """Run a function of this module in a process with an NPU; return its result."""
    command = [sys.executable, __file__, job.__name__, json.dumps(arguments)]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout.splitlines()[-1])


def tokens(cases: Sequence[tuple[str, str, Options]]) -> list[dict[str, Any]]:
    """Generate greedy tokens of two prompts, by device.

    Args:
        cases: IR, folder of a tokenizer, and NPUW's options.

    Returns:
        For each case the tokens on "NPU", those of OpenVINO's CPU plugin in f32 ("exact"), and if
        they differ those with NPUW on the "CPU" device; or the error instead.
    """
    return [_tokens_of(*case) for case in cases]


def _tokens_of(model: str, tokenizer: str, options: Options) -> dict[str, Any]:
    given = (model, genai.Tokenizer(tokenizer))
    on_npu = LENGTHS | dict(options)
    found = {"NPU": _answers(*given, "NPU", on_npu), "exact": _answers(*given, "CPU", EXACT)}
    if found["NPU"] != found["exact"]:
        found["CPU"] = _answers(*given, "NPU", on_npu | {"NPUW_DEVICES": "CPU"})
    return found


def _answers(model: str, tokenizer: Any, device: str, options: Options) -> list[list[int]] | str:
    try:
        pipe = genai.LLMPipeline(model, tokenizer, device, **options)
        return [_greedy(pipe, count) for count in (40, 9)]
    except RuntimeError as error:
        return str(error)


def _greedy(pipe: Any, count: int) -> list[int]:
    ids = np.random.default_rng(count).integers(5, 500, (1, count))
    config = genai.GenerationConfig(max_new_tokens=8, ignore_eos=True)
    return [int(token) for token in pipe.generate(ov.Tensor(ids), config).tokens[0]]


def conversations(folder: str, cache: str, options: Options) -> dict[str, Any]:
    """Chat with streaming, on the CPU and twice on the NPU with a cache; export and import.

    Compilations are counted in the log of the driver, which the driver's process writes to stderr.
    """
    options = LENGTHS | {"MAX_PROMPT_LEN": 128} | dict(options)
    log = Path(cache) / "driver.log"
    with log.open("w") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.environ["ZE_INTEL_NPU_LOGLEVEL"] = "INFO"
    found: dict[str, Any] = {"exact": _chat(genai.LLMPipeline(folder, "CPU", **EXACT))}
    compiled = 0
    for start in ("cold", "warm"):
        found[start] = _chat(genai.LLMPipeline(folder, "NPU", CACHE_DIR=cache, **options))
        before, compiled = compiled, log.read_text().count("compiled a model")
        found[f"compiled, {start}"] = compiled - before
    blob = str(Path(cache) / "exported.blob")
    genai.LLMPipeline(folder, "NPU", EXPORT_BLOB=True, BLOB_PATH=blob, **options)
    weights = str(Path(folder) / "openvino_model.bin")
    pipe = genai.LLMPipeline(folder, "NPU", BLOB_PATH=blob, WEIGHTS_PATH=weights, **options)
    found["imported"] = _chat(pipe)
    return found


def _chat(pipe: Any) -> list[str]:
    """Return the answers of a chat, and the streamed texts."""
    texts: list[str] = []
    pipe.start_chat()
    for question in ("What is an NPU?", "And what is a KV cache?"):
        parts: list[str] = []
        texts.append(str(pipe.generate(question, max_new_tokens=16, streamer=parts.append)))
        texts.append("".join(parts))
    pipe.finish_chat()
    return texts


def errors(paths: Sequence[str]) -> list[float]:
    """Return the largest relative error of static models on "NPU", compared to f32 on the CPU."""
    core = ov.Core()
    found: list[float] = []
    for path in paths:
        model = core.read_model(path)
        values = _inputs(model, 0)
        expected = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(values)
        answers = core.compile_model(model, "NPU")(values)
        found.append(max(map(_error, answers.values(), expected.values())))
    return found


def uses(path: str) -> dict[str, Any]:
    """Run a static model in several ways: errors of each way, its profile, its known layers."""
    core = ov.Core()
    model = core.read_model(path)
    rows = [_inputs(model, seed) for seed in range(8)]
    exact = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = [exact(row)[0] for row in rows]
    compiled = core.compile_model(model, "NPU", {"PERF_COUNT": "YES"})

    requests = [compiled.create_infer_request() for _ in rows]
    for request, row in zip(requests, rows, strict=True):
        request.start_async(row)
    for request in requests:
        request.wait()
    answers = [np.array(request.get_output_tensor().data) for request in requests]

    shape = compiled.output(0).shape
    remote = core.get_default_context("NPU").create_tensor(ov.Type.f32, shape, {})
    requests[0].set_tensor(compiled.output(0).any_name, remote)
    requests[0].start_async(rows[1])
    requests[0].wait()
    there = ov.Tensor(ov.Type.f32, shape)
    remote.copy_to(there)

    imported = core.import_model(compiled.export_model(), "NPU")
    return {
        "async": max(map(_error, answers, expected)),
        "remote": _error(there.data, expected[1]),
        "imported": _error(imported(rows[2])[0], expected[2]),
        "profile": [one.node_name for one in requests[1].profiling_info if one.real_time],
        "known": sorted(core.query_model(model, "NPU")),
        "layers": sorted(op.friendly_name for op in model.get_ops()),
    }


def _inputs(model: Any, seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    integers = [port.element_type == ov.Type.i64 for port in model.inputs]
    shapes = [tuple(port.shape) for port in model.inputs]
    return [
        draw.integers(0, 50, shape) if whole else draw.standard_normal(shape).astype(np.float32)
        for shape, whole in zip(shapes, integers, strict=True)
    ]


def _error(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    result = globals()[sys.argv[1]](*json.loads(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(result))
