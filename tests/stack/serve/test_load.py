"""64 clients of a real server, some of which leave, read slowly, or send broken bodies."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.stack.serve.conftest import PROMPTS, Serve

FINE = {0, 200, 400, 404, 413, 429}
"""Statuses of all clients; 0 for a connection that ended before."""
MOST_MEMORY = 512 << 20
"""Bytes; after two minutes of this load about 300 MB are resident (docs/serving.md)."""


def busy(server: Any) -> list[str]:
    lines = server.get("/metrics").splitlines()
    return [one for one in lines if one.startswith("vllm:num_requests") and one[-3:] != "0.0"]


def test_no_answer_is_wrong_no_slot_is_lost_and_the_memory_stays(
    serve_demo: Serve, serve_load: Any
) -> None:
    with serve_demo() as server:
        client = serve_load.Client(server.port, "demo", 24)

        async def all_alone() -> dict[str, str]:
            return {prompt: await client.ask(prompt) for prompt in PROMPTS}

        expected = asyncio.run(all_alone())
        assert len(set(expected.values())) == len(PROMPTS)
        for seed in range(2):
            made = serve_load.load(client, expected, serve_load.ROUGH, 64, 1.5, seed)
            tally = asyncio.run(made)
            assert server.memory() < MOST_MEMORY
            assert tally.wrong == []
            assert tally.answers > 0
            assert set(tally.behaviours) == set(serve_load.ROUGH)
            assert set(tally.statuses) <= FINE

        async def attacked(body: bytes, clients: int = 8) -> None:
            sent = [client.post(body) for _ in range(clients)]
            assert {status for status, _ in await asyncio.gather(*sent)} == {400}

        for body in serve_load.ATTACKS.values():
            asyncio.run(attacked(body))
        assert server.peak_memory() < MOST_MEMORY
        end = time.monotonic() + 30
        while busy(server) and time.monotonic() < end:
            time.sleep(0.05)
        assert busy(server) == []
        assert asyncio.run(all_alone()) == expected
