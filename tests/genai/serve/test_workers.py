"""Threads of requests' own work: long work runs one at a time, and not for clients that left."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from tests.genai.serve.conftest import run

from genai_layer.serve.workers import LONG, Workers


def test_long_work_runs_one_at_a_time_and_short_work_beside_it() -> None:
    async def work() -> None:
        workers, free = Workers(), threading.Event()
        begun: list[str] = []

        def long(name: str) -> str:
            begun.append(name)
            free.wait(60)
            return name

        tasks = [
            asyncio.ensure_future(workers.run(LONG + 1, partial(long, name))) for name in "abc"
        ]
        assert await workers.run(LONG, lambda: "short") == "short"
        tasks[1].cancel()
        await asyncio.wait(tasks[1:2])
        free.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[::2] == ["a", "c"]
        assert begun == ["a", "c"], "the work of a client that left never begins"

    run(work())
