"""A small hand-assembled blob that uses every engine: a dense layer with ReLU.

    y[m, n] = max(0, sum over k of x[m, k] * weights[n, k])

Two transfers copy x and the weights to CMX, the DPU multiplies, a SHAVE kernel applies ReLU, a
transfer copies y to DDR; four barriers order the tasks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driver_layer.abi import elf, tasks
from driver_layer.abi.dtypes import DType
from driver_layer.abi.elf import Relocation, SectionFlag, SectionType, SymbolType
from driver_layer.abi.layout import RecordArray, field_offset, filled
from driver_layer.abi.platforms import (
    CMX_WORKSPACE_ADDRESS,
    PLATFORMS,
    TILE_SELECT_SHIFT,
    tile_base,
)
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access, encode
from driver_layer.abi.shave_text import assemble
from driver_layer.testing.elf_builder import RUNTIME_CMX, BlobBuilder, Port

ROWS, COLS, DEPTH = 4, 16, 8
X_AT, WEIGHTS_AT, Y_AT = 0, 0x1000, 0x2000
"""Offsets of the operands in the workspace."""

RELU = """
ld   v0, w0
imm  v1, 0
max  v0, v0, v1
st   w1, v0
end
"""

_FW = SectionFlag.SHF_ALLOC | SectionFlag.SHF_EXECINSTR
_DMA = SectionFlag.SHF_ALLOC | SectionFlag.VPU_SHF_PROC_DMA
_SHAVE = SectionFlag.SHF_ALLOC | SectionFlag.VPU_SHF_PROC_SHAVE
_CFG = tasks.DmaCfg.ORDERED | tasks.DmaCfg.BARRIER_EN
_ALL_DIMS = elf.DMA_DIMS - 1
"""Dimensions of a descriptor that relocations for strides may use."""


def weights() -> npt.NDArray[np.float32]:
    """Return the layer's weights, f32 [COLS, DEPTH]."""
    return (np.arange(COLS * DEPTH, dtype=np.float32).reshape(COLS, DEPTH) % 7) - 3


def expected(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the expected output of the blob, f32 [ROWS, COLS]."""
    return np.maximum(x @ weights().T, 0).astype(np.float32)


def is_expected(y: npt.NDArray[np.float32], x: npt.NDArray[np.float32]) -> bool:
    """Return whether y is the blob's output for x, with tolerance for the order of sums."""
    return np.allclose(y, expected(x), rtol=1e-5, atol=1e-6)


def dense_builder(platform: str = "4000", strided: bool = False) -> BlobBuilder:
    """Return a builder with the layer; ``strided`` makes x and y take other strides."""
    b = BlobBuilder(platform)
    b.inputs.append(Port("x", "f32", (ROWS, DEPTH), strided))
    b.outputs.append(Port("y", "f32", (ROWS, COLS), strided))
    constant = b.add("buffer.Constant.0.constant", weights().tobytes(), _DMA)
    cmx = b.add("buffer.CMX_NN.0", flags=SectionFlag(0), kind=SectionType.VPU_SHT_CMX_WORKSPACE)
    constant_symbol = b.symbol(constant)
    cmx_symbol = b.symbol(cmx, CMX_WORKSPACE_ADDRESS)
    if PLATFORMS[platform].runtime_symbols:
        cmx_symbol = RUNTIME_CMX
    lists = {
        "barriers": _add_barriers(b),
        "dma_ddr": _add_loads(b, constant_symbol, cmx_symbol),
        "dma_cmx": _add_store(b, cmx_symbol),
        "invariants": _add_invariant(b, cmx_symbol),
        "variants": _add_variant(b),
        **_add_kernel(b, cmx_symbol),
    }
    root = filled(tasks.MAPPED_INFERENCE)
    for name, (_, count) in lists.items():
        reference = root[name] if name == "barriers" else root[name][:, :1]
        reference["count"] = count
    entry = b.add("program.mapped_inference", root, _FW)
    for name, (section, _) in lists.items():
        at = field_offset(tasks.MAPPED_INFERENCE, name)
        at += field_offset(tasks.TASK_REFERENCE, "address")
        b.relocate(entry, at, Relocation.R_VPU_64, b.symbol(section))
    b.symbol(entry, kind=SymbolType.VPU_STT_ENTRY)
    return b


def dense_blob(platform: str = "4000", strided: bool = False) -> bytes:
    """Return the layer's blob."""
    return dense_builder(platform, strided).build()


def tile_symbol(
    shape: tuple[int, ...], tile: tuple[int, ...] | None = None, begin: tuple[int, ...] = ()
) -> RecordArray:
    """Return the DMA symbol of a tile of a dense f32 tensor; dimensions are innermost first."""
    ones, strides = (1,) * (elf.DMA_DIMS - len(shape)), np.cumprod((1, *shape))[: len(shape)]
    symbol = filled(elf.DMA_SYMBOL, shapes=(*shape, *ones), dma_shapes=(*(tile or shape), *ones))
    symbol["dma_size"] = 4
    for name in ("strides", "dma_strides"):
        symbol[name][:, : len(shape)] = strides
    symbol["tile_offsets"][:, : len(begin)] = begin
    return symbol


_Listed = tuple[int, int]
"""A task list: its section and its number of tasks."""


def _add_barriers(b: BlobBuilder) -> _Listed:
    """Add the barriers after 0: the loads, 1: the matmul, 2: ReLU, 3: the store."""
    configs = np.zeros(4, tasks.BARRIER_CONFIG)
    for number, (producers, consumers) in enumerate(((2, 1), (1, 1), (1, 1), (1, 0))):
        configs[number] = (-1, producers, consumers, number)
    return b.add("program.barrier", configs, _FW), len(configs)


def _transfer(nbytes: int, wait: int, post: int, start_after: int) -> RecordArray:
    task = filled(tasks.DMA_TASK, start_after=start_after)
    descriptor = task["descriptor"]
    descriptor["cfg"] = _CFG
    descriptor["src_width"] = descriptor["dst_width"] = nbytes
    descriptor["consumer_lo"], descriptor["producer_lo"] = wait, post
    return task


def _add_loads(b: BlobBuilder, constant: int, cmx: int) -> _Listed:
    loads = np.zeros(2, tasks.DMA_TASK)
    loads[0] = _transfer(ROWS * DEPTH * 4, 0, 1 << 0, 0)[0]
    loads[1] = _transfer(COLS * DEPTH * 4, 0, 1 << 0, 0)[0]
    loads["descriptor"]["dst"] = 1 << TILE_SELECT_SHIFT
    if b.inputs[0].dynamic_strides:
        loads["descriptor"]["cfg"][0] = _CFG | _ALL_DIMS
    section = b.add("task.dma.0.0", loads, _DMA)
    src, dst = (field_offset(tasks.DMA_DESCRIPTOR, side) for side in ("src", "dst"))
    second = tasks.DMA_TASK.itemsize
    to_cmx = Relocation.R_VPU_64_BIT_OR_B21_B26_UNSET
    user = SectionFlag.VPU_SHF_USERINPUT
    if b.inputs[0].dynamic_strides:
        symbol = tile_symbol((DEPTH, ROWS))
        b.relocate_tile(section, 0, Relocation.R_VPU_DMA_TASK_INPUT, symbol, user)
    else:
        b.relocate(section, src, Relocation.R_VPU_64, 1, user=user)
    b.relocate(section, dst, to_cmx, cmx, X_AT)
    b.relocate(section, second + src, Relocation.R_VPU_64, constant)
    b.relocate(section, second + dst, to_cmx, cmx, WEIGHTS_AT)
    return section, 2


def _add_store(b: BlobBuilder, cmx: int) -> _Listed:
    store = _transfer(ROWS * COLS * 4, 1 << 2, 1 << 3, 2)
    store["descriptor"]["src"] = 1 << TILE_SELECT_SHIFT
    strided, user = b.outputs[0].dynamic_strides, SectionFlag.VPU_SHF_USEROUTPUT
    if strided:
        store["descriptor"]["cfg"] = _CFG | _ALL_DIMS
    section = b.add("task.dma.0.1", store, _DMA)
    src, dst = (field_offset(tasks.DMA_DESCRIPTOR, side) for side in ("src", "dst"))
    b.relocate(section, src, Relocation.R_VPU_64_BIT_OR_B21_B26_UNSET, cmx, Y_AT)
    if strided:
        symbol = tile_symbol((COLS, ROWS))
        b.relocate_tile(section, 0, Relocation.R_VPU_DMA_TASK_OUTPUT, symbol, user)
    else:
        b.relocate(section, dst, Relocation.R_VPU_64, 1, user=user)
    return section, 1


def _scheduling(wait: int, post: int, start_after: int) -> RecordArray:
    return filled(
        tasks.SCHEDULING,
        wait_mask=(1 << wait, 0),
        post_mask=(1 << post, 0),
        start_after=start_after,
    )


def _add_invariant(b: BlobBuilder, cmx: int) -> _Listed:
    registers = filled(
        tasks.DPU_REGISTERS,
        workload=tasks.DpuWorkload.MATMUL,
        act_type=DType.FP32,
        weight_type=DType.FP32,
        out_type=DType.FP32,
        alpha=1,
        act_address=tile_base(0),
        weight_address=tile_base(0),
        out_address=tile_base(0),
        batch=1,
        m=ROWS,
        n=COLS,
        k=DEPTH,
        act_strides=(0, DEPTH * 4, 4),
        weight_strides=(0, DEPTH * 4, 4),
        out_strides=(0, COLS * 4, 4),
    )
    invariant = filled(
        tasks.DPU_INVARIANT,
        registers=registers,
        scheduling=_scheduling(0, 1, 0),
        variant_count=1,
    )
    section = b.add("task.dpu.invariant.0.0", invariant, _FW)
    for name, at in (("act", X_AT), ("weight", WEIGHTS_AT), ("out", Y_AT)):
        offset = field_offset(tasks.DPU_REGISTERS, f"{name}_address")
        b.relocate(section, offset, Relocation.R_VPU_LO_21, cmx, at)
    return section, 1


def _add_variant(b: BlobBuilder) -> _Listed:
    variant = filled(tasks.DPU_VARIANT, m_end=ROWS, n_end=COLS)
    return b.add("task.dpu.variant.0.0", variant, _FW), 1


def _add_kernel(b: BlobBuilder, cmx: int) -> dict[str, _Listed]:
    code = encode(assemble(RELU))
    head = filled(KERNEL_ARGS, window_count=2, grid=(ROWS, 1, 1))
    args = b"".join(part.tobytes() for part in (head, _window(Access.READ), _window(Access.WRITE)))
    text = b.add("shave.text", code, _FW, align=1024)
    params = b.add("shave.params", args, _SHAVE, align=1024)
    for number in range(2):
        at = KERNEL_ARGS.itemsize + number * WINDOW.itemsize + field_offset(WINDOW, "address")
        b.relocate(params, at, Relocation.R_VPU_LO_21, cmx, Y_AT)
    kernel_range = filled(tasks.KERNEL_RANGE, type=1, code_size=len(code), invocation_count=1)
    ranges = b.add("task.shave.range.0.0", kernel_range, _FW, align=8)
    text_symbol, params_symbol = b.symbol(text), b.symbol(params)
    for name in ("kernel_entry", "text_window_base"):
        at = field_offset(tasks.KERNEL_RANGE, name)
        b.relocate(ranges, at, Relocation.R_VPU_64, text_symbol)
    invocation = filled(
        tasks.KERNEL_INVOCATION, args_size=len(args), scheduling=_scheduling(1, 2, 1)
    )
    invocations = b.add("task.shave.invocation.0.0", invocation, _FW)
    at = field_offset(tasks.KERNEL_INVOCATION, "kernel_args")
    b.relocate(invocations, at, Relocation.R_VPU_64, params_symbol)
    at = field_offset(tasks.KERNEL_INVOCATION, "range")
    b.relocate(invocations, at, Relocation.R_VPU_64, b.symbol(ranges))
    return {"kernel_ranges": (ranges, 1), "kernel_invocations": (invocations, 1)}


def _window(access: Access) -> RecordArray:
    return filled(
        WINDOW,
        address=tile_base(0),
        cols=COLS,
        col_stride=4,
        strides=(COLS * 4, 0, 0),
        type=DType.FP32,
        access=access,
    )
