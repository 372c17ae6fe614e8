"""The verifier rejects kernels that could fail while they run."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi.dtypes import DType
from driver_layer.abi.platforms import CMX_WORKSPACE_OFFSET, PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access, encode
from driver_layer.abi.shave_text import assemble
from driver_layer.errors import KernelError
from driver_layer.loader.kernels import ArgumentVerifier, verify_program

RELU = "ld v0, w0\nimm v1, 0\nmax v0, v0, v1\nst w1, v0\nend\n"
PLATFORM = PLATFORMS["4000"]


def code(text: str) -> bytes:
    return encode(assemble(text))


def args(*windows: dict[str, object], grid: tuple[int, int, int] = (4, 1, 1)) -> bytes:
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = len(windows), grid
    records = np.zeros(len(windows), WINDOW)
    for record, window in zip(records, windows, strict=True):
        for name, value in window.items():
            record[name] = value
    return head.tobytes() + records.tobytes()


def window(**changes: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "address": tile_base(0) + CMX_WORKSPACE_OFFSET,
        "cols": 16,
        "col_stride": 4,
        "strides": (64, 0, 0),
        "type": DType.FP32,
        "access": Access.READ | Access.WRITE,
    }
    return usual | changes


def verify(text: str, block: bytes, tile: int = 0) -> None:
    ArgumentVerifier(PLATFORM).verify(0, verify_program(code(text)), block, tile)


def test_a_valid_kernel_is_accepted() -> None:
    verify(RELU, args(window(), window()))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"", "0 bytes"),
        (code(RELU)[:-3], "not a multiple of 16 bytes"),
        (bytes([200]) + bytes(15), "unknown opcode 200"),
        (code("ld v0, w0\n"), "END must be the last instruction"),
        (code("end\nend\n"), "END must be the last instruction"),
        (code("st w0, v3\nend\n"), "v3 is read before it is written"),
        (code("mov v0, v0\nend\n"), "v0 is read before it is written"),
        (code("ld v32, w0\nend\n"), "only 32 registers"),
        (code("ld v0, w16\nend\n"), "window 16"),
        (code("end\n") * 1025, "16400 bytes"),
        (bytes([1, 0, 5]) + bytes(13) + code("end\n"), "unused field a"),
        (bytes(7) + b"\1" + bytes(8), "reserved bytes"),
    ],
)
def test_an_invalid_program_is_rejected(program: bytes, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        verify_program(program)


LAST = CMX_WORKSPACE_OFFSET + PLATFORM.workspace_bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": DType.I4}, "type 13"),
        ({"type": 77}, "type 77"),
        ({"access": 0}, "access 0"),
        ({"access": 4}, "access 4"),
        ({"cols": 0}, "0 columns"),
        ({"cols": 1 << 31}, "columns over a grid"),
        ({"address": tile_base(1) + CMX_WORKSPACE_OFFSET}, "leaves the CMX"),
        ({"address": tile_base(0)}, "leaves the CMX"),
        ({"address": tile_base(0) + LAST - 255}, "leaves the CMX"),
        ({"strides": (1 << 31, 0, 0)}, "leaves the CMX"),
        ({"access": Access.WRITE}, "does not allow READ"),
    ],
)
def test_an_invalid_window_is_rejected(change: dict[str, object], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        verify(RELU, args(window(**change), window()))


def test_a_window_may_end_at_the_end_of_the_workspace() -> None:
    verify(RELU, args(window(address=tile_base(0) + LAST - 256), window()))


@pytest.mark.parametrize(
    ("text", "windows", "message"),
    [
        (RELU, [window()], "window 1 does not allow WRITE"),
        (RELU, [window(), window(access=Access.READ)], "does not allow WRITE"),
        (RELU, [window(), window(cols=8)], "does not fit"),
        (RELU, [window(), window(strides=(0, 0, 0))], "does not fit"),
        (
            "ld v0, w0\nld v1, w1\nadd v0, v0, v1\nend\n",
            [window(), window(cols=8)],
            "operands .* do not broadcast",
        ),
        ("ld v0, w0\nrot v0, v0, 16\nend\n", [window()], "rotates 16 columns by 16"),
    ],
)
def test_shapes_are_inferred_through_the_program(
    text: str, windows: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(KernelError, match=message):
        verify(text, args(*windows))


def test_a_reduced_row_is_broadcast_to_all_columns() -> None:
    verify("ld v0, w0\nrsum v1, v0\nmul v0, v0, v1\nst w1, v0\nend\n", args(window(), window()))
    verify("ld v0, w0\nrmax v0, v0\nst w1, v0\nend\n", args(window(), window(cols=1)))


def test_counts_are_checked_before_windows_are_read() -> None:
    with pytest.raises(KernelError, match="2 windows do not fit into 48 bytes"):
        verify(RELU, args(window(), window())[:48])
    with pytest.raises(KernelError, match="invalid grid"):
        verify(RELU, args(window(), window(), grid=(4, 0, 1)))
