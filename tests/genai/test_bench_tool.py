"""npu-bench on the in-memory runtime: llm_bench's lines, percentiles, JSON and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import answering_core
from genai_layer.tools.bench import main
from genai_layer.tools.bench.measure import Run, measured, statistics


@pytest.fixture(autouse=True)
def core(monkeypatch: pytest.MonkeyPatch) -> MemoryCore:
    """Replace the runtime of device NPU."""
    made = answering_core("hey")
    monkeypatch.setattr("genai_layer.tools.pipeline_options.load_core", lambda _device: made)
    return made


def run(capsys, *argv: object) -> tuple[int, str, str]:
    code = main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_lines_are_those_of_llm_bench(capsys, folder: Path) -> None:
    code, out, err = run(capsys, "-m", folder, "-n", 2, "-ic", 3, "-p", "who?")
    assert (code, err) == (0, "")
    lines = re.sub(r"\d+\.\d\d+", "N", out).replace(str(folder), "FOLDER").splitlines()
    digest = lines[8].rsplit(":", 1)[1]
    one = [
        "Input token size: 4, Output size: 3, Infer count: 3, Tokenization Time: Nms, "
        "Detokenization Time: Nms, Generation Time: Ns, Latency: N ms/token",
        "First token latency: N ms, other tokens latency: N ms/token, len of input tokens: 4 * 1",
        "First infer latency: N ms, other infers latency: N ms/infer, inference count: 3",
        f"Result MD5:{digest}",
    ]
    assert lines[0].startswith("[ INFO ] Model path=FOLDER, genai version: ")
    assert lines[1:5] == [
        "[ INFO ] Pipeline initialization time: Ns",
        "[ INFO ] Numbeams: 1, benchmarking iter nums(exclude warm-up): 2, prompt nums: 1, "
        "prompt idx: [0]",
        "[ INFO ] [warm-up][P0] Input text: who?",
        lines[4],
    ]
    assert lines[4].startswith("[ INFO ] [warm-up][P0] Generated: ")
    for place, name in enumerate(("warm-up", "1", "2")):
        begin = 5 + 4 * place
        assert lines[begin : begin + 4] == [f"[ INFO ] [{name}][P0] {text}" for text in one]
    assert lines[17:20] == [
        "[ INFO ] <<< Warm-up iteration is excluded. >>>",
        "[ INFO ] [Total] Iterations: 2",
        "[ INFO ] [Average] P[0] Input token size: 4, 1st token latency: N ms, "
        "2nd token latency: N ms/token, 2nd tokens throughput: N tokens/s",
    ]
    assert lines[20].endswith("ms            min N  median N  p90 N  p95 N  p99 N  max N")
    assert len(lines) == 23


def test_json_has_the_results_their_averages_and_percentiles(capsys, folder: Path) -> None:
    file = folder / "prompts.jsonl"
    file.write_text('{"prompt": "who?"}\n\n{"prompt": "what is it?"}\n')
    code, out, _ = run(capsys, "-m", folder, "-pf", file, "-n", 2, "-ic", 2, "--json")
    assert code == 0
    perfdata = json.loads(out)["perfdata"]
    results = perfdata["results"]
    order = [(result["iteration"], result["prompt_idx"]) for result in results]
    assert order == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert [result["input_size"] for result in results[:2]] == [4, 11]
    mean = sum(result["first_latency"] for result in results[2:]) / 4
    assert perfdata["results_averaged"]["first_latency"] == pytest.approx(mean, abs=1e-4)
    assert [each["prompt_idx"] for each in perfdata["percentiles"]] == [0, 1]
    assert set(perfdata["percentiles"][0]["first_token"]) == {
        *("avg", "min", "median", "p90", "p95", "p99", "max")
    }


def test_statistics_leave_the_warm_up_out_and_cover_each_token() -> None:
    def one(iteration: int, first: float, others: list[float]) -> Run:
        return Run(iteration, 0, 1, 3, 0, 0, 9, first, others, [], "", "")

    runs = [one(0, 1000, [1000]), one(1, 10, [1, 2]), one(2, 20, [3, 94])]
    found = statistics(measured(runs)[0])
    assert found.first_token["avg"] == found.first_token["median"] == 15
    assert found.other_tokens == {
        **{"avg": 25, "min": 1, "median": 2.5, "max": 94},
        **{"p90": pytest.approx(66.7), "p95": pytest.approx(80.35), "p99": pytest.approx(91.27)},
    }
    assert found.throughput["max"] == pytest.approx(1000 / 1.5)


def test_random_tokens_depend_on_the_seed_alone(capsys, folder: Path) -> None:
    def digests(seed: int) -> list[str]:
        argv = ("-m", folder, "--prompt-tokens", 5, "-s", seed, "-ic", 4, "--json")
        (result,) = json.loads(run(capsys, *argv)[1])["perfdata"]["results"]
        assert (result["input_size"], result["tokenization_time"]) == (5, 0.0)
        return result["result_md5"]

    assert digests(1) == digests(1)
    assert len({digests(seed)[0] for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "prompts.jsonl: no such file; name a file of JSON lines"),
        (b"", 'prompts.jsonl: no prompts; write lines of {"prompt": "…"}'),
        (b"\xff", "prompts.jsonl: cannot be read"),
        (b"\n{", "prompts.jsonl:2: not JSON"),
        (b"[" * 100_000, "prompts.jsonl:1: not JSON"),
        (b"[]", 'prompts.jsonl:1: no text under "prompt"'),
        (b'{"prompt": ""}', 'prompts.jsonl:1: no text under "prompt"'),
    ],
)
def test_a_bad_prompt_file_prints_one_line_and_returns_2(
    capsys, folder: Path, content: bytes | None, message: str
) -> None:
    file = folder / "prompts.jsonl"
    if content is not None:
        file.write_bytes(content)
    code, out, err = run(capsys, "-m", folder, "-pf", file)
    assert (code, out) == (2, "")
    assert err.startswith("npu-bench: ")
    assert message in err
    assert err.count("\n") == 1


def test_an_answer_that_the_cache_cannot_hold_is_an_error(capsys, folder: Path) -> None:
    argv = ("-c", "MAX_PROMPT_LEN=8", "-c", "MIN_RESPONSE_LEN=8")
    code, _, err = run(capsys, "-m", folder, "-p", "who?", "-ic", 20, *argv)
    assert code == 2
    assert "-ic 20: generation ended after 12 tokens (CAPACITY); raise MIN_RESPONSE_LEN" in err
