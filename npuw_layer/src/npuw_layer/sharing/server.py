"""Hands an arena to processes that come later.

Every process that has the arena serves it, from a thread that sleeps until somebody asks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import weakref
from collections.abc import Collection

from npuw_layer.errors import SharingError
from npuw_layer.sharing.meeting import Meeting
from npuw_layer.sharing.usage import measure
from npuw_layer.sharing.wire import REQUEST_BYTES, Connection, Offer, Request

_log = logging.getLogger(__name__)

_REQUEST_SECONDS = 1.0
"""Who has not asked by then, or not taken the answer, is left."""
_BACKLOG = 64


class Server:
    """Answers requests at a socket until it is stopped.

    Args:
        meeting: where; its lock is held. It becomes this object's own.
        offer: what is handed out.
        descriptor: of the arena's memory; becomes this object's own.
        files: what else this process uses of the weights, by path.

    Raises:
        SharingError: there can be no socket.
    """

    def __init__(
        self, meeting: Meeting, offer: Offer, descriptor: int, files: Collection[str]
    ) -> None:
        self._meeting = meeting
        self._offer = offer
        self._descriptor = descriptor
        self.files = files
        self._process = os.getpid()
        self.name = meeting.new_name()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(meeting.path(self.name))
            os.chmod(meeting.path(self.name), 0o600)
            self._socket.listen(_BACKLOG)
        except OSError as error:
            self._socket.close()
            raise SharingError(f"no socket to share weights: {error}") from None
        self._thread = threading.Thread(target=self._serve, name="npuw-sharing", daemon=True)
        self._thread.start()
        _running.add(self)

    def stop(self) -> None:
        """Answer nobody any more; what others hold stays theirs."""
        if self._process != os.getpid():
            return  # a forked child: all this is its parent's
        self._meeting.remove(self.name)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if threading.current_thread() is not self._thread:  # garbage is collected in any thread
            self._thread.join()
        self._socket.close()
        if self._meeting.try_lock():
            self._meeting.remove_if_empty()
        self._meeting.close()
        os.close(self._descriptor)

    def leave_to_parent(self) -> None:
        """Let go of what a forked child has inherited: there is no thread here that answers."""
        self._socket.close()
        os.close(self._descriptor)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            try:
                connection = Connection(link, _REQUEST_SECONDS)
            except SharingError as error:
                _log.warning("%s; refused", error)
                continue
            try:
                self._answer(connection)
            except SharingError as error:
                _log.warning("%s; refused", error)
            finally:
                connection.close()

    def _answer(self, connection: Connection) -> None:
        request = connection.receive(Request, REQUEST_BYTES)
        if request.identity != self._offer.identity:
            raise SharingError(f"process {connection.pid} wants other weights")
        if request.want == "usage":
            connection.send(measure(self._descriptor, self.files))
        else:
            connection.send(self._offer, self._descriptor)
            _log.info("weights were handed to process %d", connection.pid)


_running: weakref.WeakSet[Server] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for server in list(_running):
        server.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
