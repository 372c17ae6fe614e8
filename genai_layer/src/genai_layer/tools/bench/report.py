"""Report of a benchmark: the lines or the JSON of llm_bench, and percentiles, which are ours.

Source: openvino.genai's llm_bench, docs/reference/genai.md#llm_bench.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import genai_layer
from genai_layer.tools.bench.measure import Run, mean_of, measured, statistics

_LONGEST = 1024
"""Maximum number of characters of a prompt."""


def beginning(model: str, seconds: float, iterations: int, prompts: int) -> list[str]:
    """Return the lines before the first run."""
    return [
        _info(f"Model path={model}, genai version: {genai_layer.__version__}"),
        _info(f"Pipeline initialization time: {seconds:.2f}s"),
        _info(
            f"Numbeams: 1, benchmarking iter nums(exclude warm-up): {iterations}, "
            f"prompt nums: {prompts}, prompt idx: {list(range(prompts))}"
        ),
    ]


def run(one: Run) -> Iterator[str]:
    """Yield the lines of a run."""
    prefix = f"[{one.iteration or 'warm-up'}][P{one.prompt}]"
    if not one.iteration:
        if one.question:
            yield _info(f"{prefix} Input text: {_shortened(one.question)}")
        yield _info(f"{prefix} Generated: {one.answer}")
    encoding = f"Tokenization Time: {one.encoding:.2f}ms, " if one.encoding else ""
    yield _info(
        f"{prefix} Input token size: {one.input_size}, Output size: {one.output_size}, "
        f"Infer count: {1 + len(one.other_tokens)}, {encoding}"
        f"Detokenization Time: {one.decoding:.2f}ms, "
        f"Generation Time: {one.generation / 1000:.2f}s, "
        f"Latency: {one.generation / one.output_size:.4f} ms/token"
    )
    yield _info(
        f"{prefix} First token latency: {one.first_token:.2f} ms, "
        f"other tokens latency: {_mean(one.other_tokens, 'ms/token')}, "
        f"len of input tokens: {one.input_size} * 1"
    )
    yield _info(
        f"{prefix} First infer latency: {_mean(one.inferences[:1], 'ms')}, "
        f"other infers latency: {_mean(one.inferences[1:], 'ms/infer')}, "
        f"inference count: {len(one.inferences)}"
    )
    yield _info(f"{prefix} Result MD5:['{one.digest}']")


def summary(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the lines after the last run; none if all runs warm up."""
    by_prompt = measured(runs)
    if not by_prompt:
        return
    yield _info("<<< Warm-up iteration is excluded. >>>")
    yield _info(f"[Total] Iterations: {sum(map(len, by_prompt.values()))}")
    for prompt, its in by_prompt.items():
        found = statistics(its)
        mean = found.other_tokens.get("avg", 0.0)
        other = f"{mean:.2f} ms/token" if mean else "NA"
        rate = f"{1000 / mean:.2f} tokens/s" if mean else "NA"
        yield _info(
            f"[Average] P[{prompt}] Input token size: {its[0].input_size}, "
            f"1st token latency: {found.first_token['avg']:.2f} ms, "
            f"2nd token latency: {other}, 2nd tokens throughput: {rate}"
        )
        for name, values in (
            ("1st token latency, ms", found.first_token),
            ("2nd token latency, ms/token", found.other_tokens),
            ("2nd tokens throughput, tokens/s", found.throughput),
        ):
            if values:
                yield _info(f"[Percentiles] P[{prompt}] {name:32} {_row(values)}")


def _info(text: str) -> str:
    return f"[ INFO ] {text}"


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} ... [truncated to {_LONGEST}]"


def _mean(values: Sequence[float], unit: str) -> str:
    return f"{mean_of(values):.2f} {unit}" if values else "NA"


def _row(values: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in values.items() if name != "avg")


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
        means = {name: _mean_or_none([each[name] for each in averaged]) for name in _AVERAGED}
        perfdata["results_averaged"] = means | _throughput(means["second_avg_latency"])
        perfdata["percentiles"] = [
            {"prompt_idx": prompt, **asdict(statistics(its))}
            for prompt, its in measured(runs).items()
        ]
    metadata = {"model": model, "framework": "ov", "device": device}
    return {"metadata": {**metadata, "num_beams": 1, "batch_size": 1}, "perfdata": perfdata}


def _result(run: Run) -> dict[str, Any]:
    """Return a run; times are in milliseconds but generation_time, which is in seconds."""
    second = _mean_or_none(run.other_tokens)
    return {
        "iteration": run.iteration,
        "input_size": run.input_size,
        "infer_count": 1 + len(run.other_tokens),
        "output_size": run.output_size,
        "generation_time": round(run.generation / 1000, 5),
        "latency": round(run.generation / run.output_size, 5),
        "first_latency": round(run.first_token, 5),
        "second_avg_latency": second,
        "first_infer_latency": _mean_or_none(run.inferences[:1]),
        "second_infer_avg_latency": _mean_or_none(run.inferences[1:]),
        "tokenization_time": round(run.encoding, 5),
        "detokenization_time": round(run.decoding, 5),
        "prompt_idx": run.prompt,
        "result_md5": [run.digest],
        **_throughput(second),
    }


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that exist; None, in JSON null, if there are none."""
    found = [value for value in values if value is not None]
    return round(mean_of(found), 5) if found else None


def _throughput(latency: float | None) -> dict[str, float]:
    """Return the throughput after the first token; nothing if there is no other token."""
    return {"second_token_throughput": round(1000 / latency, 5)} if latency else {}
