"""The mapped inference and its task lists, which the management core reads.

List layout and record sizes are those of NPU4000. The register images of the DPU and the argument
blocks of SHAVE kernels are this project's own: the real ones are not public.

Source: docs/reference/elf.md#host-parsed-inference, docs/reference/elf.md#mapped-inference,
docs/reference/elf.md#dma-descriptors, docs/reference/elf.md#barriers-and-queues.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from driver_layer.abi.layout import record
from driver_layer.abi.metadata import PERFORMANCE_METRICS, RESOURCE_REQUIREMENTS

MAX_TILES = 6
MAX_PHYSICAL_BARRIERS = 96
MAX_BARRIER_SLOTS = 64
"""Limit of the producers of a barrier, of its consumers, and of their sum."""

TASK_REFERENCE = record(40, ("address", 24, "<u8"), ("count", 32, "<u8"))
"""A list of tasks: its address and length."""

_LISTS = (TASK_REFERENCE, (MAX_TILES,))

MAPPED_INFERENCE = record(
    1728,
    ("api_version", 0, "<u8"),
    ("profiling_log", 16, "<u8"),
    ("task_storage_counts", 24, "V36"),
    ("task_storage_size", 60, "<u4"),
    ("dma_ddr", 64, _LISTS),
    ("dma_cmx", 304, _LISTS),
    ("invariants", 544, _LISTS),
    ("variants", 784, _LISTS),
    ("kernel_ranges", 1024, _LISTS),
    ("kernel_invocations", 1264, _LISTS),
    ("media", 1504, TASK_REFERENCE),
    ("barriers", 1544, TASK_REFERENCE),
    ("shave_runtime", 1584, "V96"),
    ("workpoint", 1680, "<u8"),
    ("managed_mapped_inference", 1688, TASK_REFERENCE),
)
"""The root of a program. ``dma_ddr[p]`` and ``dma_cmx[p]`` hold the transfers of DMA port p that
read DDR or CMX; the others hold one list per tile."""

HOST_PARSED_INFERENCE = record(
    384,
    ("resource_requirements", 8, RESOURCE_REQUIREMENTS),
    ("access_mode", 20, "u1"),
    ("performance_metrics", 24, PERFORMANCE_METRICS),
    ("mapped_inference", 344, TASK_REFERENCE),
)
"""Target of an inference-execute command; written by the loader, not by the compiler."""

BARRIER_CONFIG = record(
    12,
    ("next_same_id", 0, "<i4"),
    ("producers", 4, "<u2"),
    ("consumers", 6, "<u2"),
    ("real_id", 8, "u1"),
)
"""A virtual barrier: when its consumers are done, ``next_same_id`` (or -1) takes its place."""

SCHEDULING = record(
    40,
    ("wait_mask", 0, ("<u8", (2,))),
    ("post_mask", 16, ("<u8", (2,))),
    ("start_after", 32, "<u4"),
    ("clean_after", 36, "<u4"),
)
"""The barriers that a DPU or SHAVE task waits for and signals.

The masks name physical barriers 0 to 63 and 64 to 95. The management core issues a task once all
virtual barriers below ``start_after`` are programmed; the task's storage is free once the barriers
below ``clean_after`` are consumed."""

DMA_DESCRIPTOR = record(
    192,
    ("link_address", 0, "<u8"),
    ("src_axi", 12, "<u2"),
    ("dst_axi", 14, "<u2"),
    ("cfg", 16, "<u8"),
    ("src_width", 24, "<u4"),
    ("dst_width", 28, "<u4"),
    ("memset_data", 32, "<u8"),
    ("src", 40, "<u8"),
    ("dst", 48, "<u8"),
    ("src_list", 56, "<u4"),
    ("dst_list", 60, "<u4"),
    ("producer_lo", 64, "<u8"),
    ("consumer_lo", 72, "<u8"),
    ("producer_hi", 80, "<u8"),
    ("consumer_hi", 88, "<u8"),
    ("src_dim1", 96, "<u4"),
    ("dst_dim1", 100, "<u4"),
    ("src_stride1", 104, "<u4"),
    ("dst_stride1", 108, "<u4"),
    ("src_dim2", 112, "<u4"),
    ("dst_dim2", 116, "<u4"),
    ("src_stride2", 120, "<u4"),
    ("dst_stride2", 124, "<u4"),
    ("src_dim3", 128, "<u2"),
    ("src_dim4", 130, "<u2"),
    ("dst_dim3", 132, "<u2"),
    ("dst_dim4", 134, "<u2"),
    ("src_dim5", 136, "<u2"),
    ("dst_dim5", 140, "<u2"),
    ("src_stride3", 144, "<u4"),
    ("dst_stride3", 148, "<u4"),
    ("src_stride4", 152, "<u4"),
    ("dst_stride4", 156, "<u4"),
    ("src_stride5", 160, "<u4"),
    ("dst_stride5", 164, "<u4"),
)
"""A transfer of up to six dimensions on either side; strides and widths are in bytes.

``width`` is the contiguous innermost run and ``dimN`` the size of dimension N minus one. Both
sides move the same number of bytes. Producer masks name the barriers that the end of the transfer
signals, consumer masks those that it waits for. In a gather, ``src_list`` is the CMX address of i64
row numbers, ``src_dim1`` their count minus one and ``src_stride1`` the row pitch from ``src``.
``src_dim2``, this project's own, is the number of the table's rows, or 0 for all of its memory."""

DMA_TASK = record(
    224,
    ("descriptor", 0, DMA_DESCRIPTOR),
    ("start_after", 192, "<u4"),
    ("clean_after", 196, "<u4"),
)

DMA_MAX_BYTES = 16 << 20
"""Limit of the bytes that one descriptor moves."""


class DmaCfg(IntFlag):
    """Fields of a descriptor's ``cfg`` word that the simulated engine supports."""

    NUM_DIM = 0x7
    """Dimensions minus one, 0 to 5."""
    ORDERED = 1 << 28
    BARRIER_EN = 1 << 29
    MEMSET_EN = 1 << 30
    ATP_EN = 1 << 31
    SRC_LIST_RELATIVE = 2 << 35
    SRC_LIST = 3 << 35


DMA_BURSTS = 15 << 12 | 15 << 16 | 255 << 20
"""Source and destination burst 15, quality of service 255, as the real compiler writes."""


DPU_MAX_DIM = 8192
"""Limit of the elements along any dimension of a workload.

Source: docs/reference/elf.md#compiler-limits.
"""

DPU_MAX_ELEMENTS = 1 << 22
"""Limit of the elements of a workload's operand, repeated ones included: 4-bit elements fill a
tile's 2 MiB of CMX with as many. This project's own."""


class DpuWorkload(IntEnum):
    """The computation of an invariant."""

    MATMUL = 1


class DpuFlag(IntFlag):
    """Modifiers of a workload."""

    ACCUMULATE = 1
    """Add to the previous values of the output, which is f32."""


DPU_REGISTERS = record(
    288,
    ("workload", 0, "u1"),
    ("flags", 1, "u1"),
    ("act_type", 2, "u1"),
    ("weight_type", 3, "u1"),
    ("out_type", 4, "u1"),
    ("scale_type", 5, "u1"),
    ("zero_type", 6, "u1"),
    ("act_zero", 7, "u1"),
    ("alpha", 8, "<f4"),
    ("act_address", 16, "<u4"),
    ("weight_address", 20, "<u4"),
    ("out_address", 24, "<u4"),
    ("batch", 32, "<u4"),
    ("m", 36, "<u4"),
    ("n", 40, "<u4"),
    ("k", 44, "<u4"),
    ("act_strides", 48, ("<u4", (3,))),
    ("weight_strides", 60, ("<u4", (3,))),
    ("out_strides", 72, ("<u4", (3,))),
    ("scale_address", 84, "<u4"),
    ("zero_address", 88, "<u4"),
    ("act_scale_address", 92, "<u4"),
    ("scale_strides", 96, ("<u4", (2,))),
    ("zero_strides", 104, ("<u4", (2,))),
    ("act_scale_stride", 112, "<u4"),
    ("group", 116, "<u4"),
)
"""MATMUL: ``out[b,m,n] = alpha * sum over k of act[b,m,k] * weight[b,n,k]``, summed in f32.

Addresses are in the CMX of the invariant's tile. Strides are in bytes, for (b, m, k) of act,
(b, n, k) of weight and (b, m, n) of out; a stride of 0 repeats an operand that is read. An output
never overlaps itself. The rules for sizes and places are in ``abi.workloads``.

Integer weights i8, u8, i4 and u4 mean ``(stored - zero[n, k / group]) * scale[n, k / group]``.
``scale_type`` and ``zero_type`` are UNSET if the table is absent; the tables' strides are for
(n, group). 8-bit float weights may have scales, but no zero points. 4-bit weights are packed along
k, two in a byte, the first in the lower half; their k stride is that of a byte. Activations i8 and
u8 are multiplied with integer weights of one group in integer arithmetic, as ``act - act_zero``;
``act_zero`` is 0 for floats. If ``act_scale_address`` is not 0, row m of the activations has the
scale ``act_scale[m]``, an f32."""

DPU_INVARIANT = record(
    352,
    ("registers", 0, DPU_REGISTERS),
    ("scheduling", 288, SCHEDULING),
    ("variant_count", 328, "<u4"),
    ("cluster", 332, "u1"),
)
"""The part of a workload that its variants share; it ends when all of its variants have ended."""

DPU_VARIANT = record(
    224,
    ("m_begin", 0, "<u4"),
    ("m_end", 4, "<u4"),
    ("n_begin", 8, "<u4"),
    ("n_end", 12, "<u4"),
    ("workload_id", 16, "<u4"),
    ("invariant_index", 20, "<u4"),
    ("cluster", 24, "u1"),
)
"""The region of an invariant's output that one variant computes; the ends are exclusive."""

KERNEL_RANGE = record(
    40,
    ("type", 0, "u1"),
    ("kernel_entry", 8, "<u8"),
    ("text_window_base", 16, "<u8"),
    ("code_size", 24, "<u4"),
    ("invocation_count", 32, "<u4"),
)
"""A SHAVE program; several invocations may share it."""

KERNEL_INVOCATION = record(
    96,
    ("range", 0, "<u8"),
    ("kernel_args", 8, "<u8"),
    ("data_window_base", 16, "<u8"),
    ("perf_packet_out", 24, "<u8"),
    ("scheduling", 32, SCHEDULING),
    ("invocation_index", 72, "<u4"),
    ("range_index", 76, "<u4"),
    ("tile", 80, "u1"),
    ("args_size", 84, "<u4"),
)
"""One run of a SHAVE program with one argument block."""
