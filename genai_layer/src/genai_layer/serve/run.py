"""A server, from its settings to its end.

The process that serves is uvicorn, with a shutdown that finishes or refuses requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import os
import resource
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from genai_layer.errors import GenAIError, PropertyError
from genai_layer.serve.access import Access
from genai_layer.serve.app import create_app
from genai_layer.serve.connections import Connections
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.hosts import Hosts
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.opening import ShowsLoading, open_model, show_nothing
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import Settings
from genai_layer.serve.output import Output, logging_to

_CLOSING = 2
"""Seconds in which responses reach their clients after the last request has ended."""
_BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""
_ACCEPTED = 4
"""Connections that are accepted in a turn of the event loop; each takes a few turns to be read,
answered and closed."""
_OTHER_FILES = 48
"""File handles for all else, with the connections that are answered beyond their bound."""
_FLOODED = ("asyncio", "uvicorn.error", "genai_layer.serve.connections")
"""Loggers whose records clients cause."""


class RequestThreads(ThreadPoolExecutor):
    """Threads of requests, which the end of the event loop does not wait for."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; a thread that still works, e.g. on a long prompt, ends with the process."""
        super().shutdown(wait=False, cancel_futures=True)


class Server(uvicorn.Server):
    """Server of one process.

    The first SIGTERM or SIGINT begins the shutdown: the server still answers, with 503; requests in
    progress have a number of seconds to finish; then the process ends. The second signal ends the
    process at once, as SIGKILL would.

    Args:
        app: the application.
        models: its models, of which the first is loaded at the start.
        activity: the work in progress.
        connections: the open connections.
        grace: seconds that the shutdown waits for requests in progress.
        report: receives the lines to show: "listening", "ready" and others; never raises.
    """

    def __init__(
        self,
        app: FastAPI,
        models: ModelRegistry,
        activity: Activity,
        connections: Connections,
        grace: float,
        report: Callable[[str], None],
    ) -> None:
        config = uvicorn.Config(
            app,
            http=connections.protocol(),
            ws="none",
            backlog=_ACCEPTED,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_CLOSING,
        )
        super().__init__(config)
        self.failure: GenAIError | None = None
        """Error of the first model's load, which ended the server."""
        self._models, self._activity = models, activity
        self._grace, self._report = grace, report
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signalled = False
        self._tasks = set[asyncio.Task[None]]()
        """Tasks in progress; asyncio itself keeps no reference."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal arrives; see ``uvicorn.Server``."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(RequestThreads(thread_name_prefix="npu-serve work"))
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and to load the first model."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_BACKLOG)
        self._report("listening")
        self._begin(self._load_first())

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal: shut down, or end at once."""
        if self._signalled:
            os._exit(128 + sig)
        self._signalled = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self._begin(self._shut_down()))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load_first(self) -> None:
        first = self._models.names()[0].name
        try:
            await self._models.preload(first)
        except GenAIError as error:
            if not self._signalled:  # else the shutdown ended the load
                self.failure, self.should_exit = error, True
        else:
            self._report("ready")

    async def _shut_down(self) -> None:
        self._report("shutting down")
        try:
            await self._activity.stop(self._grace)
        finally:
            self.should_exit = True


_M_ARENA_MAX = -8
"""Parameter of glibc's mallopt: the number of arenas, by default eight for each processor."""
_ARENAS = 2


def serve(settings: Settings, show_loading: ShowsLoading = show_nothing) -> None:
    """Serve until a signal arrives; the address and the state are printed.

    Args:
        settings: of the server.
        show_loading: shows the progress of loading a model.

    Raises:
        PropertyError: the address cannot be used.
        GenAIError: the first model cannot be loaded.
    """
    _share_memory_of_threads()
    commons = Commons(settings.limits, Metrics(), Activity())
    opens = partial(open_model, show=show_loading)
    models = ModelRegistry(settings.models, commons, settings.max_bytes, opens)
    with _listen(settings.host, settings.port) as listener:
        app = create_app(models, commons, _access(settings, listener))
        output = Output()
        lines = _lines(listener, settings)

        def report(state: str) -> None:
            output.show(lines[state])

        if settings.api_key is None and not _is_loopback(listener):
            output.warn(
                f"npu-serve: {_url(listener)} has no API key, so whoever reaches it may use it; "
                "set NPU_SERVE_API_KEY"
            )
        connections = Connections(_within_file_handles(settings.limits))
        server = Server(app, models, commons.activity, connections, settings.grace, report)
        with logging_to(output, *_FLOODED):
            server.run([listener])
        output.close()
    if server.failure is not None:
        raise server.failure
    _leave()


def _access(settings: Settings, listener: socket.socket) -> Access:
    """Return the rules of a server that listens."""
    address = listener.getsockname()[0]
    hosts = Hosts([settings.host, address, *settings.allowed_hosts])
    return Access(hosts, settings.cors_origins, settings.api_key)


def _lines(listener: socket.socket, settings: Settings) -> dict[str, str]:
    """Return the lines to show, by state."""
    url, first = _url(listener), settings.models[0].name
    return {
        "listening": f"{url} – loading {first}",
        "ready": f"{url} – ready; OpenAI's clients use {url}/v1 and the model {first}",
        "shutting down": "shutting down: waiting for requests in progress",
    }


def _within_file_handles(limits: Limits) -> Limits:
    """Return the limits with connections that leave half of the file handles, 48 at least."""
    handles = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if handles == resource.RLIM_INFINITY:
        return limits
    most = max(min(handles // 2, handles - _OTHER_FILES), 1)
    return replace(limits, connections=min(limits.connections, most))


def _share_memory_of_threads() -> None:
    """Let all threads allocate in the same arenas of glibc; other libraries have none.

    With an arena for each thread, the memory of the longest prompt stays allocated in each of them.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        PropertyError: the address is unknown or in use.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # Other errors than unknown names have texts that repeat the address.
        unknown = isinstance(error, socket.gaierror)
        reason = error.strerror if unknown else os.strerror(error.errno or 0)
        raise PropertyError(
            f"--host {host} --port {port}: {reason}; choose another address"
        ) from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _leave() -> None:
    """End the process if a thread still loads a model, works for a request or writes a line.

    The interpreter's own end would take the memory from under the thread's native code, and wait
    for the lock of the stream that a line is written to.
    """
    if any(one.name.startswith("npu-serve") for one in threading.enumerate()):
        os._exit(0)
