"""npu-objdump prints the content of the hand-made blob, and the problems of invalid ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from driver_layer.abi.elf import EHDR, SHDR
from driver_layer.abi.shave_text import assemble
from driver_layer.testing.blobs import RELU, dense_blob, dense_builder
from driver_layer.tools.objdump import main


@pytest.fixture
def blob(tmp_path: Path) -> Path:
    path = tmp_path / "dense.blob"
    path.write_bytes(dense_blob())
    return path


def shown(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    assert main([str(word) for word in argv]) == 0
    return capsys.readouterr().out


def test_metadata_is_the_default_view(capsys, blob) -> None:
    text = shown(capsys, blob)
    assert "architecture   VPUX40XX" in text
    assert "ELF ABI        1.2.7" in text
    assert "f32      4x8                  x" in text


def test_task_lists_show_engines_barriers_and_symbolic_addresses(capsys, blob) -> None:
    text = shown(capsys, "-t", blob)
    constant = "buffer.Constant.0.constant [512B] -> CMX[0]+0x1000 [512B]"
    assert f"1  wait -         post 0         {constant}" in text
    assert "wait 0         post 1         matmul b1 m4 n16 k8: f32 CMX[0]+0x0 x f32" in text
    assert "variant m 0:4 n 0:16" in text
    assert "wait 1         post 2         kernel 0 with shave.params" in text
    assert "wait 2         post 3         CMX[0]+0x2000 [256B] -> output io.NetworkOutput0" in text


def test_shave_programs_can_be_assembled_again(capsys, blob) -> None:
    lines = shown(capsys, "-d", blob).splitlines()
    program = "\n".join(line.strip() for line in lines if line.startswith("    "))
    assert assemble(program) == assemble(RELU)
    assert "; w1 = CMX[0]+0x2000: f32 write, grid 4x1x1, 16 columns" in "\n".join(lines)


def test_sections_symbols_relocations_and_barriers(capsys, blob) -> None:
    text = shown(capsys, "-x", blob)
    assert "buffer.CMX_NN.0              CMX_WORKSPACE" in text
    assert "task.dma.0.0 (when user buffers are known):" in text
    assert "R_VPU_64_BIT_OR_B21_B26_UNSET    CMX+0x1000" in text
    assert "ENTRY" in text
    assert "      0         0          2          1  -" in text


def test_tiles_of_tensors_with_any_strides_are_named(capsys, tmp_path) -> None:
    path = tmp_path / "strided.blob"
    path.write_bytes(dense_blob(strided=True))
    text = shown(capsys, "-x", path)
    assert "0x0  R_VPU_DMA_TASK_INPUT             input x from [0, 0] in any strides" in text
    assert "CMX[0]+0x2000 [256B] -> output y from [0, 0] in any strides [256B]" in text


def test_check_prints_ok_for_a_valid_blob(capsys, blob) -> None:
    assert shown(capsys, "--check", blob) == "ok\n"


def test_check_prints_the_problem_and_returns_1(capsys, tmp_path) -> None:
    path = tmp_path / "bad.blob"
    builder = dense_builder()
    builder.relocate(10, 1 << 20, 0, 1)
    path.write_bytes(builder.build())
    assert main(["--check", str(path)]) == 1
    assert "rela.10.0 at offset" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"text", dense_blob()[:900]])
@pytest.mark.parametrize("option", ["-m", "-t", "-x"])
def test_invalid_files_result_in_one_line_and_code_2(capsys, tmp_path, content, option) -> None:
    path = tmp_path / "bad.blob"
    path.write_bytes(content)
    assert main([option, str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("npu-objdump: ")
    assert error.count("\n") == 1


def test_a_missing_file_results_in_one_line_and_code_2(capsys, tmp_path) -> None:
    assert main([str(tmp_path / "none.blob")]) == 2
    assert capsys.readouterr().err.endswith("No such file or directory\n")
    assert main(["a\0b"]) == 2
    assert "null byte" in capsys.readouterr().err


def test_a_pipe_is_rejected_without_blocking(capsys, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main([str(tmp_path / "pipe")]) == 2
    assert capsys.readouterr().err.endswith("pipe: not a regular file\n")


def test_readelf_reads_the_hand_made_blob_without_a_warning(blob) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("binutils is not installed")
    result = subprocess.run(
        [readelf, "-a", "-W", str(blob)], capture_output=True, text=True, check=True
    )
    assert result.stderr == ""
    assert "Warning" not in result.stdout


def test_no_view_crashes_on_a_damaged_blob(capsys, tmp_path) -> None:
    """Views print blobs that the loader would reject; they may reject them, too, but not crash."""
    good = dense_blob(strided=True)
    headers = 64 + int(np.frombuffer(good, EHDR, 1)["e_shnum"][0]) * SHDR.itemsize
    draw = np.random.default_rng(5)
    path = tmp_path / "damaged.blob"
    for _ in range(300):
        data = bytearray(good)
        at = int(draw.integers(64, headers if draw.random() < 0.3 else len(data)))
        data[at] = int(draw.integers(256))
        path.write_bytes(data)
        assert main(["-x", str(path)]) in (0, 2)
    capsys.readouterr()
