"""An arena that processes share: made by the first one, attached to by all others.

That it is complete is what the kernel says of it and not a flag of ours: it is sealed against
writing, which succeeds only when nobody can write to it any more, and cannot be undone. Memory that
is not sealed is never handed out, and never taken.
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
from npuw_layer.weights.layout import Layout
from npuw_layer.weights.sharing.meeting import LOCK_SECONDS, Meeting, locked_meeting
from npuw_layer.weights.sharing.server import Server
from npuw_layer.weights.sharing.usage import SharingReport
from npuw_layer.weights.sharing.wire import (
    REPLY_BYTES,
    Connection,
    Offer,
    OfferedSlot,
    Request,
    Usage,
)

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 5.0
"""How long a process may take to answer before the next one is asked."""

Fill = Callable[[Array], None]


class SharedArena:
    """Weights that other processes use too; only to be read.

    Args:
        memory: of this process's device.
        layout: where each weight lies.
        server: hands it on.
        meeting: where its other holders are.
        identity: its name.
        file_bytes: of files with further weights.
    """

    def __init__(
        self,
        memory: Memory,
        layout: Layout,
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
        """Ask all processes that hold the arena what they have mapped of it.

        Raises:
            SharingError: this process has left it, or was forked from one that has it.
        """
        asked = _ask_all(self._meeting, self.identity)
        return SharingReport(self._arena_bytes, self._file_bytes, dict(asked))

    def close(self) -> None:
        """Hand the arena to nobody any more, and give the memory back."""
        self._leave()
        self._server.join()
        self.memory.free()


def join_arena(
    device: SharingDevice,
    identity: str,
    layout: Layout,
    fill: Fill,
    files: Collection[str] = (),
    seconds: float = LOCK_SECONDS,
) -> SharedArena:
    """Attach to an arena, or make it if no process has it.

    Args:
        device: where this process uses it.
        identity: its name; see ``layout.identify``.
        layout: where weights lie.
        fill: writes all weights into u8 [layout.nbytes]; called if nobody else has done so. What
            it raises is passed on, and then there is no arena.
        files: real paths of files with further weights, to be counted too.
        seconds: how long to wait for another process that makes it.

    Raises:
        SharingError: the folder, its lock or a socket cannot be had.
        DeviceError: the device has no memory left.
    """
    file_bytes = _file_bytes(files)
    with locked_meeting(identity, seconds) as meeting:
        found = _attach(device, meeting, identity, layout)
        memory, descriptor = found or _make(device, layout, fill)
        server = Server(meeting, _offer(identity, layout), descriptor, files)
    arena = SharedArena(memory, layout, server, meeting, identity, file_bytes)
    if _log.isEnabledFor(logging.INFO):  # a process that hangs takes its time to not answer
        _log.info("%s: %s", "attached" if found else "made", arena.report())
    return arena


def _file_bytes(files: Collection[str]) -> int:
    try:
        return sum(os.stat(file).st_size for file in files)
    except OSError as error:
        raise SharingError(f"{error.filename}: {error.strerror}") from None


def _offer(identity: str, layout: Layout) -> Offer:
    slots = [
        OfferedSlot(name=name, offset=slot.offset, nbytes=slot.nbytes)
        for name, slot in layout.slots.items()
    ]
    return Offer(identity=identity, nbytes=layout.nbytes, slots=slots)


def _make(device: SharingDevice, layout: Layout, fill: Fill) -> tuple[Memory, int]:
    """Make an arena, and give it as all others will have it: sealed, and to be read."""
    descriptor = _filled(device, layout, fill)
    try:
        _seal(descriptor)
        return device.attach(descriptor, layout.nbytes), descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _filled(device: SharingDevice, layout: Layout, fill: Fill) -> int:
    """Write all weights; give a descriptor of memory that nobody here can write to any more."""
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
    device: SharingDevice, meeting: Meeting, identity: str, layout: Layout
) -> tuple[Memory, int] | None:
    """Take the arena from any process that serves it; None if there is none."""
    for name in meeting.sockets():
        try:
            return _take(device, meeting, name, identity, layout)
        except (ConnectionRefusedError, FileNotFoundError):
            meeting.remove(name)  # its process was killed, or has left just now
        except SharingError as error:
            _log.warning("%s; another process is asked", error)
    return None


def _take(
    device: SharingDevice, meeting: Meeting, name: str, identity: str, layout: Layout
) -> tuple[Memory, int]:
    with _asked(meeting, name, Request(want="arena", identity=identity)) as connection:
        offer, descriptor = connection.receive_with_descriptor(Offer, REPLY_BYTES)
    try:
        if not _is_wanted(offer, identity, layout):
            raise SharingError(f"process {connection.pid} offers an arena of other weights")
        if not _is_sealed(descriptor):
            raise SharingError(f"process {connection.pid} offers an arena that is not complete")
        return device.attach(descriptor, layout.nbytes), descriptor
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, RuntimeError) and not isinstance(error, SharingError):
            raise SharingError(f"process {connection.pid}: {error}") from error
        raise


def _is_wanted(offer: Offer, identity: str, layout: Layout) -> bool:
    """Tell whether what is offered is what is wanted."""
    offered = {slot.name: (slot.offset, slot.nbytes) for slot in offer.slots}
    wanted = {name: (slot.offset, slot.nbytes) for name, slot in layout.slots.items()}
    return (offer.identity, offer.nbytes, offered) == (identity, layout.nbytes, wanted)


def _ask_all(meeting: Meeting, identity: str) -> Iterator[tuple[int, Usage]]:
    """Ask all processes, by number; those that do not answer do not count."""
    for name in meeting.sockets():
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError, SharingError):
            with _asked(meeting, name, Request(want="usage", identity=identity)) as connection:
                usage = connection.receive(Usage, REPLY_BYTES)
            yield connection.pid, usage


@contextlib.contextmanager
def _asked(meeting: Meeting, name: str, request: Request) -> Generator[Connection, None, None]:
    """Connect to a process, and send it a request.

    Raises:
        ConnectionRefusedError: nobody listens there.
        FileNotFoundError: the socket is gone.
        SharingError: it does not take the request.
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
    """Let nobody ever write to memory again.

    Raises:
        SharingError: somebody still can, or the memory is of another make.
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
