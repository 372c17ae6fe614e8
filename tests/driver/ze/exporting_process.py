"""A process with a device, which exports and opens memory as its input requests.

The argument is the number of a socket, over which the process sends descriptors. A line of input is
a JSON list: the name of a method, then arguments; the answer is the result, or the name of a result
code.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

from driver_layer import ze

DMA_BUF = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF


class Exporter:
    """Named memory, and the methods that the input calls."""

    def __init__(self, wire: socket.socket) -> None:
        (driver,) = ze.zeInitDrivers()
        (self.device,) = ze.zeDeviceGet(driver)
        self.context = ze.zeContextCreate(driver)
        self.memory: dict[str, ze.Memory] = {}
        self.wire = wire

    def allocate(self, name: str, size: int, value: int) -> None:
        desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(DMA_BUF))
        self.memory[name] = ze.zeMemAllocHost(self.context, size, 0, desc)
        self.memory[name].data[:] = value

    def handle(self, name: str) -> str:
        return ze.zeMemGetIpcHandle(self.context, self.memory[name]).data.hex()

    def open_handle(self, name: str, data: str) -> int:
        handle = ze.ze_ipc_mem_handle_t(bytes.fromhex(data))
        self.memory[name] = ze.zeMemOpenIpcHandle(self.context, self.device, handle)
        return self.memory[name].size

    def free(self, name: str) -> None:
        ze.zeMemFree(self.context, self.memory.pop(name))

    def read(self, name: str, at: int) -> int:
        return int(self.memory[name].data[at])

    def write(self, name: str, at: int, value: int) -> None:
        self.memory[name].data[at] = value

    def send(self, name: str) -> None:
        asked = ze.ze_external_memory_export_fd_t(DMA_BUF)
        found = ze.zeMemGetAllocProperties(self.context, self.memory[name], asked).pNext
        assert found is not None
        socket.send_fds(self.wire, [b"x"], [found.fd])
        os.close(found.fd)


def main() -> None:
    """Execute the lines of the input."""
    exporter = Exporter(socket.socket(fileno=int(sys.argv[1])))
    for line in sys.stdin:
        call, *args = json.loads(line)
        answer: Any
        try:
            answer = getattr(exporter, call)(*args)
        except ze.ZeError as error:
            answer = error.code.name
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
