"""Limits of the machine: memory bandwidth of reads, and matmul rates.

    python benchmarks/machine_limits.py            # a table; --json for programs

Read bandwidth is measured with a kernel that adds up 512-bit vectors (numpy's ``max`` without
llvmlite), over an array that exceeds all caches. GEMM is numpy's in f32, and PyTorch's in bf16 and
int8, if it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

ARRAY_BYTES = 1 << 30
EDGE = 2048
REPETITIONS = 15
THREADS = (1, 2)

Bytes = npt.NDArray[np.uint8]
Reader = Callable[[Bytes], object]

_KERNEL = """
define i64 @read(<8 x i64>* %begin, i64 %count) {
entry:
  br label %loop
loop:
  %at = phi i64 [0, %entry], [%next, %loop]
  %s0 = phi <8 x i64> [zeroinitializer, %entry], [%t0, %loop]
  %s1 = phi <8 x i64> [zeroinitializer, %entry], [%t1, %loop]
  %s2 = phi <8 x i64> [zeroinitializer, %entry], [%t2, %loop]
  %s3 = phi <8 x i64> [zeroinitializer, %entry], [%t3, %loop]
  %a1 = add i64 %at, 1
  %a2 = add i64 %at, 2
  %a3 = add i64 %at, 3
  %p0 = getelementptr <8 x i64>, <8 x i64>* %begin, i64 %at
  %p1 = getelementptr <8 x i64>, <8 x i64>* %begin, i64 %a1
  %p2 = getelementptr <8 x i64>, <8 x i64>* %begin, i64 %a2
  %p3 = getelementptr <8 x i64>, <8 x i64>* %begin, i64 %a3
  %v0 = load <8 x i64>, <8 x i64>* %p0, align 8
  %v1 = load <8 x i64>, <8 x i64>* %p1, align 8
  %v2 = load <8 x i64>, <8 x i64>* %p2, align 8
  %v3 = load <8 x i64>, <8 x i64>* %p3, align 8
  %t0 = add <8 x i64> %s0, %v0
  %t1 = add <8 x i64> %s1, %v1
  %t2 = add <8 x i64> %s2, %v2
  %t3 = add <8 x i64> %s3, %v3
  %next = add i64 %at, 4
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  %u0 = add <8 x i64> %t0, %t1
  %u1 = add <8 x i64> %t2, %t3
  %u = add <8 x i64> %u0, %u1
  %sum = call i64 @llvm.vector.reduce.add.v8i64(<8 x i64> %u)
  ret i64 %sum
}
declare i64 @llvm.vector.reduce.add.v8i64(<8 x i64>)
"""


def compiled_reader() -> Reader | None:
    """Return the kernel, compiled for this processor; None without llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    import ctypes

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_pointers(llvm)), target)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    function = signature(engine.get_function_address("read"))

    def read(part: Bytes, engine: object = engine) -> object:
        return function(part.ctypes.data, part.nbytes // 64)

    return read


def _pointers(llvm: Any) -> str:
    """Return the kernel's text; newer LLVM has untyped pointers."""
    return _KERNEL.replace("<8 x i64>*", "ptr") if llvm.llvm_version_info[0] >= 17 else _KERNEL


def read_bandwidth(threads: int, read: Reader, size: int = ARRAY_BYTES) -> float:
    """Return the bytes per second that threads read together; the best of some repetitions."""
    array = np.ones(size, np.uint8)  # zero pages may share one physical page
    parts = np.array_split(array, threads)

    def once() -> None:
        workers = [threading.Thread(target=read, args=(part,)) for part in parts]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return size / best_seconds(once)


def best_seconds(action: Callable[[], object]) -> float:
    """Return the shortest of some repetitions."""
    times: list[float] = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def gemm_rates(edge: int = EDGE) -> dict[str, float]:
    """Return operations per second of square matmuls, by type; bf16 and int8 need PyTorch."""
    operations = 2 * edge**3
    a = np.random.default_rng(0).standard_normal((edge, edge), np.float32)
    rates = {"f32": operations / best_seconds(lambda: a @ a)}
    try:
        import torch
    except ImportError:
        return rates
    wide = torch.from_numpy(a)
    narrow = wide.to(torch.bfloat16)
    whole = (wide * 32).clamp(-127, 127).to(torch.int8)
    rates["f32"] = max(rates["f32"], operations / best_seconds(lambda: wide @ wide))
    rates["bf16"] = operations / best_seconds(lambda: narrow @ narrow)
    rates["int8"] = operations / best_seconds(lambda: torch._int_mm(whole, whole))
    return rates


def measure() -> dict[str, float]:
    """Measure all limits per second: bytes, e.g. ``read_1``, and operations, e.g. ``gemm_bf16``."""
    read = compiled_reader() or (lambda part: part.view(np.int64).max())
    counts = [count for count in THREADS if count <= len(os.sched_getaffinity(0))]
    limits = {f"read_{count}": read_bandwidth(count, read) for count in counts}
    return limits | {f"gemm_{name}": rate for name, rate in gemm_rates().items()}


def limits_table(limits: dict[str, float]) -> list[tuple[str, str]]:
    """Format the limits for a table."""
    rows: list[tuple[str, str]] = []
    for name, rate in sorted(limits.items(), reverse=True):
        what, _, which = name.partition("_")
        if what == "read":
            rows.append((f"read, {which} thread{'s' * (which != '1')}", f"{rate / 1e9:.1f} GB/s"))
        else:
            rows.append((f"GEMM {which}, {EDGE}³", f"{rate / 1e9:.0f} G operations/s"))
    return rows


def main() -> None:
    """Measure the limits, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    limits = measure()
    if parser.parse_args().json:
        json.dump(limits, sys.stdout)
        return
    for name, value in limits_table(limits):
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
