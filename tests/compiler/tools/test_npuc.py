"""The commands of npuc: their files, their output, and their errors."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.tools.npuc import main
from compiler_layer.writers.files import write_whole

Npuc = Callable[..., tuple[int, str, str]]


@pytest.fixture
def npuc(capsys: pytest.CaptureFixture[str]) -> Npuc:
    """Return a function that runs a command and returns exit code, stdout and stderr."""

    def run(*argv: object) -> tuple[int, str, str]:
        code = main([str(word) for word in argv])
        return code, *capsys.readouterr()

    return run


def check_refused(result: tuple[int, str, str], *words: str) -> None:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("npuc: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def elements(xml: Path) -> set[str]:
    """Return the types of matrices among an IR's constants."""
    ops = [op for op in read_ir(xml).body.ops if isinstance(op, Constant)]
    return {
        element_of(op.output) for op in ops if len(shape_of(op.output)) >= 2 and op.nbytes > 999
    }


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "expected", "megabytes"),
    [
        ([], {"f16"}, 7.6),
        (["--weight-format", "fp32"], {"f32"}, 15.2),
        (["--weight-format", "int8"], {"u8", "f16"}, 3.6),
        (["--weight-format", "int8", "--sym"], {"i8", "f16"}, 3.6),
        (["--weight-format", "int4", "--group-size", "64"], {"u4", "u8", "f16"}, 2.3),
        (["--weight-format", "int4", "--group-size", "-1", "--sym"], {"i4", "u8", "f16"}, 2.2),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else None,
)
def test_export_writes_a_folder_that_openvino_loads(
    npuc: Npuc,
    demo: Path,
    tmp_path: Path,
    options: list[str],
    expected: set[str],
    megabytes: float,
) -> None:
    out = tmp_path / "out"
    code, printed, said = npuc("export", demo, out, *options)
    assert (code, printed) == (0, "")
    assert said.splitlines()[-1].startswith(f"{out}: ")
    assert elements(out / "openvino_model.xml") == expected
    assert (out / "openvino_model.bin").stat().st_size == pytest.approx(megabytes * 1e6, rel=0.1)
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        assert (out / name).read_bytes() == (demo / name).read_bytes()
    assert not (out / "model.safetensors").exists()
    assert list(tmp_path.iterdir()) == [out]
    ids = np.arange(5)[None]
    compiled = ov.Core().compile_model(out / "openvino_model.xml", "CPU")
    ports = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": ids}
    logits = compiled({**ports, "beam_idx": np.zeros(1, np.int32)})["logits"]
    assert np.isfinite(logits).all()


def test_export_accepts_an_ir_and_an_empty_folder(
    npuc: Npuc, demo_ir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert npuc("export", demo_ir, out, "--weight-format", "int8")[0] == 0
    assert {path.name for path in out.iterdir()} == {"openvino_model.xml", "openvino_model.bin"}
    assert "u8" in elements(out / "openvino_model.xml")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("weights", "kept"), [("fp16", True), ("fp32", True), ("int8", False), ("int4", False)]
)
def test_float_formats_keep_a_16_bit_cache_as_the_exporters_do(
    npuc: Npuc, demo: Path, tmp_path: Path, weights: str, kept: bool
) -> None:
    npuc("export", demo, tmp_path / "out", "--weight-format", weights)
    compiled = ov.Core().compile_model(tmp_path / "out" / "openvino_model.xml", "CPU")
    assert (compiled.get_property("KV_CACHE_PRECISION") == ov.Type.f16) == kept


@pytest.mark.long
def test_an_fp16_export_decodes_as_the_exporters_does_with_openvinos_own_settings(
    npuc: Npuc, demo_ir: Path, tmp_path: Path
) -> None:
    """Run two turns: the cache's precision shows only when the cache is read."""
    assert npuc("export", demo_ir, tmp_path / "out")[0] == 0
    theirs, ours = (two_turns(xml) for xml in (demo_ir, tmp_path / "out" / "openvino_model.xml"))
    np.testing.assert_array_equal(ours, theirs)


def two_turns(xml: Path) -> np.ndarray:
    compiled = ov.Core().compile_model(xml, "CPU")
    assert compiled.get_property("KV_CACHE_PRECISION") == ov.Type.f16
    request = compiled.create_infer_request()
    draw, past = np.random.default_rng(0), 0
    for count in (13, 1):
        ports = {
            "input_ids": draw.integers(0, 2048, (1, count)),
            "attention_mask": np.ones((1, past + count), np.int64),
            "position_ids": np.arange(past, past + count)[None],
        }
        request.infer({**ports, "beam_idx": np.zeros(1, np.int32)})
        past += count
    return np.array(request.get_tensor("logits").data)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ((), ["q_proj u4 g128 4", "down_proj u4 g64 4"]),
        (("--sym", "--group-size", "64"), ["q_proj i4 g64 4", "down_proj i4 g64 4"]),
        (
            ("--group-size", "128"),
            ["q_proj u4 g128 4", "down_proj u8 channel 4 8 bits: 704 is not a multiple of 128"],
        ),
    ],
)
def test_export_prints_the_storage_of_each_kind_of_weight(
    npuc: Npuc, demo: Path, tmp_path: Path, options: Sequence[str], rows: Sequence[str]
) -> None:
    code, _, said = npuc("export", demo, tmp_path / "out", "--weight-format", "int4", *options)
    assert code == 0
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines[:2] == [
        "weights stored as count",
        "embed_tokens u8 channel 1 the embedding keeps 8 bits",
    ]
    assert {*rows} <= {*lines}


def test_export_does_not_touch_a_folder_with_files(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    check_refused(npuc("export", demo, tmp_path), str(tmp_path), "not empty")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    check_refused(npuc("export", demo, tmp_path / "mine"), "exists, and is not a folder")


def test_a_failed_export_leaves_no_files(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    source = shutil.copytree(demo, tmp_path / "bad")
    weights = source / "model.safetensors"
    data = bytearray(weights.read_bytes())
    header = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:header])["model.layers.1.mlp.up_proj.weight"]
    first, last = (header + offset for offset in table["data_offsets"])
    data[first:last] = b"\xff" * (last - first)
    weights.write_bytes(data)
    for form in ("int8", "int4"):
        result = npuc("export", source, tmp_path / "out", "--weight-format", form)
        check_refused(result, "model.layers.1.mlp.up_proj.weight", "infinite or NaN")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--sym"], "--sym and --group-size need --weight-format int8 or int4"),
        (["--weight-format", "int8", "--group-size", "64"], "--group-size needs"),
        (["--weight-format", "int4", "--group-size", "0"], "group size of 0"),
    ],
)
def test_contradictory_options_are_refused(
    npuc: Npuc, demo: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    check_refused(npuc("export", demo, tmp_path / "out", *options), says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argv", [["export", "{}", "out"], ["quantize", "{}", "--report"]])
def test_a_missing_model_is_named(npuc: Npuc, tmp_path: Path, argv: list[str]) -> None:
    missing = str(tmp_path / "missing")
    check_refused(npuc(*[word.format(missing) for word in argv]), missing, "no such file")


@pytest.mark.parametrize("suffix", ["", ".xml", ".mlir"])
def test_a_path_that_the_system_rejects_is_named(npuc: Npuc, suffix: str) -> None:
    """The same holds for a file in a folder without permission."""
    name = "x" * 300 + suffix
    for argv in (["compile", name], ["export", name, "out"], ["print", name], ["explain", name]):
        check_refused(npuc(*argv), name, "File name too long")


def test_an_invalid_path_is_refused(npuc: Npuc, demo: Path) -> None:
    for argv in (
        ["explain", "a\0b"],
        ["export", demo, "a\0b"],
        ["quantize", demo, "--report", "--quant-mode", "int8", "--dataset", "a\0b"],
    ):
        check_refused(npuc(*argv), "a", "null byte" if argv[0] == "export" else "name")


@pytest.mark.parametrize(
    ("command", "name", "says"),
    [
        ("explain", "x.blob", "not a regular file"),
        ("print", "x.mlir", "not a regular file"),
        ("print", "x.xml", "is not a file"),
    ],
)
def test_a_pipe_is_refused_without_reading_it(
    npuc: Npuc, tmp_path: Path, command: str, name: str, says: str
) -> None:
    os.mkfifo(tmp_path / name)
    check_refused(npuc(command, str(tmp_path / name)), name, says)


def test_only_regular_files_are_replaced_and_links_stay_links(
    npuc: Npuc, demo: Path, tmp_path: Path
) -> None:
    """``-o /dev/null`` as root would otherwise replace the device for all other programs."""
    os.mkfifo(tmp_path / "pipe")
    code, _, said = npuc("compile", demo, "-o", tmp_path / "pipe", *SHAPES)
    assert code == 2
    assert "pipe: not a regular file" in said
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "blob").write_bytes(b"before")
    (tmp_path / "blob").chmod(0o600)
    (tmp_path / "link").symlink_to("blob")
    write_whole(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "blob").read_bytes() == b"after"
    assert (tmp_path / "blob").stat().st_mode & 0o777 == 0o600


def test_an_output_path_that_cannot_be_written_is_named(
    npuc: Npuc, demo: Path, tmp_path: Path
) -> None:
    out = tmp_path / "missing" / "out"
    check_refused(npuc("export", demo, out), str(out), "No such file")
    xml = tmp_path / "missing" / "m.xml"
    check_refused(npuc("quantize", demo, "-o", xml), str(xml), "No such file")


def test_quantize_prints_a_row_for_each_weight_and_writes_nothing(
    npuc: Npuc, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, said = npuc("quantize", demo, "--report", "--weight-format", "int4")
    assert (code, said) == (0, "")
    lines = printed.splitlines()
    assert lines[0].startswith("weight ")
    assert "model.layers.0.self_attn.q_proj.weight" in lines[2]
    assert "u4 g128" in lines[2]
    assert lines[-1].startswith(f"{len(lines) - 2} weights")
    assert list(tmp_path.iterdir()) == []


def test_quantize_writes_the_reported_weights_to_the_given_path(
    npuc: Npuc, demo: Path, tmp_path: Path
) -> None:
    xml = tmp_path / "m.xml"
    code, printed, said = npuc("quantize", demo, "--report", "-o", xml)
    assert code == 0
    assert printed == npuc("quantize", demo, "--report")[1]
    assert said.startswith(f"{xml}: ")
    assert {path.name for path in tmp_path.iterdir()} == {"m.xml", "m.bin"}
    assert elements(xml) == {"u8", "f16"}


def test_quantize_refuses_contradictory_or_quantised_input(
    npuc: Npuc, demo: Path, tmp_path: Path
) -> None:
    check_refused(npuc("quantize", demo), "--report, -o, or both")
    check_refused(npuc("quantize", demo, "-o", tmp_path / "m.bin"), "must end in .xml")
    npuc("quantize", demo, "-o", tmp_path / "m.xml")
    check_refused(npuc("quantize", tmp_path / "m.xml", "--report"), "already")
    (tmp_path / "copy.xml").write_bytes((tmp_path / "m.xml").read_bytes())
    check_refused(npuc("quantize", tmp_path / "copy.xml", "--report"), "copy.bin")


@pytest.mark.long
def test_quantize_reports_activations_and_writes_them_as_fake_quantize(
    npuc: Npuc, demo: Path, tmp_path: Path
) -> None:
    tokens, xml = tmp_path / "tokens.txt", tmp_path / "m.xml"
    tokens.write_text("5 6 7\n8 9\n")
    argv = ("quantize", demo, "--report", "--quant-mode", "int8")
    code, printed, _ = npuc(*argv, "--dataset", tokens, "-o", xml)
    assert code == 0
    lines = printed.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("activation of "))
    assert lines[first + 1].startswith("model.layers.0.self_attn.q_proj.weight  256 ")
    assert lines[-1].startswith(f"{len(lines) - first - 2} activations; worst: ")
    assert printed != npuc(*argv)[1]  # other tokens, other ranges
    assert xml.read_text().count('type="FakeQuantize"') == len(lines) - first - 2


def test_quant_mode_is_refused_without_its_options(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    out, mode = tmp_path / "out", ("--quant-mode", "int8")
    for form in ("fp16", "int4"):
        options = ("--weight-format", form, *mode)
        check_refused(npuc("export", demo, out, *options), "needs --weight-format int8")
    check_refused(npuc("quantize", demo, "--report", "--dataset", out), "needs --quant-mode int8")
    options = ("--weight-format", "int8", *mode, "--dataset", tmp_path / "none")
    check_refused(npuc("export", demo, out, *options), str(tmp_path / "none"), "No such file")
    assert list(tmp_path.iterdir()) == []


def test_printed_text_is_a_model(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    code, printed, said = npuc("print", demo)
    assert (code, said) == (0, "")
    assert Model.parse(printed).inputs[0].name == "input_ids"
    (tmp_path / "m.mlir").write_text(printed)
    assert npuc("print", tmp_path / "m.mlir")[1] == printed


def test_run_pass_prints_the_graph_after_passes(npuc: Npuc, demo: Path) -> None:
    plain = npuc("print", demo)[1]
    code, printed, said = npuc("run-pass", "fuse-rms,remove-dead-code", demo)
    assert (code, said) == (0, "")
    assert "ov.RMS" in printed
    assert "ov.RMS" not in plain


SHAPES = [
    f"--shape={shape}"
    for shape in (
        *(f"{name}=1x8" for name in ("input_ids", "attention_mask", "position_ids")),
        "beam_idx=1",
        "past_key_values.*=1x4x0x32",
    )
]


def test_run_pass_accepts_shapes_and_options(npuc: Npuc, demo: Path) -> None:
    passes = "fold-constants,adjust-precision{precision=bf16}"
    code, printed, _ = npuc("run-pass", passes, demo, *SHAPES)
    assert code == 0
    assert "xbf16>" in printed
    assert "?x" not in printed


def test_with_shapes_a_printed_graph_is_static(npuc: Npuc, demo: Path) -> None:
    assert "?x" in npuc("print", demo)[1]
    code, printed, _ = npuc("print", demo, *SHAPES)
    assert code == 0
    assert "?x" not in printed
    check_refused(npuc("print", demo, *SHAPES[1:]), "give the shapes of: input_ids")
    check_refused(npuc("print", demo, "--shape=ids=1x8"), "no input or variable 'ids'")


@pytest.mark.long
def test_a_quantised_export_compiles(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    assert npuc("export", demo, tmp_path / "out", "--weight-format", "int8")[0] == 0
    blob = tmp_path / "m.blob"
    code, printed, _ = npuc("compile", tmp_path / "out", "-o", blob, *SHAPES)
    assert (code, printed) == (0, "")
    assert blob.stat().st_size < 6e6


@pytest.mark.parametrize("passes", ["nonsense", "tile{", "tile{tiles=x}", "tile{depth=3}"])
def test_run_pass_refuses_an_unknown_or_invalid_pass(npuc: Npuc, demo: Path, passes: str) -> None:
    check_refused(npuc("run-pass", passes, demo), passes, "fold-constants")


def test_passes_lists_every_pass_with_its_description(npuc: Npuc) -> None:
    code, printed, _ = npuc("passes")
    assert code == 0
    for line in printed.splitlines():
        name, does = line.split(maxsplit=1)
        assert name in {"tile", *(word for word in [name] if "-" in word)} or name == "simplify"
        assert does.endswith(".")


@pytest.mark.parametrize("command", ["compile", "export", "quantize", "print", "run-pass"])
def test_the_help_of_a_command_has_examples(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"\n  npuc {command} " in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(npuc: Npuc, demo: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    check_refused(npuc("export", demo, tmp_path / "out"), "out: Permission denied")


def test_explain_prints_the_tasks_of_each_operation(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blob = tmp_path / "demo.blob"
    shapes = ["input_ids=1x8", "attention_mask=1x8", "position_ids=1x8", "beam_idx=1"]
    options = [f"--shape={shape}" for shape in (*shapes, "past_key_values.*=1x4x0x32")]
    assert main(["compile", str(demo), "-o", str(blob), "--weightless", *options]) == 0
    assert main(["explain", str(blob), "--sort", "time"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("model.layers.*.mlp.down_proj ") for line in lines)
    assert lines[-2].startswith("predicted time of one inference: ")
    assert main(["explain", str(blob), "--each"]) == 0
    assert "model.layers.3.mlp.down_proj" in capsys.readouterr().out


def test_explain_refuses_a_file_that_is_not_a_blob(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(demo / "config.json")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("npuc: ")
    assert error.count("\n") == 1
