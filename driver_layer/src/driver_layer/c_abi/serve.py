"""The driver's process: answers the calls of the process that has started it."""

from __future__ import annotations

import logging
import os
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence

from driver_layer import ze
from driver_layer.c_abi import CALLS_VARIABLE
from driver_layer.c_abi.calls import Call, all_calls
from driver_layer.c_abi.channels import LEAVE, Channels, ask_caller, calling_thread
from driver_layer.c_abi.description.language import Function, description
from driver_layer.c_abi.emit_c import key
from driver_layer.c_abi.host import Host, attach, host
from driver_layer.c_abi.host_process import CallingProcess
from driver_layer.c_abi.parameters import TABLES

_LOG = logging.getLogger("driver_layer.c_abi.calls")
"""Log of all calls: one line for each, with its arguments, result and time."""

_CONTROL, _MEMORY = 3, 4
"""Descriptors that the host leaves open for this process."""

_PRIVATE = ze.zex_dditable_ext_t.__name__
"""The table whose functions are found by their own names."""


def serve(library: str) -> None:
    """Answer the calls of the host until it ends; then this process ends, and never returns.

    Args:
        library: path of the library that the host has loaded.

    Raises:
        RuntimeError: the library was built from another description, or the system forbids this
            process to read the host's memory.
    """
    _close_other_files()
    channels = Channels(library, _MEMORY)
    theirs = channels.key
    if theirs != key():
        raise RuntimeError(
            f"the library is of another version of driver_layer, {theirs!r} and not {key()!r}: "
            "npu-run builds the right one"
        )
    channels.greet()
    attach(Host(channels.shared.host, ask_caller))
    _find_tables(channels.shared.tables)
    ze.serve_host(CallingProcess(host()))
    _show_log()
    calls = _calls()
    channels.open()
    with socket.socket(fileno=_CONTROL) as control:
        while began := control.recv(4):  # empty when the host has ended
            (index,) = struct.unpack("I", began)
            threading.Thread(target=_answer, args=(channels, index, calls), daemon=True).start()
    channels.shared.ended = 1
    os._exit(0)  # also threads that execute end: nobody waits for them


def _close_other_files() -> None:
    """Close files that the host has opened without asking that programs it starts do not get them.

    Memory takes two descriptors, so as many as the system permits are.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for name in os.listdir("/proc/self/fd"):
        if int(name) > _MEMORY:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own
    for descriptor in (_CONTROL, _MEMORY):
        os.set_inheritable(descriptor, False)


def _find_tables(address: int) -> None:
    """Read where the function tables of extensions are in the host.

    Raises:
        RuntimeError: the system forbids to read the host's memory.
    """
    extensions = [table for table in description().tables if not table.api]
    try:
        places = host().numbers_at("uintptr_t", address, len(extensions))
    except PermissionError as error:
        raise RuntimeError(
            f"process {host().number}: its memory cannot be read by the driver's process "
            f"({error.strerror}); permit process_vm_readv in the container or by ptrace_scope"
        ) from None
    for table, place in zip(extensions, places, strict=True):
        TABLES[table.name] = place
        if table.name == _PRIVATE:
            addresses = host().numbers_at("uintptr_t", place, len(table.functions))
            for function, its in zip(table.functions, addresses, strict=True):
                TABLES[function.name] = its


def _answer(channels: Channels, index: int, calls: Sequence[tuple[int, Call]]) -> None:
    """Answer the calls of one of the host's threads until it ends."""
    channel = channels.channel(index)
    while channel.function != LEAVE:
        count, call = calls[channel.function]
        channel.answer(call(channel.arguments(count)))
    channel.part()


def _calls() -> list[tuple[int, Call]]:
    """Return the number of arguments and the call of each function, by the functions' numbers."""
    functions = [function for _, function in description().functions()]
    calls = all_calls()
    if _log_requested():
        calls = [_logged(*pair) for pair in zip(functions, calls, strict=True)]
    counts = [len(function.parameters or ()) for function in functions]
    return list(zip(counts, calls, strict=True))


def _log_requested() -> bool:
    """Return whether the environment asks for the log; then set it up, on stderr."""
    if not os.environ.get(CALLS_VARIABLE):
        return False
    if not _LOG.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)
        _LOG.propagate = False
    return True


def _logged(function: Function, call: Call) -> Call:
    """Return a call that also logs itself.

    Args:
        function: description of the function.
        call: the call, by the numbers of its arguments.
    """
    names = [parameter.name for parameter in function.parameters or ()]

    def log(numbers: Sequence[int]) -> int:
        begin = time.perf_counter_ns()
        result = call(numbers)
        microseconds = (time.perf_counter_ns() - begin) / 1000
        given = ", ".join(f"{n}={v:#x}" for n, v in zip(names, numbers, strict=True))
        who = calling_thread()
        _LOG.info("%d %s(%s) = %#x, %.1f us", who, function.name, given, result, microseconds)
        return result

    return log


def _show_log() -> None:
    """Print the log on stderr if its level is set."""
    if os.environ.get("ZE_INTEL_NPU_LOGLEVEL"):
        logging.getLogger("driver_layer").addHandler(logging.StreamHandler())
