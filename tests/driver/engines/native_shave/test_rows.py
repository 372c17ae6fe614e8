"""Division of programs into passes, and supported aliasing of windows."""

from __future__ import annotations

import pytest

from driver_layer.abi.shave_text import assemble
from driver_layer.engines.native.shave import translate
from driver_layer.engines.native.shave.windows import parse

SOFTMAX = """
    ld v0, w0
    rmax v1, v0
    sub v1, v0, v1
    exp v1, v1
    rsum v2, v1
    div v1, v1, v2
    st w1, v1
    end"""
CUMULATIVE = """
    ld v0, w0
    iota v1
    imm v5, 0
    imm v2, 1
    rot v3, v0, 31
    cmple v4, v2, v1
    sel v3, v4, v3, v5
    add v0, v0, v3
    imm v2, 2
    rot v3, v0, 30
    cmple v4, v2, v1
    sel v3, v4, v3, v5
    add v0, v0, v3
    imm v2, 4
    rot v3, v0, 28
    cmple v4, v2, v1
    sel v3, v4, v3, v5
    add v0, v0, v3
    rsum v6, v0
    add v0, v0, v6
    st w1, v0
    end"""
COPY = "ld v0, w0\nst w1, v0\nend"
ADD = "ld v0, w0\nld v1, w1\nadd v0, v0, v1\nst w2, v0\nend"
ROUNDED = "ld v0, w0\nrint v0, v0\nst w0, v0\nend"


def _translated(make_block, text, grid, *windows):
    return translate(tuple(assemble(text)), make_block(grid, windows))


def test_expensive_values_are_kept_in_scratch_memory(native, rows) -> None:
    """Scratch memory for one row of exponentials is requested, and no byte beyond it accessed."""
    grid = (1, 1, 5)
    for cols in (2, 16, 31, 100, 1152):
        windows = rows("f32", grid, cols), rows("f16", grid, cols)
        kernel = native.check(SOFTMAX, grid, *windows)
        assert 4 * cols <= kernel.scratch_bytes < 4 * cols + 64


def test_cheap_values_are_recomputed(native, rows) -> None:
    grid = (1, 1, 3)
    text = "ld v0, w0\nrmax v1, v0\nsub v1, v0, v1\nst w1, v1\nend"
    assert native.check(text, grid, rows("f16", grid, 70), rows("f16", grid, 70)).scratch_bytes == 0


def test_successive_rotations_share_slots(native, rows) -> None:
    grid = (2, 1, 2)
    windows = rows("i8", grid, 32), rows("f32", grid, 32)
    kernel = native.check(CUMULATIVE, grid, *windows, rough=0)
    assert kernel.scratch_bytes <= 3 * 2 * 4 * 32  # slots are reused


def test_rows_of_different_lengths(native, rows) -> None:
    """A block of an online softmax: scores, state and context have different widths."""
    text = """
        ld v0, w0
        rmax v1, v0
        ld v2, w1
        max v1, v1, v2
        sub v0, v0, v1
        exp v0, v0
        rsum v3, v0
        sub v4, v2, v1
        exp v4, v4
        ld v5, w2
        fma v3, v5, v4, v3
        ld v6, w3
        mul v6, v6, v4
        st w4, v0
        st w5, v1
        st w6, v3
        st w7, v6
        end"""
    grid = (1, 2, 5)
    kinds = ("f32", 40), ("f32", 1), ("f32", 1), ("f32", 24), ("f16", 40), ("f32", 1), ("f32", 1)
    native.check(text, grid, *(rows(kind, grid, cols) for kind, cols in (*kinds, ("f32", 24))))


def test_columns_with_a_large_stride(native, spec) -> None:
    """A transposition: a row of one window is a column of the other."""
    for rows_, cols in ((3, 5), (16, 33), (40, 18)):
        there = spec("f16", cols, (0, 0, 2), 2 * rows_)
        back = spec("f32", cols, (0, 0, 4 * cols))
        native.check(COPY, (1, 1, rows_), there, back)
        text = "ld v0, w0\nrmax v1, v0\nsub v0, v0, v1\nst w1, v0\nend"
        native.check(text, (1, 1, rows_), back, there)


def test_single_values_of_many_rows_become_a_row(make_block, rows, native) -> None:
    grid = (2, 3, 50)
    one = rows("f32", grid, 1)
    kernel = native.check(ADD, grid, one, rows("f32", grid, 1, (2,)), one)
    assert kernel.words[:4] == (1, 1, 6, 50)
    kernel = native.check(ADD, grid, one, one, one)
    assert kernel.words[:4] == (1, 1, 1, 300)
    several = "ld v0, w0\nrsum v0, v0\niota v1\nadd v0, v0, v1\nst w1, v0\nend"
    native.check(several, grid, one, one)


def test_rows_of_elementwise_programs_are_merged(native, rows) -> None:
    grid = (2, 3, 5)
    kernel = native.check(ADD, grid, *[rows("f32", grid, 7)] * 3)
    assert kernel.words[:4] == (1, 1, 1, 210)
    kernel = native.check(
        ADD, grid, rows("f32", grid, 7), rows("f32", grid, 7, ()), rows("f32", grid, 7)
    )
    assert kernel.words[:4] == (1, 1, 30, 7)
    kernel = native.check(SOFTMAX, grid, rows("f32", grid, 7), rows("f32", grid, 7))
    assert kernel.words[:4] == (1, 1, 30, 7)


def test_different_sizes_share_a_kernel(make_block, rows) -> None:
    def key(grid, cols, kind="f16", axes=(0, 1, 2)) -> str:
        windows = rows(kind, grid, cols), rows("f32", grid, cols, axes)
        return _translated(make_block, SOFTMAX, grid, *windows).spec.key

    assert key((1, 1, 1), 64) == key((3, 2, 8), 1152)
    assert key((1, 1, 1), 64) != key((1, 1, 1), 64, "f32")


# Aliasing of windows


def test_elementwise_programs_run_in_place(native, rows) -> None:
    for grid, cols in (((1, 1, 1), 37), ((2, 3, 4), 16), ((1, 1, 9), 1)):
        native.check(ROUNDED, grid, rows("f32", grid, cols))


def test_programs_with_reductions_run_in_place(native, rows, spec, make_block) -> None:
    """A window is written after its last read."""
    grid = (1, 1, 3)
    text = "ld v0, w0\nimm v1, 1\nst w0, v1\nrsum v2, v0\nst w1, v2\nend"
    native.check(text, grid, rows("f32", grid, 40), rows("f32", grid, 1))
    turned = "ld v0, w0\nrot v0, v0, 3\nst w0, v0\nend"
    native.check(turned, grid, rows("f16", grid, 40))
    cheap = "ld v0, w0\nst w0, v0\nrmax v1, v0\nsub v1, v0, v1\nst w1, v1\nend"
    native.check(cheap, grid, rows("f32", grid, 40), rows("f16", grid, 40))


@pytest.mark.parametrize("shift", [4, 8, -4, 156, 2])
def test_overlapping_windows_are_left_to_the_reference(make_block, spec, shift) -> None:
    at = 0x10000
    one = spec("f32", 40, address=at)
    assert (
        _translated(make_block, COPY, (1, 1, 1), one, spec("f32", 40, address=at + shift)) is None
    )
    apart = spec("f32", 40, address=at + 160)
    assert _translated(make_block, COPY, (1, 1, 1), one, apart) is not None


def test_windows_with_interleaved_rows_do_not_overlap(make_block, spec) -> None:
    left = spec("f32", 8, (0, 0, 64), address=0x10000)
    right = spec("f32", 8, (0, 0, 64), address=0x10020)
    assert _translated(make_block, COPY, (1, 1, 9), left, right) is not None
    touching = spec("f32", 8, (0, 0, 64), address=0x1001C)
    assert _translated(make_block, COPY, (1, 1, 9), left, touching) is None


def test_windows_of_different_types_on_the_same_bytes_overlap(make_block, spec) -> None:
    windows = spec("f32", 8, address=0x10000), spec("i32", 8, address=0x10000)
    assert _translated(make_block, COPY, (1, 1, 1), *windows) is None


@pytest.mark.parametrize(
    ("text", "grid", "strides"),
    [
        ("ld v0, w0\nst w0, v0\nld v1, w0\nst w1, v1\nend", (1, 1, 1), (0, 0, 0)),
        ("ld v0, w0\nimm v1, 1\nadd v0, v0, v1\nst w0, v0\nst w1, v0\nend", (1, 1, 4), (0, 0, 0)),
        (COPY, (1, 1, 4), (0, 0, 16)),
    ],
    ids=["read after write", "accumulation over the grid", "overlapping rows"],
)
def test_programs_that_depend_on_the_order_of_rows_are_left_to_the_reference(
    make_block, rows, spec, text, grid, strides
) -> None:
    moving, given = rows("f32", grid, 8), spec("f32", 8, strides)
    windows = (moving, given) if text is COPY else (given, moving)
    assert _translated(make_block, text, grid, *windows) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [(8, 9), (9, 8), (8, 1)],
)
def test_windows_of_different_widths_are_left_to_the_reference(
    make_block, spec, first, second
) -> None:
    assert _translated(make_block, COPY, (1, 1, 1), spec("f32", first), spec("f32", second)) is None


def test_invalid_arguments_are_left_to_the_reference(make_block, spec) -> None:
    for windows in (
        [spec("f32", 0), spec("f32", 4)],
        [spec("f32", 1 << 30, address=0), spec("f32", 4)],
        [spec("i4", 4), spec("f32", 4)],
        [spec("f32", 4)],
    ):
        assert _translated(make_block, COPY, (1, 1, 1), *windows) is None
    assert _translated(make_block, COPY, (0, 1, 1), spec("f32", 4), spec("f32", 4)) is None


def test_rotations_beyond_the_row_are_left_to_the_reference(make_block, spec) -> None:
    text = "ld v0, w0\nrot v0, v0, 9\nst w1, v0\nend"
    for cols, fits in ((9, False), (10, True)):
        windows = spec("f32", cols), spec("f32", cols)
        assert (_translated(make_block, text, (1, 1, 1), *windows) is not None) == fits


@pytest.mark.parametrize("line", ["pow v0, v0, v0", "rsum v1, v0\nexp v0, v1"])
def test_programs_too_long_to_compile_are_left_to_the_reference(make_block, spec, line) -> None:
    for count, fits in ((5, True), (400, False)):
        for first in ("ld v0, w0", "ld v0, w0\nrmax v0, v0"):
            text = "\n".join([first, *[line] * count, "st w1, v0", "end"])
            kernel = _translated(make_block, text, (1, 1, 1), spec("f32", 40), spec("f32", 40))
            assert (kernel is not None) == fits


def test_window_sizes_equal_the_references(make_block, spec) -> None:
    windows = [
        spec("f32", 5, (0, 100, 0)),
        spec("f16", 5, (7, 10, 40), 0),
        spec("i64", 5, (0, 80, 40)),
    ]
    domain = parse(make_block((1, 3, 2), windows))
    assert domain is not None
    assert [domain.extent(window) for window in domain.windows] == [220, 62, 240]
