"""Random calls of all functions from four threads: every call must return a result code.

    python tests/driver/c_abi/random_calls.py library|direct SEQUENCES SEED

"library" calls the library, "direct" a driver in this process, whose memory and handles are seen.
A sequence is ten calls. Handles are those of living objects, destroyed ones, of another type, null
or foreign; addresses are null, or lead to memory with random content, whose lengths and addresses
are valid: C cannot tell an address that is not. Prints the calls of the second half by result, the
handles that it left and the memory by which the process grew, in JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.driver.c_abi.direct import border
from tests.driver.c_abi.library import Npu, Rig, argument_types

from driver_layer.c_abi.build import LOADER, library
from driver_layer.c_abi.declarations import at, ffi
from driver_layer.c_abi.description.language import INTEGERS, Function, Variable, description
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.testing.blobs import dense_blob

THREADS, CALLS = 4, 10
ROOM = 1 << 16
LONGEST_WAIT = 200_000
"""Nanoseconds: an event that nobody signals is waited for, and the wait must end."""


CREATIONS = {
    "ze_context_handle_t": "zeContextCreate",
    "ze_command_queue_handle_t": "zeCommandQueueCreate",
    "ze_command_list_handle_t": "zeCommandListCreate",
    "ze_graph_handle_t": "pfnCreate2",
    "ze_event_pool_handle_t": "zeEventPoolCreate",
    "ze_event_handle_t": "zeEventCreate",
    "ze_fence_handle_t": "zeFenceCreate",
}

ALIASES = {
    f"zet_{kind}_handle_t": f"ze_{kind}_handle_t"
    for kind in ("driver", "device", "context", "command_list")
}
"""Handles of the tools interface that are those of the core interface."""


class Caller:
    """Makes random calls, and keeps the handles that they return."""

    def __init__(self, npu: Npu, seed: int) -> None:
        self.npu = npu
        self.random = random.Random(seed)
        self.handles: dict[str, list[int]] = {}
        self.memory: list[int] = []
        self.ended: list[int] = []
        self.results: Counter[int] = Counter()
        self.kept: list[Any] = []
        self.blob = ffi.from_buffer(bytearray(dense_blob()))

    def create(self) -> None:
        """Try to create the objects that there are none of."""
        for kind, name in CREATIONS.items():
            if not self.handles.get(kind):
                self.make(*self.npu.functions[name])
        if not self.memory:
            self.make(*self.npu.functions["zeMemAllocHost"])

    def sequence(self) -> None:
        """Make ten calls, each likely to use what those before it returned."""
        self.kept.clear()
        for _ in range(CALLS):
            self.create()
            self.make(*self.random.choice(list(self.npu.functions.values())))

    def make(self, function: Function, call: Callable[..., int]) -> None:
        """Make a call with random arguments."""
        if function.name == "zeContextDestroy" and self.random.random() < 0.9:
            return  # else hardly any call would find all its objects in one context
        given = self.arguments(function)
        result = call(*given)
        self.results[result] += 1
        if result == 0 or function.name == "pfnCreate3":  # a failed one has a log
            self.collect(function, given)

    def arguments(self, function: Function) -> list[Any]:
        parameters = function.parameters or ()
        lengths = {p.length: p for p in parameters if p.length}
        values = list[Any]()
        for parameter, kind in zip(parameters, argument_types(function), strict=True):
            if kind not in (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t):
                values.append(kind())
            elif parameter.name in lengths and not parameter.way:
                values.append(self.random.choice((0, 1, 3)))
            else:
                values.append(self.value(parameter))
        return values

    def value(self, parameter: Variable) -> int:
        pick = self.random.random()
        if parameter.name == "timeout":
            return self.random.randrange(LONGEST_WAIT)
        if parameter.is_handle and parameter.way in ("", "release"):
            return self.handle(parameter.type)
        if parameter.type == "pointer" and parameter.way in ("", "release"):
            memory = self.random.choice(self.memory) if self.memory and pick < 0.8 else 0
            return memory + (self.random.randrange(64) if pick < 0.1 else 0)
        if parameter.way:
            return 0 if pick < 0.08 else self.place(parameter)
        return self.number(pick)

    def number(self, pick: float) -> int:
        return self.random.choice((0, 0, 1, 1, 2)) if pick < 0.9 else self.random.getrandbits(31)

    def handle(self, kind: str) -> int:
        kind = ALIASES.get(kind, kind)
        pick = self.random.random()
        known = self.handles.get(kind)
        if known and pick < 0.85:
            return self.random.choice(known[-1:] if kind == "ze_context_handle_t" else known[-6:])
        if pick < 0.9:
            return self.random.choice((0, 0xDEAD0000, 1, *self.ended[-3:]))
        others = [handle for some in self.handles.values() for handle in some]
        return self.random.choice(others) if others else 0

    def place(self, parameter: Variable) -> int:
        """Return the address of memory for what a parameter points to."""
        structs = description().structs
        if parameter.type in structs:
            made = self.fill(parameter.type)
            if parameter.length:
                made = ffi.new(f"{parameter.type}[]", 16)
        elif parameter.is_handle:
            made = ffi.new(
                "uintptr_t[]", [self.handle(parameter.type) for _ in range(4)] + [0] * 60
            )
        else:
            made = ffi.from_buffer(
                bytearray(self.random.choice((bytes(ROOM), b"1" * 9 + bytes(ROOM))))
            )
        if parameter.way == "count":
            made = ffi.new("uint64_t *", self.random.choice((0, 1, 8)))
        self.kept.append(made)
        return int(ffi.cast("uintptr_t", made))

    def fill(self, name: str, depth: int = 0) -> Any:
        """Return a structure with random numbers, and addresses that are valid."""
        struct, made = description().structs[name], ffi.new(f"{name} *")
        self.kept.append(made)
        for field in struct.fields:
            if field.type in ("bytes", "pages"):
                setattr(made, field.name, int(ffi.cast("uintptr_t", self.blob)))
                setattr(made, field.length, len(self.blob))
            elif field.is_handle:
                setattr(made, field.name, self.handle(field.type))
            elif field.type == "pointer":
                memory = self.random.choice([0, *self.memory])
                setattr(made, field.name, memory)
            elif not field.length and field.type not in structs_and_text():
                at_most = self.number(self.random.random())
                if field.type in INTEGERS and INTEGERS[field.type] in ("uint8_t", "uint16_t"):
                    at_most &= 1
                likely = {"mode": 2, "format": 1, "count": 4}
                setattr(made, field.name, likely.get(field.name, at_most))
        if struct.stype is not None:
            made.stype = struct.stype if self.random.random() < 0.9 else 0x777
            if struct.successors and depth < 3 and self.random.random() < 0.5:
                chained = self.fill(self.random.choice(struct.successors), depth + 1)
                made.pNext = int(ffi.cast("uintptr_t", chained))
        return made

    def collect(self, function: Function, given: list[Any]) -> None:
        """Keep the handles and the memory that a call returned."""
        for parameter, value in zip(function.parameters or (), given, strict=True):
            if parameter.way == "out" and value and parameter.name != "pBase":
                found = at("uint64_t", value)[0]
                if parameter.is_handle and not parameter.length and found:
                    self.handles.setdefault(parameter.type, []).append(found)
                elif parameter.name == "pptr":
                    self.memory.append(found)
            if parameter.way == "release":
                known = self.handles.get(parameter.type, self.memory)
                if value in known:
                    known.remove(value)
                    self.ended.append(value)


def structs_and_text() -> set[str]:
    return {*description().structs, "text", "char"}


def play(npu: Npu, driver: int, device: int, sequences: int, seed: int) -> Counter[int]:
    """Let all threads make their sequences; destroy what they left, and return the results."""
    callers = [Caller(npu, seed * THREADS + index) for index in range(THREADS)]
    for caller in callers:
        caller.handles["ze_driver_handle_t"] = [driver]
        caller.handles["ze_device_handle_t"] = [device]

    def run(caller: Caller) -> None:
        for _ in range(sequences // THREADS):
            caller.sequence()

    threads = [threading.Thread(target=run, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    release(npu, callers)
    return sum((caller.results for caller in callers), Counter[int]())


def release(npu: Npu, callers: list[Caller]) -> None:
    """Signal all events, so that no list waits, and destroy everything that is left."""
    kinds = (
        ("ze_event_handle_t", npu.zeEventHostSignal),
        ("ze_command_queue_handle_t", lambda queue: npu.zeCommandQueueSynchronize(queue, 10**9)),
        ("ze_graph_build_log_handle_t", npu.pfnBuildLogDestroy),
        ("ze_fence_handle_t", npu.zeFenceDestroy),
        ("ze_command_list_handle_t", npu.zeCommandListDestroy),
        ("ze_command_queue_handle_t", npu.zeCommandQueueDestroy),
        ("ze_graph_handle_t", npu.pfnDestroy),
        ("ze_event_handle_t", npu.zeEventDestroy),
        ("ze_event_pool_handle_t", npu.zeEventPoolDestroy),
        ("ze_context_handle_t", npu.zeContextDestroy),
    )
    for kind, destroy in kinds:
        for caller in callers:
            for handle in list(caller.handles.get(kind, [])):
                destroy(handle)


def is_of_device(thing: object) -> bool:
    """Return whether an object exists as long as the device: itself, its engines, its metrics."""
    kind = type(thing).__name__
    lasting = ("ze_driver", "ze_device", "zes_", "zet_metric_group", "zet_metric_handle")
    return kind.startswith(lasting)


def resident_megabytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) >> 8


def main(way: str, sequences: int, seed: int) -> None:
    os.environ["ZET_ENABLE_METRICS"] = "1"
    with border() as direct:
        report(direct if way == "direct" else Npu(library() / "loader" / LOADER), sequences, seed)


def report(npu: Any, sequences: int, seed: int) -> None:
    """Play, and print what the second half came to."""
    npu.zeInit(0)
    rig = Rig(npu, 0, 0, 0, 0, [])
    one, result = rig.buffer((1).to_bytes(4, "little")), rig.buffer(bytes(8))
    npu.zeDriverGet(one, result)
    driver = at("uint64_t", result)[0]
    npu.add_extensions(driver)
    npu.zeDeviceGet(driver, one, result)
    device = at("uint64_t", result)[0]
    play(npu, driver, device, sequences // 2, seed)
    megabytes = resident_megabytes()
    results = play(npu, driver, device, sequences - sequences // 2, seed + 1)
    found = {
        "results": {f"{code:#x}": count for code, count in results.items()},
        "handles left": [type(thing).__name__ for thing in HANDLES if not is_of_device(thing)],
        "megabytes grown": resident_megabytes() - megabytes,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
