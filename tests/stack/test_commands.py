"""Commands as users run them: bad input prints one clear line and returns 2."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Bad = dict[str, Path]

COMMANDS = Path(sys.executable).parent


def changed(folder: Path, source: Path, **config: Any) -> Path:
    """Copy a model folder, and change its config.json."""
    shutil.copytree(source, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


@pytest.fixture(scope="module")
def bad(demo: Path, demo_ir: Path, tmp_path_factory: pytest.TempPathFactory) -> Bad:
    """Model folders with one defect each."""
    base = tmp_path_factory.mktemp("bad")
    mamba = changed(base / "mamba", demo, model_type="mamba", architectures=["MambaForCausalLM"])
    cut = changed(base / "cut", demo)
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])
    junk = changed(base / "junk", demo)
    (junk / "model.safetensors").write_bytes(b"\xff" * 64)
    shape = changed(base / "shape", demo, hidden_size=128)
    odd = changed(base / "odd", demo)
    xml = demo_ir.read_text().replace('type="Swish"', 'type="Mystery"')
    (odd / "openvino_model.xml").write_text(xml)
    shutil.copy(demo_ir.with_suffix(".bin"), odd / "openvino_model.bin")
    broken = changed(base / "broken", demo)
    (broken / "openvino_model.xml").write_text("<net><layers>")
    return {
        "mamba": mamba,
        "cut": cut,
        "junk": junk,
        "shape": shape,
        "odd": odd,
        "broken": broken,
        "missing": base / "missing",
        "demo": demo,
    }


def check_one_line(result: Any, *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


MODELS = [
    ("missing", ["missing"]),
    ("mamba", ["mamba", "not supported", "optimum-cli export openvino"]),
    ("cut", ["model.safetensors"]),
    ("junk", ["model.safetensors"]),
    ("shape", ["shape"]),
    ("odd", ["Mystery"]),
    ("broken", ["openvino_model.xml"]),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("model", "words"), MODELS, ids=[model for model, _ in MODELS])
def test_npu_chat_rejects_a_bad_model(command, bad: Bad, model, words) -> None:
    result = command("npu-chat", bad[model], "--prompt", "hi", "-c", "MAX_PROMPT_LEN=64")
    check_one_line(result, "npu-chat: ", *words)


SHAPES = [
    f"--shape={name}"
    for name in (
        "input_ids=1x8",
        "attention_mask=1x8",
        "position_ids=1x8",
        "beam_idx=1",
        "past_key_values.*=1x4x0x32",
    )
]


@pytest.mark.matrix
@pytest.mark.parametrize(("model", "words"), MODELS, ids=[model for model, _ in MODELS])
def test_npuc_rejects_a_bad_model(command, bad: Bad, model, words) -> None:
    path = bad[model]
    if (path / "openvino_model.xml").exists():
        path = path / "openvino_model.xml"
    result = command("npuc", "compile", path, "-o", "x.blob", *SHAPES)
    check_one_line(result, "npuc: ", *words)


@pytest.mark.matrix
@pytest.mark.parametrize(("model", "words"), MODELS, ids=[model for model, _ in MODELS])
def test_an_export_of_a_bad_model_is_rejected_and_leaves_no_files(
    command, bad: Bad, tmp_path: Path, model, words
) -> None:
    result = command("npuc", "export", bad[model], "out", "--weight-format", "int8")
    check_one_line(result, "npuc: ", *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--prompt", "word " * 200, "-c", "MAX_PROMPT_LEN=64"], ["MAX_PROMPT_LEN=64:", "raise"]),
        (["--prompt", "hi", "-c", "MAX_PROMPT_LENGTH=64"], ["did you mean MAX_PROMPT_LEN"]),
        (["--prompt", "hi", "-c", "NPUW_LLM_PREFIL_HINT=STATIC"], ["NPUW_LLM_PREFILL_HINT"]),
        (["--prompt", "hi", "-c", "NPU_PLATFORM=9"], ["use 3720, 4000, 5010"]),
        (["--prompt", "hi", "-c", "INFERENCE_PRECISION_HINT=i2"], ["INFERENCE_PRECISION_HINT"]),
        (["--prompt", "hi", "--device", "TPU"], ["available: CPU, NPU"]),
        (["--prompt", "hi", "--device", "CPU"], ["openvino_model.xml"]),
    ],
)
def test_npu_chat_rejects_bad_options(command, demo, argv, words) -> None:
    check_one_line(command("npu-chat", demo, *argv), "npu-chat: ", *words)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "argv",
    [
        ["npu-chat", "--nonsense"],
        ["npuc", "compile", "model", "--nonsense"],
        ["npuc", "compile", "model", "--precision", "i2"],
        ["npuc", "export", "model", "out", "--weight-format", "i2"],
        ["npuc", "run-pass", "--nonsense"],
        ["npu-objdump", "--nonsense"],
        ["npu-smi", "--nonsense"],
    ],
)
def test_an_unknown_option_exits_with_2_and_shows_the_usage(command, argv) -> None:
    result = command(*argv)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("usage: ")


SPEAKING = [
    ["npuw", "options"],
    ["npuw", "plan", "{}", "--prompt", "64"],
    ["npuw", "extract", "--help"],
    ["npuc", "print", "{}"],
    ["npu-objdump", "--help"],
    ["npu-smi"],
    ["npu-chat", "--help"],
    ["npu-chat", "{}", "--prompt", "What is an NPU?", "-c", "MAX_PROMPT_LEN=64"],
]
"""A command of each tool that prints something; {} is replaced by a model."""


@pytest.fixture(params=SPEAKING, ids=lambda words: " ".join(words[:2]))
def words(request: pytest.FixtureRequest, demo: Path) -> list[str]:
    return [word.format(demo) for word in request.param]


@pytest.mark.matrix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_output_is_reported_in_one_line(words) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMANDS / words[0], *words[1:]], stdout=full, stderr=subprocess.PIPE, check=False
        )
    told = f"{words[0]}: standard output: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (2, told)


@pytest.mark.matrix
def test_closed_streams_are_accepted(words) -> None:
    line = f"{shlex.join([str(COMMANDS / words[0]), *words[1:]])} <&- >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.matrix
def test_a_closed_pipe_ends_a_command_quietly(words) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [COMMANDS / words[0], *words[1:]], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.matrix
def test_characters_outside_the_terminals_encoding_are_escaped(command, words) -> None:
    done = command(*words, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    if words[1:] == ["extract", "--help"]:
        assert "1f0c\\u2026.blob" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("typed", [False, True])
def test_the_c_locale_accepts_utf8(demo: Path, typed: bool) -> None:
    """Python in a C locale decodes arguments to surrogates, and does not decode input."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    question = "Qué é um NPU?"
    words = [] if typed else ["--prompt", question]
    answers = [
        subprocess.run(
            [COMMANDS / "npu-chat", demo, *words, "-c", "MAX_PROMPT_LEN=64"],
            input=question.encode() if typed else b"",
            env=os.environ | environment,
            capture_output=True,
            check=True,
        ).stdout
        for environment in (plain, {"PYTHONUTF8": "1"})
    ]
    assert answers[0] == answers[1] != b""


@pytest.mark.long
def test_the_commands_work_on_the_same_files(command, demo: Path, tmp_path: Path) -> None:
    """npuc writes a blob, npu-objdump shows it, npu-chat answers, npu-smi shows the device."""
    assert command("npuc", "compile", demo, "-o", "x.blob", *SHAPES).returncode == 0
    checked = command("npu-objdump", "--check", "x.blob")
    assert (checked.returncode, checked.stdout) == (0, "ok\n")
    assert "input_ids" in command("npu-objdump", "x.blob").stdout
    assert "platform 4000" in command("npu-smi").stdout
    settings = ["-c", "MAX_PROMPT_LEN=64", "-c", f"CACHE_DIR={tmp_path / 'cache'}", "--stats"]
    first = command("npu-chat", demo, "--prompt", "What is an NPU?", *settings)
    second = command("npu-chat", demo, "--prompt", "What is an NPU?", *settings)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0]
    assert "3 compiled in" in first.stdout
    assert "3 loaded from cache in" in second.stdout
    assert command("npuc", "export", demo, "small", "--weight-format", "int8").returncode == 0
    third = command("npu-chat", "small", "--prompt", "What is an NPU?", *settings)
    assert (third.returncode, third.stderr) == (0, "")
    assert third.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    for row in ("KV variant", "prompt", "generated", "TTFT", "tokens/s"):
        assert row in first.stdout
