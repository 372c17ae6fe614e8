"""An arena that processes share: created by the first process, attached to by all others.

The kernel, not a flag of ours, guarantees that the arena is complete: it is sealed against writing.
Sealing succeeds only when no process can write to the memory any more, and cannot be undone. Memory
without the seal is never passed on, and never accepted.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import weakref
from collections.abc import Callable, Collection, Generator, Iterator

from npuw_layer.backends.protocols import Array, Memory, SharingDevice
from npuw_layer.errors import SharingError
from npuw_layer.weights.sharing.meeting import LOCK_SECONDS, Meeting, locked_meeting
from npuw_layer.weights.sharing.server import Server
from npuw_layer.weights.sharing.usage import SharingReport
from npuw_layer.weights.sharing.wire import (
    REPLY_BYTES,
    Connection,
    Offer,
    OfferedSlot,
    Usage,
    WireRequest,
)
from npuw_layer.weights.stored_weights import ArenaLayout

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 5.0
"""Seconds to wait for a process's answer before asking the next process."""

Fill = Callable[[Array], None]


class SharedArena:
    """Read-only weights that other processes use too.

    Args:
        memory: memory of this process's device.
        layout: locations of the weights.
        server: server that passes the arena on.
        meeting: folder of the arena's other holders.
        identity: the arena's name.
        file_bytes: bytes of files with further weights.
    """

    def __init__(
        self,
        memory: Memory,
        layout: ArenaLayout,
        server: Server,
        meeting: Meeting,
        identity: str,
        file_bytes: int,
    ) -> None:
        self.memory = memory
        self.layout = layout
        self.identity = identity
        self._meeting = meeting
        self._arena_bytes = sum(slot.nbytes for slot in layout.slots.values())
        self._file_bytes = file_bytes
        self._server = server
        self._leave = weakref.finalize(self, server.stop)

    def report(self) -> SharingReport:
        """Ask all processes that hold the arena for their mapped bytes.

        Raises:
            SharingError: this process has left the arena, or was forked from a holder.
        """
        asked = _ask_all(self._meeting, self.identity)
        return SharingReport(self._arena_bytes, self._file_bytes, dict(asked))

    def close(self) -> None:
        """Stop passing on the arena, and free the memory."""
        self._leave()
        self._server.join()
        self.memory.free()


def join_arena(
    device: SharingDevice,
    identity: str,
    layout: ArenaLayout,
    fill: Fill,
    files: Collection[str] = (),
    seconds: float = LOCK_SECONDS,
) -> SharedArena:
    """Attach to an arena, or create it if no process has it.

    Args:
        device: this process's device.
        identity: the arena's name; see ``stored_weights.identify``.
        layout: locations of the weights.
        fill: writes all weights into u8 [layout.nbytes]; called if no other process has done so.
            Its errors are passed on, and no arena exists then.
        files: real paths of files with further weights, which are counted, too.
        seconds: maximum wait for another process that creates the arena.

    Raises:
        SharingError: the folder, its lock or a socket is not available.
        DeviceError: the device has no memory left.
    """
    file_bytes = _file_bytes(files)
    with locked_meeting(identity, seconds) as meeting:
        found = _attach(device, meeting, identity, layout)
        memory, descriptor = found or _make(device, layout, fill)
        server = Server(meeting, _offer(identity, layout), descriptor, files)
    arena = SharedArena(memory, layout, server, meeting, identity, file_bytes)
    if _log.isEnabledFor(logging.INFO):  # the report waits for every process that hangs
        _log.info("%s: %s", "attached" if found else "made", arena.report())
    return arena


def _file_bytes(files: Collection[str]) -> int:
    try:
        return sum(os.stat(file).st_size for file in files)
    except OSError as error:
        raise SharingError(f"{error.filename}: {error.strerror}") from None


def _offer(identity: str, layout: ArenaLayout) -> Offer:
    slots = [
        OfferedSlot(name=name, offset=slot.offset, nbytes=slot.nbytes)
        for name, slot in layout.slots.items()
    ]
    return Offer(identity=identity, nbytes=layout.nbytes, slots=slots)


def _make(device: SharingDevice, layout: ArenaLayout, fill: Fill) -> tuple[Memory, int]:
    """Create an arena; return it in the form for all processes: sealed and read-only."""
    descriptor = _filled(device, layout, fill)
    try:
        _seal(descriptor)
        return device.attach(descriptor, layout.nbytes), descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _filled(device: SharingDevice, layout: ArenaLayout, fill: Fill) -> int:
    """Write all weights; return a descriptor of memory that this process can no longer write to."""
    memory = device.allocate_shared(layout.nbytes)
    try:
        descriptor = device.export(memory)
        try:
            fill(memory.data)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    finally:
        memory.free()


def _attach(
    device: SharingDevice, meeting: Meeting, identity: str, layout: ArenaLayout
) -> tuple[Memory, int] | None:
    """Attach to the arena of any process that serves it; None if no process does."""
    for name in meeting.sockets():
        try:
            return _take(device, meeting, name, identity, layout)
        except (ConnectionRefusedError, FileNotFoundError):
            meeting.remove(name)  # its process was killed, or has just left
        except SharingError as error:
            _log.warning("%s; asking another process", error)
    return None


def _take(
    device: SharingDevice, meeting: Meeting, name: str, identity: str, layout: ArenaLayout
) -> tuple[Memory, int]:
    with _asked(meeting, name, WireRequest(want="arena", identity=identity)) as connection:
        offer, descriptor = connection.receive_with_descriptor(Offer, REPLY_BYTES)
    try:
        if offer != _offer(identity, layout):
            raise SharingError(f"process {connection.pid} offers an arena of other weights")
        if not _is_sealed(descriptor):
            raise SharingError(f"process {connection.pid} offers an incomplete arena")
        return device.attach(descriptor, layout.nbytes), descriptor
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, RuntimeError) and not isinstance(error, SharingError):
            raise SharingError(f"process {connection.pid}: {error}") from error
        raise


def _ask_all(meeting: Meeting, identity: str) -> Iterator[tuple[int, Usage]]:
    """Ask all processes, and yield their ids and usage; skip those that do not answer."""
    for name in meeting.sockets():
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError, SharingError):
            with _asked(meeting, name, WireRequest(want="usage", identity=identity)) as connection:
                usage = connection.receive(Usage, REPLY_BYTES)
            yield connection.pid, usage


@contextlib.contextmanager
def _asked(meeting: Meeting, name: str, request: WireRequest) -> Generator[Connection, None, None]:
    """Connect to a process, and send it a request.

    Raises:
        ConnectionRefusedError: no process listens there.
        FileNotFoundError: the socket no longer exists.
        SharingError: the process does not accept the request.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_ANSWER_SECONDS)
            link.connect(meeting.path(name))
            connection = Connection(link, _ANSWER_SECONDS)
            connection.send(request)
            yield connection
    except (ConnectionRefusedError, FileNotFoundError):
        raise
    except OSError as error:
        raise SharingError(f"{name}: {error}") from None


def _seal(descriptor: int) -> None:
    """Seal memory against all further writing.

    Raises:
        SharingError: a process can still write, or the memory cannot be sealed.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    except OSError as error:
        raise SharingError(f"the arena cannot be sealed: {error.strerror}") from None


def _is_sealed(descriptor: int) -> bool:
    try:
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE)
    except OSError:
        return False
