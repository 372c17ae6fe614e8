"""The command npuw, as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npuw_layer import Core
from npuw_layer.options import ABSENT, NAMES

COMMANDS = Path(sys.executable).parent

ROOM = 400 << 10
"""File size in bytes that a small prefill program fits, and a long generate program exceeds."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Folder that contains only a config."""
    folder = tmp_path / "model"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 22,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def check_one_line(result: Any, *words: str) -> None:
    assert result.returncode == 2, result.stdout
    assert result.stdout == ""
    assert result.stderr.startswith("npuw: ")
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


def test_options_are_listed_by_groups(command) -> None:
    lines = command("npuw", "options").stdout.splitlines()
    end = lines.index("Options of OpenVINO that are not supported")
    indented = [line for line in lines if line.startswith("  ") and line[2] != " "]
    names = [line.split()[0] for line in indented if lines.index(line) < end]
    assert names == list(NAMES)
    assert all(any(name in line for line in lines[end:]) for name in ABSENT)
    assert lines[0] == "LLM lengths"
    assert "Generate" in lines
    assert max(map(len, lines)) <= 100
    assert not any("\033" in line for line in lines), "no colours outside of a terminal"


def test_one_option_is_described_in_full(command) -> None:
    done = command("npuw", "options", "NPUW_LLM_MAX_PROMPT_LEN")
    for words in ("= 1024", "integer", "from 1 to 1,048,576", "rounded up to 64", "NPUW"):
        assert words in done.stdout


def test_unset_and_empty_values_are_distinguished(command) -> None:
    text = command("npuw", "options", "NPUW_LLM", "CACHE_DIR").stdout
    assert "NPUW_LLM = (unset)" in text
    assert "CACHE_DIR = (empty)" in text
    unset, empty = json.loads(command("npuw", "options", "NPUW_LLM", "CACHE_DIR", "--json").stdout)
    assert (unset["default"], empty["default"]) == (None, "")


def test_options_are_printed_as_json(command) -> None:
    found = json.loads(command("npuw", "options", "--json").stdout)
    assert [one["name"] for one in found] == list(NAMES)
    assert set(found[0]) == {"group", "name", "type", "default", "allowed", "effect", "source"}


def test_an_unknown_option_is_rejected_with_the_nearest_name(command) -> None:
    check_one_line(command("npuw", "options", "NPUW_LLM_PROMPT_LEN"), "NPUW_LLM_MAX_PROMPT_LEN")


def test_a_plan_is_a_chart_and_a_table(command, model: Path) -> None:
    done = command("npuw", "plan", model, "--prompt", 512, "--response", 64)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("llama, 1.1 G parameters: 22 layers of 2,048 channels")
    bars = {line[:30].strip(): line.count("█") for line in lines if "█" in line}
    assert max(bars.values()) == 32
    stages = ("prefill_128", "prefill_512", "generate_256", "generate_576", "lm_head")
    for words in ("K and V cache", "tokens/s", *stages):
        assert words in done.stdout
    assert "TTFT after 512 tokens: " in done.stdout
    assert "below 20% (tests/npuw/plan" in done.stdout


def test_a_plan_is_ascii_in_an_ascii_terminal(command, model: Path) -> None:
    done = command("npuw", "plan", model, "--prompt", 64, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "####" in done.stdout
    assert " us  " in done.stdout, "the LM head takes microseconds"


@pytest.mark.long
def test_a_plan_is_printed_as_json_and_follows_options(command, model: Path) -> None:
    def plan(*argv: object) -> dict[str, Any]:
        done = command("npuw", "plan", model / "config.json", "--prompt", 128, "--json", *argv)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first = plan()
    small = plan("-c", "KV_CACHE_PRECISION=i8", "--sym")
    large = plan("--weights", "fp16", "--platform", "3720")
    names = [one["name"] for one in first["stages"]]
    assert names == ["prefill_32_after_128", "prefill_128", "generate_256", "lm_head"]
    assert 0.5 < small["memory"]["K and V cache"] / first["memory"]["K and V cache"] < 0.56
    assert small["total_bytes"] < first["total_bytes"] < large["total_bytes"] / 2
    assert first["stages"][2]["ms"] < large["stages"][2]["ms"] / 4
    assert first["stages"][2]["bound"] == "DDR"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nowhere"], ["nowhere: no such file or folder", "nothing is downloaded"]),
        (["x" * 300], ["xx: File name too long"]),
        (["."], ["has no config.json"]),
        (["model", "--platform", "9"], ["use 3720, 4000, 5010"]),
        (["model", "--prompt", "0"], ["NPUW_LLM_MAX_PROMPT_LEN = 0: must be", "from 1"]),
        (["model", "--prompt", "8", "-c", "NPUW_LLM_MAX_PROMPT_LEN=8"], ["leave one out"]),
        (["model", "-c", "NPUW_FOLD"], ["NAME=VALUE"]),
        (["model", "-c", "NPUW_FOLD=NO", "-c", "NPUW_FOLD=NO"], ["NPUW_FOLD is given twice"]),
        (["model", "-c", "NPUW_FOLDS=NO"], ["did you mean NPUW_FOLD?"]),
        (["model", "-c", "NPUW_LLM_BATCH_DIM=1"], ["counts tokens along axis 2", "leave them out"]),
        (["model", "-c", "NPUW_WEIGHTS_OFFLOAD=ASYNC"], ["all weights are in device memory"]),
        (["model", "-c", "NPUW_LLM=NO"], ["only language models that NPUW splits"]),
        (["model", "--group-size", "0"], ["a group size of 0"]),
        (["mamba.json"], ["'mamba' is not supported", "llama", "qwen3"]),
        (["broken.json"], ["broken.json", "is not JSON"]),
        (["odd.json"], ["hidden_size must be"]),
    ],
)
def test_bad_input_prints_one_clear_line(command, model: Path, argv, words) -> None:
    folder = model.parent
    (folder / "mamba.json").write_text('{"model_type": "mamba"}')
    (folder / "broken.json").write_text("{")
    (folder / "odd.json").write_text('{"model_type": "llama", "hidden_size": "many"}')
    check_one_line(command("npuw", "plan", *argv), *words)


@pytest.mark.matrix
@pytest.mark.parametrize("argv", [["plan", "m", "--weights", "i2"], ["nonsense"]])
def test_wrong_usage_shows_the_usage(command, argv) -> None:
    done = command("npuw", *argv)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: npuw")


@pytest.mark.parametrize("argv", [[], ["options"], ["plan"]])
def test_the_help_has_examples(command, argv) -> None:
    done = command("npuw", *argv, "--help")
    assert done.returncode == 0
    assert done.stdout.count("npuw ") >= 3


@pytest.mark.long
def test_programs_are_extracted_from_an_exported_model(command, demo, tmp_path) -> None:
    blob = tmp_path / "demo.blob"
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 192}
    config = {"BLOB_PATH": str(blob), "EXPORT_BLOB": "YES", "CACHE_MODE": "OPTIMIZE_SPEED"}
    config |= lengths
    Core().compile_model(demo, "NPU", config)
    done = command("npuw", "extract", blob, tmp_path / "programs")
    assert done.returncode == 0, done.stderr
    names = {path.stem for path in (tmp_path / "programs").iterdir()}
    assert {"prefill_64", "generate_256", "lm_head"} <= names
    assert len(done.stdout.splitlines()) == len(names)
    for path in (tmp_path / "programs").iterdir():
        assert command("npu-objdump", "--check", path).stdout == "ok\n"
    again = command("npuw", "extract", blob, tmp_path / "programs")
    check_one_line(again, "File exists")


@pytest.mark.long
def test_programs_larger_than_the_file_limit_are_named_and_leave_no_files(
    command, demo, tmp_path
) -> None:
    """Programs written before the failure are removed, as the next run would not overwrite them."""
    blob, folder = tmp_path / "demo.blob", tmp_path / "programs"
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 1024}
    config = {"BLOB_PATH": str(blob), "EXPORT_BLOB": "YES", **lengths}
    Core().compile_model(demo, "NPU", config)

    limited = f"ulimit -f {ROOM >> 9}; exec {COMMANDS / 'npuw'} extract {blob} {folder}"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False)
    check_one_line(done, "generate_1024.blob: File too large")
    assert list(folder.iterdir()) == []
    left = folder / ".lm_head.blob-12345678.tmp"
    left.write_bytes(b"half")
    assert command("npuw", "extract", blob, folder).returncode == 0
    assert not left.exists(), "temporary files of a killed run are removed, too"
    assert (folder / "prefill_64.blob").stat().st_size < ROOM, "prefill is written first"


def test_a_path_that_is_not_a_compiled_model_is_rejected(command, demo, tmp_path) -> None:
    for wrong in (demo / "config.json", tmp_path / "nothing", tmp_path):
        check_one_line(command("npuw", "extract", wrong, tmp_path / "programs"), str(wrong.name))
    assert not (tmp_path / "programs").exists()
