"""Process that serves: uvicorn, with a shutdown that finishes or refuses requests."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from genai_layer.errors import GenAIError
from genai_layer.serve.engine.activity import Activity
from genai_layer.serve.models.registry import ModelRegistry

_CLOSING = 2
"""Seconds in which responses reach their clients after the last request has ended."""


class Server(uvicorn.Server):
    """Server of one process.

    The first SIGTERM or SIGINT begins the shutdown: the server still answers, with 503; requests in
    progress have a number of seconds to finish; then the process ends. The second signal ends the
    process at once, as SIGKILL would.

    Args:
        app: the application.
        models: its models, of which the first is loaded at the start.
        activity: the work in progress.
        grace: seconds that the shutdown waits for requests in progress.
        report: receives the lines to show: "listening", "ready" and others.
    """

    def __init__(
        self,
        app: FastAPI,
        models: ModelRegistry,
        activity: Activity,
        grace: float,
        report: Callable[[str], None],
    ) -> None:
        config = uvicorn.Config(
            app,
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
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and to load the first model."""
        await super().startup(sockets)
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
        await self._activity.stop(self._grace)
        self.should_exit = True
