"""Server that passes an arena to later processes.

Every process that has the arena serves it, from a thread that sleeps until a request arrives.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Collection

from npuw_layer.errors import SharingError
from npuw_layer.weights.sharing.meeting import Meeting
from npuw_layer.weights.sharing.usage import measure
from npuw_layer.weights.sharing.wire import REQUEST_BYTES, Connection, Offer, WireRequest

_log = logging.getLogger(__name__)

_REQUEST_SECONDS = 1.0
"""Seconds until a client that has not sent its request, or not read the answer, is dropped."""
_PAUSE_SECONDS = 0.1
"""Seconds to wait for descriptors when the process has none left to accept a connection."""
_BACKLOG = 64


class Server:
    """Server that answers requests at a socket until it is stopped.

    Args:
        meeting: the arena's folder, whose lock is held; the server takes ownership.
        offer: the arena's description, sent to clients.
        descriptor: descriptor of the arena's memory; the server takes ownership.
        files: paths of further files whose weights this process uses.

    Raises:
        SharingError: the socket cannot be created.
    """

    def __init__(
        self, meeting: Meeting, offer: Offer, descriptor: int, files: Collection[str]
    ) -> None:
        self._meeting = meeting
        self._offer = offer
        self._descriptor = descriptor
        self._files = files
        self._process = os.getpid()
        self._stopping = False
        self._socket: socket.socket | None = None
        self.name = meeting.new_name()
        self._thread = threading.Thread(target=self._serve, name="npuw-sharing", daemon=True)
        _running.add(self)
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(meeting.path(self.name))
            os.chmod(meeting.path(self.name), 0o600)
            self._socket.listen(_BACKLOG)
            self._thread.start()
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can start
            meeting.remove(self.name)
            self.let_go()
            raise SharingError(f"no socket to share weights: {error}") from None

    def stop(self) -> None:
        """Stop answering; other processes keep the memory that they hold.

        It neither waits nor takes a lock: the garbage collector may call it in any thread, which
        may hold locks. The answering thread releases the memory when it wakes.
        """
        if self._process != os.getpid() or self._socket is None:
            return  # a forked child: socket and memory belong to its parent
        self._meeting.remove(self.name)
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        with contextlib.suppress(SharingError):
            if self._meeting.try_lock():
                self._meeting.remove_if_empty()
        self._meeting.close()

    def join(self) -> None:
        """Wait until the thread of a stopped server has ended."""
        if self._process == os.getpid():
            self._thread.join()

    def let_go(self) -> None:
        """Close socket and memory; a second call does nothing."""
        if self._socket is not None:
            self._socket.close()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _serve(self) -> None:
        assert self._socket is not None  # the thread starts after listen
        try:
            while not self._stopping:
                self._serve_next(self._socket)
        finally:
            self.let_go()

    def _serve_next(self, listening: socket.socket) -> None:
        try:
            link, _ = listening.accept()
        except OSError as error:
            if not self._stopping:
                _log.warning("requests for weights are delayed: %s", error)
                time.sleep(_PAUSE_SECONDS)
            return
        with link:
            self._answer_safely(link)

    def _answer_safely(self, link: socket.socket) -> None:
        """Answer one request, and survive any error: newcomers depend on this thread."""
        try:
            self._answer(Connection(link, _REQUEST_SECONDS))
        except SharingError as error:
            _log.warning("%s; rejected", error)
        except Exception:
            _log.exception("a request for weights cannot be answered")

    def _answer(self, connection: Connection) -> None:
        request = connection.receive(WireRequest, REQUEST_BYTES)
        if request.identity != self._offer.identity:
            raise SharingError(f"process {connection.pid} requests other weights")
        if request.want == "usage":
            connection.send(measure(self._descriptor, self._files))
        else:
            connection.send(self._offer, self._descriptor)
            _log.info("weights were passed to process %d", connection.pid)


_running: weakref.WeakSet[Server] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for server in list(_running):
        server.let_go()  # the child has no answering thread


os.register_at_fork(after_in_child=_leave_to_parent)
