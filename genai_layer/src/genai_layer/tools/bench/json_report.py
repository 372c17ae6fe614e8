"""Report of a benchmark in JSON: that of llm_bench, and percentiles, which are ours.

Source: openvino.genai's llm_bench, docs/reference/genai.md#llm_bench.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from genai_layer.tools.bench.measure import Run, mean_of, measured, statistics

_AVERAGED = (
    "generation_time",
    "latency",
    "first_latency",
    "second_avg_latency",
    "first_infer_latency",
    "second_infer_avg_latency",
    "tokenization_time",
    "detokenization_time",
)


def as_json(runs: Sequence[Run], model: str, device: str, seconds: float) -> dict[str, Any]:
    """Return the report; ``seconds`` is the time to load the model."""
    results = [_result(run) for run in runs]
    perfdata: dict[str, Any] = {"compile_time": round(seconds, 5), "results": results}
    averaged = [result for result in results if result["iteration"]]
    if averaged:
        means = {name: _mean([each[name] for each in averaged]) for name in _AVERAGED}
        perfdata["results_averaged"] = means | _throughput(means["second_avg_latency"])
        perfdata["percentiles"] = [
            {"prompt_idx": prompt, **asdict(statistics(its))}
            for prompt, its in measured(runs).items()
        ]
    metadata = {"model": model, "framework": "ov", "device": device}
    return {"metadata": {**metadata, "num_beams": 1, "batch_size": 1}, "perfdata": perfdata}


def _result(run: Run) -> dict[str, Any]:
    """Return a run; times are in milliseconds but generation_time, which is in seconds."""
    second = _mean(run.other_tokens)
    return {
        "iteration": run.iteration,
        "input_size": run.input_size,
        "infer_count": 1 + len(run.other_tokens),
        "output_size": run.output_size,
        "generation_time": round(run.generation / 1000, 5),
        "latency": round(run.generation / run.output_size, 5),
        "first_latency": round(run.first_token, 5),
        "second_avg_latency": second,
        "first_infer_latency": _mean(run.inferences[:1]),
        "second_infer_avg_latency": _mean(run.inferences[1:]),
        "tokenization_time": round(run.encoding, 5),
        "detokenization_time": round(run.decoding, 5),
        "prompt_idx": run.prompt,
        "result_md5": [run.digest],
        **_throughput(second),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that exist; None, in JSON null, if there are none."""
    found = [value for value in values if value is not None]
    return round(mean_of(found), 5) if found else None


def _throughput(latency: float | None) -> dict[str, float]:
    """Return the throughput after the first token; nothing if there is no other token."""
    return {"second_token_throughput": round(1000 / latency, 5)} if latency else {}
