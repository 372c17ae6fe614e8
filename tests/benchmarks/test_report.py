"""Bars, and the report with their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from bars import Verdict, judge
from bench import chosen_scenarios, full_scenarios, left_out, parse_arguments
from measure import plan_residents
from model_facts import ModelFacts
from peer import every_peer, parse_peer
from report import Circumstances, document, table, write_atomically
from results import PeerResult, Scenario, ScenarioResult
from session import Run, Start

FACTS = ModelFacts(2048, 5632, 22, 32, 4, 64, vocabulary=32000, tied=False)
LIMITS = {"read_1": 20e9, "read_2": 40e9, "gemm_f32": 2e11}


def measured(name: str, rate: float, first: float = 1.0, other_work: float = 0.0) -> PeerResult:
    """Return a peer with equal results in two rounds."""
    result = PeerResult(parse_peer(name), weight_bytes=1e9)
    for number in range(2):
        result.runs[number] = Run(first, first + 10 / rate, tuple(range(11)), other_work, 100.0)
        result.starts[number] = Start(0.1, 4.0, "1.0", 1000.0)
        if result.peer.is_ours:
            result.warm_starts[number] = Start(0.1, 2.0, "1.0", 900.0)
    return result


def scenario(*peers: PeerResult, model: str = "llama-1b", prompt: int = 512) -> ScenarioResult:
    return ScenarioResult(Scenario(model, prompt, 128), FACTS, list(peers))


def verdicts(result: ScenarioResult) -> dict[tuple[str, str], Verdict]:
    return {(j.title, j.other): j.verdict for j in judge(result, LIMITS) if "int8" in j.ours}


def test_a_ratio_at_the_bar_meets_it_and_one_below_misses_it() -> None:
    found = verdicts(scenario(measured("ours-int8", 20), measured("openvino-int8", 10)))
    assert found["decode", "OpenVINO GenAI CPU int8"] is Verdict.MET
    found = verdicts(scenario(measured("ours-int8", 19), measured("openvino-int8", 10)))
    assert found["decode", "OpenVINO GenAI CPU int8"] is Verdict.MISSED


def test_times_and_memory_must_not_exceed_the_bar() -> None:
    slow, fast = measured("ours-int8", 20, first=1.1), measured("openvino-int8", 10)
    found = verdicts(scenario(slow, fast))
    assert found["time to first token", "OpenVINO GenAI CPU int8"] is Verdict.MISSED
    assert found["warm start", "OpenVINO GenAI CPU int8"] is Verdict.MET
    assert found["peak memory", "OpenVINO GenAI CPU int8"] is Verdict.MET


def test_a_bar_without_its_peer_is_neither_met_nor_missed() -> None:
    found = verdicts(scenario(measured("ours-int8", 20)))
    assert found["decode", "llama.cpp q8_0"] is Verdict.NOT_MEASURED
    assert found["decode", "measured read bandwidth"] is Verdict.MISSED  # 20 of 40 GB/s


def test_only_the_default_configuration_is_judged() -> None:
    tuned = measured("ours-int8:INFERENCE_PRECISION_HINT=bf16", 100)
    found = verdicts(scenario(measured("ours-int8", 10), tuned, measured("openvino-int8", 10)))
    assert found["decode", "OpenVINO GenAI CPU int8"] is Verdict.MISSED


def test_a_long_context_has_its_own_bar() -> None:
    peers = measured("ours-int8", 15), measured("openvino-int8", 10)
    found = verdicts(scenario(*peers, model="llama-135m", prompt=8192))
    assert found == {("decode", "OpenVINO GenAI CPU int8"): Verdict.MET}


def report(left_out: tuple[str, ...] = ()) -> str:
    absent = PeerResult(parse_peer("llama.cpp-q8_0"), absent="not installed: No module llama_cpp")
    result = scenario(
        measured("ours-int8", 20), measured("openvino-int8", 10, other_work=0.5), absent
    )
    circumstances = Circumstances("2026-01-01", ["2 processors"], LIMITS, "Medians.", left_out)
    return document([result], circumstances)


def test_the_report_has_medians_ratios_and_verdicts() -> None:
    text = report()
    assert "| ours int8 " in text
    assert "20.0 (20.0..20.0)" in text
    assert "2.00 (2.00..2.00)" in text
    assert "1.00 (1.00..1.00)" in text
    assert " met " in text.replace("|", " ")
    assert "read, 2 threads" in text


def test_the_report_names_missing_peers_and_marks_disturbed_rows() -> None:
    text = report()
    assert "- llama.cpp q8_0: not installed: No module llama_cpp" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| OpenVINO GenAI CPU int8")]
    assert row.rstrip(" |").endswith("50% †")
    (row,) = [line for line in text.splitlines() if "÷" not in line and "| ours int8  " in line]
    assert "†" not in row


def test_a_verdict_on_a_disturbed_row_is_marked() -> None:
    bars = [line for line in report().splitlines() if line.startswith("| decode, ours int8")]
    marks = {row.split("|")[2].strip(): "†" in row for row in bars}
    assert marks["÷ OpenVINO GenAI CPU int8"]
    assert not marks["÷ measured read bandwidth"]


def test_a_partial_run_is_labelled() -> None:
    assert "partial" not in report()
    assert "**A partial run.** Left out:\n\n- llama-135m" in report(("llama-135m",))


def test_columns_of_a_table_are_aligned() -> None:
    lines = table(("a", "bb"), [("ccc", "1"), ("d", "22222")]).splitlines()
    assert lines == ["| a   |    bb |", "|-----|------:|", "| ccc |     1 |", "| d   | 22222 |"]


def test_a_full_benchmark_leaves_nothing_out(tmp_path: Path) -> None:
    arguments = parse_arguments(["--models", str(tmp_path)])
    scenarios = chosen_scenarios(arguments)
    assert scenarios == full_scenarios()
    everybody = [measured(peer.name, 10) for peer in every_peer()]
    results = [ScenarioResult(chosen, FACTS, everybody) for chosen in scenarios]
    assert list(left_out(scenarios, results)) == []
    assert len(list(left_out(scenarios[:2], results[:2]))) == 2
    assert len(list(left_out(scenarios, [scenario(*everybody[1:])]))) == 1


def test_a_context_without_a_name_selects_the_model_with_a_bar(tmp_path: Path) -> None:
    arguments = parse_arguments(["--models", str(tmp_path), "--context", "8192"])
    assert chosen_scenarios(arguments) == [Scenario("llama-135m", 8192, 32)]


@pytest.mark.parametrize(
    "more", [["--peers", "ours-int5"], ["--rounds", "0"], ["--new", "1"], ["--names", "llama-7b"]]
)
def test_an_invalid_command_line_is_rejected(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(["--models", str(tmp_path), *more])
    assert raised.value.code == 2
    assert more[0] in capsys.readouterr().err


def test_peers_that_do_not_fit_into_memory_are_reopened_each_round() -> None:
    peaks = {"small": 1.0, "middle": 3.0, "large": 6.0}
    assert plan_residents(peaks, 10.0) == {"small", "middle", "large"}
    assert plan_residents(peaks, 9.5) == {"small"}
    assert plan_residents(peaks, 6.5) == set()
    assert plan_residents({}, 1.0) == set()


def test_replacing_a_report_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text("old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
