"""npu-chat on the in-memory runtime: its output and its errors."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import answering_core, write_toy_folder
from genai_layer.tools.chat import main
from genai_layer.tools.terminal import set_up_log, shown


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> MemoryCore:
    """Replace the runtime of device NPU."""
    made = answering_core("hey")
    monkeypatch.setattr("genai_layer.tools.pipeline_options.load_core", lambda _device: made)
    return made


def run(capsys, *argv: object) -> tuple[int, str, str]:
    code = main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_prompt_prints_one_answer(capsys, core, folder) -> None:
    assert run(capsys, folder, "--prompt", "who?") == (0, "hey\n", "")


def test_stats_follow_the_answer(capsys, core, folder) -> None:
    code, out, _ = run(capsys, folder, "--prompt", "who?", "--stats")
    assert code == 0
    rows = dict(line.split(None, 1) for line in out.splitlines()[2:] if "finished" not in line)
    assert rows["prompt"] == "6 tokens"
    assert rows["generated"] == "4 tokens"
    assert rows["TTFT"].endswith("ms")
    assert rows["speed"].endswith("tokens/s")
    assert "finished by  STOP" in out


def test_settings_are_passed_on_as_integers_booleans_and_strings(capsys, core, folder) -> None:
    settings = ["-c", "MAX_PROMPT_LEN=64", "-c", "CACHE_DIR=x", "-c", "SOME_FLAG=true"]
    assert run(capsys, folder, "--prompt", "?", *settings)[0] == 0
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == 64
    assert core.config["CACHE_DIR"] == "x"
    assert core.config["SOME_FLAG"] is True


def test_a_pipe_is_answered_line_by_line_and_commands_work(
    capsys, core, folder, monkeypatch
) -> None:
    lines = "a\n\n/reset\nb\n/help\n/nonsense\n/stats\n/quit\nnever\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    code, out, _ = run(capsys, folder)
    assert code == 0
    assert out.count("hey\n") == 2
    assert "/reset          forget" in out
    assert "unknown command /nonsense" in out
    assert "3 tokens" in out, "/reset makes the prompt as short as the first"


def test_a_saved_conversation_is_continued_with_its_system_message(
    capsys, core, folder, monkeypatch
) -> None:
    file = folder / "chat.json"
    lines = ["/system", "/system brief", "a", f"/save {file}", "/reset", "/system other", "/system"]
    lines += [f"/load {file}", "/system", "b", "/stats", "/save", "/help me", f"/load {folder}"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    code, out, err = run(capsys, folder)
    assert code == 2, "errors of a pipe end the chat"
    assert err == f"npu-chat: {folder}: no such file; /save FILE writes one\n"
    first = [
        "no system message; set one by /system TEXT",
        *("hey", f"{file}: 3 messages saved", "other", f"{file}: 3 messages loaded"),
        *("brief", "hey"),
    ]
    assert out.splitlines()[: len(first)] == first
    # <|system|> and 5 letters, <|user|>a, <|assistant|>hey, <|user|>b, <|assistant|>
    assert "15 tokens" in out
    assert "/save needs an argument: /save FILE" in out
    assert "/help takes no argument; leave out 'me'" in out


def test_a_terminal_gets_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    assert shown("a\x1b[2J") == "a\x1b[2J"
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert shown("a\x1b[2J\x9b\tb\n") == "a\ufffd[2J\ufffd\tb\n"


def test_sampling_options_switch_sampling_on(capsys, core, folder) -> None:
    argv = [folder, "--prompt", "?", "--temperature", "90", "--max-new-tokens", "3"]
    answers = {run(capsys, *argv, "--seed", seed)[1] for seed in range(6)}
    assert len(answers) > 1


def test_an_empty_question_is_answered_with_a_template(capsys, core, folder) -> None:
    assert run(capsys, folder, "--prompt", "") == (0, "hey\n", "")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--prompt", "x" * 70, "-c", "MAX_PROMPT_LEN=64"], "MAX_PROMPT_LEN=64: the prompt has"),
        (["--prompt", "?", "-c", "MAX_PROMPT_LEN=many"], "MAX_PROMPT_LEN = 'many'"),
        (["--prompt", "?", "-c", "max_prompt_len=1"], "'max_prompt_len' is not supported"),
        (["--prompt", "?", "-c", "A=1", "-c", "A=1"], "-c A: given twice; leave one out"),
        (["--prompt", "h\udce9llo"], "a lone surrogate; pass text in UTF-8"),
        (["--prompt", "?", "--max-new-tokens", "0"], "max_new_tokens = 0: must be at least 1"),
        (["--prompt", "?", "--top-p", "7"], "top_p = 7.0: must be"),
    ],
)
def test_bad_input_prints_one_line_and_returns_2(capsys, core, folder, argv, message) -> None:
    code, out, err = run(capsys, folder, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("npu-chat: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_missing_folder_prints_one_line_and_returns_2(capsys, tmp_path) -> None:
    code, _, err = run(capsys, tmp_path / "none", "--prompt", "?")
    assert (code, err.count("\n")) == (2, 1)
    assert "no such folder" in err
    code, _, err = run(capsys, "x" * 300, "--prompt", "?")
    assert (code, err) == (2, f"npu-chat: {'x' * 300}: File name too long\n")


@pytest.mark.parametrize("argv", [["--nonsense"], ["m", "-c", "novalue"]])
def test_an_invalid_command_line_exits_with_2(capsys, argv) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "npu-chat: error:" in capsys.readouterr().err


def test_the_help_has_examples(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert "What is an NPU?" in text
    assert "CACHE_DIR=cache" in text


def test_a_model_without_a_template_answers_plain_text(capsys, tmp_path: Path, monkeypatch) -> None:
    folder = write_toy_folder(tmp_path, chat_template="")
    monkeypatch.setattr(
        "genai_layer.tools.pipeline_options.load_core", lambda _: answering_core("hey")
    )
    code, out, _ = run(capsys, folder, "--prompt", "<|assistant|>")
    assert (code, out) == (0, "hey\n")


@pytest.mark.parametrize(
    ("chosen", "levels"),
    [
        ("compiler:debug,npuw_layer:info", {"compiler_layer": 10, "npuw_layer": 20}),
        ("warning", {None: 30}),
        ("loud", {}),
    ],
)
def test_npu_log_sets_levels_of_layers(capsys, monkeypatch, chosen, levels) -> None:
    found: dict[str | None, int] = {}
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)
    monkeypatch.setattr("logging.Logger.setLevel", lambda log, level: found.update({log: level}))
    set_up_log(chosen)
    assert {None if log.name == "root" else log.name: n for log, n in found.items()} == levels
    assert ("NPU_LOG: 'loud'" in capsys.readouterr().err) == (not levels)
