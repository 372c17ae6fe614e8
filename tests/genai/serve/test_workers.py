"""Threads of requests' own work: long work runs one at a time, and not for clients that left."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from functools import partial

from tests.genai.serve.conftest import run

from genai_layer.long_texts import encode_texts
from genai_layer.serve.workers import LONG, Workers
from genai_layer.testing.toy import make_tokenizer


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


def test_a_client_that_leaves_ends_the_encoding_of_a_long_text() -> None:
    text, begun, ended = "a b" * (1 << 21), threading.Event(), list[type[Exception]]()

    def encode() -> None:
        begun.set()
        try:
            encode_texts(make_tokenizer(), [text], True)
        except CancelledError as error:
            ended.append(type(error))

    async def leave() -> None:
        workers = Workers()
        request = asyncio.ensure_future(workers.run(len(text), encode))
        await asyncio.to_thread(begun.wait, 60)
        request.cancel()
        await workers.run(len(text), lambda: None)
        assert ended == [CancelledError], "the thread is free for the next long work"

    run(leave())
