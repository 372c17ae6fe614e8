"""Load on a server: concurrent clients of /v1/completions, some of which behave badly.

A request is HTTP/1.0, so that the response ends with the connection.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OK, TOO_MANY = 200, 429
CALM = {"stream": 1.0}
ROUGH = {"stream": 0.5, "plain": 0.2, "leave": 0.15, "slow": 0.05, "broken": 0.1}
"""Shares of clients' behaviours."""

_BROKEN = (
    b"",
    b"{",
    b"\xff\xfe\x00",
    b"[" * 10_000,
    b'{"model": 7}',
    b'{"model": "no such model", "prompt": "x"}',
    b'{"model": "demo", "prompt": ["' + b"x " * 100_000 + b'"]}',
    b'{"model": "demo", "prompt": "x", "max_tokens": -1}',
    b'{"model": "demo", "prompt": "x", "temperature": 1e999}',
    b'{"model": "demo", "prompt": "x", "n": 1000000}',
)


def _attack(prompt: str, **fields: Any) -> bytes:
    """Return a body whose prompt is JSON."""
    return f'{{"model": "demo", {json.dumps(fields)[1:-1]}, "prompt": {prompt}}}'.encode()


ATTACKS = {
    "objects": _attack("[" + '{"a":1},' * 200_000 + "{}]", n=1),
    "empty lists": _attack("[" + "[]," * 1_300_000 + "[]]", n=1),
    "unknown keys": _attack('"a"', **{f"k{number}": 1 for number in range(250_000)}),
    "a long key": _attack('"a"', **{"k" * 3_900_000: 1}),
    "a long text": _attack('"' + "a long text " * 325_000 + '"', n=1),
}
"""Bodies of a few megabytes that are rejected; parsing them, or their text, would take far more."""


@dataclass
class Tally:
    """Results of a load."""

    answers: int = 0
    """Complete answers."""
    wrong: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Prompts and texts of answers that differ from those asked alone."""
    texts: list[str] = field(default_factory=list[str])
    """Texts of complete answers."""
    first: list[float] = field(default_factory=list[float])
    """Seconds to the first text, of streams."""
    statuses: Counter[int] = field(default_factory=Counter[int])
    behaviours: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0


class Client:
    """Client of a server.

    Args:
        port: the server's, on the loopback interface.
        model: name of the model.
        tokens: limit of an answer.
    """

    def __init__(self, port: int, model: str, tokens: int) -> None:
        self._port, self._model, self._tokens = port, model, tokens

    async def ask(self, prompt: str) -> str:
        """Return the answer to a prompt.

        Raises:
            RuntimeError: the server rejects the request.
        """
        status, body = await self.post(self.body(prompt))
        if status != OK:
            raise RuntimeError(f"status {status}: {body.decode()}")
        return json.loads(body)["choices"][0]["text"]

    def body(self, prompt: str, **others: Any) -> bytes:
        """Return the body of a request for a greedy answer."""
        fields = {"model": self._model, "prompt": prompt, "max_tokens": self._tokens}
        return json.dumps({**fields, "temperature": 0, **others}).encode()

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Return status and body of a response."""
        reader, writer = await self.open(body)
        try:
            status = await _status(reader)
            return status, await reader.read()
        finally:
            writer.close()

    async def open(
        self, body: bytes, length: int | None = None, buffer: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request.

        Args:
            body: the body.
            length: the length that the header declares, if it is another one.
            buffer: bytes that the client receives before it reads.
        """
        connection = socket.socket()
        connection.setblocking(False)
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=buffer or 1 << 16)
        head = (
            "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        return reader, writer


async def load(
    client: Client,
    expected: Mapping[str, str],
    shares: Mapping[str, float],
    clients: int,
    seconds: float,
    seed: int = 0,
) -> Tally:
    """Put load on a server.

    Args:
        client: makes the requests.
        expected: prompts, and their answers; an empty one is not compared.
        shares: share of each behaviour.
        clients: number of concurrent clients.
        seconds: duration; answers in progress are completed.
        seed: seed of all choices.
    """
    tally, begin = Tally(), time.monotonic()
    ask = _Asking(client, expected, tally)

    async def run(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        while time.monotonic() - begin < seconds:
            (kind,) = draw.choices([*shares], [*shares.values()])
            tally.behaviours[kind] += 1
            try:
                await getattr(ask, kind)(draw)
            except ConnectionError:  # e.g. a broken body to which the server does not listen
                tally.statuses[0] += 1

    await asyncio.gather(*[run(number) for number in range(clients)])
    tally.seconds = time.monotonic() - begin
    return tally


class _Asking:
    """Behaviours of clients."""

    def __init__(self, client: Client, expected: Mapping[str, str], tally: Tally) -> None:
        self._client, self._expected, self._tally = client, expected, tally
        self._prompts = [*expected]

    async def stream(self, draw: random.Random) -> None:
        """Read an answer as it grows."""
        await self._streamed(draw.choice(self._prompts))

    async def slow(self, draw: random.Random) -> None:
        """Read an answer as it grows, in small parts with pauses."""
        await self._streamed(draw.choice(self._prompts), pause=draw.uniform(0.01, 0.2))

    async def leave(self, draw: random.Random) -> None:
        """Leave after a part of the answer, of the response, or of the request."""
        await self._streamed(draw.choice(self._prompts), most=draw.choice([0, 1, 2, 5, 20]))

    async def plain(self, draw: random.Random) -> None:
        """Read an answer at once."""
        prompt = draw.choice(self._prompts)
        status, body = await self._client.post(self._client.body(prompt))
        await self._note(status)
        if status == OK:
            self._complete(prompt, json.loads(body)["choices"][0]["text"])

    async def broken(self, draw: random.Random) -> None:
        """Send a body that is no request, or only a part of one."""
        body = draw.choice(_BROKEN)
        if draw.random() < 0.3:
            _, writer = await self._client.open(body, length=len(body) + 100)
            await asyncio.sleep(draw.uniform(0, 0.5))
            writer.close()
            return
        status, _ = await self._client.post(body)
        await self._note(status)

    async def _streamed(self, prompt: str, pause: float = 0.0, most: int = 1 << 30) -> None:
        begin = time.monotonic()
        body = self._client.body(prompt, stream=True)
        reader, writer = await self._client.open(body, buffer=2048 if pause else None)
        try:
            if not most:
                return
            status = await _status(reader)
            await self._note(status)
            texts: list[str] = []
            while status == OK and len(texts) < most:
                line = await reader.readline()
                if not line:
                    raise ConnectionError("the stream ended without [DONE]")
                if line.startswith(b"data: [DONE]"):
                    self._complete(prompt, "".join(texts))
                    return
                if line.startswith(b"data: "):
                    texts.append(_text(line))
                    if len(texts) == 1 and not pause:
                        self._tally.first.append(time.monotonic() - begin)
                    await asyncio.sleep(pause)
        finally:
            writer.close()

    async def _note(self, status: int) -> None:
        self._tally.statuses[status] += 1
        if status == TOO_MANY:
            await asyncio.sleep(0.2)

    def _complete(self, prompt: str, text: str) -> None:
        self._tally.answers += 1
        self._tally.texts.append(text)
        if self._expected[prompt] and text != self._expected[prompt]:
            self._tally.wrong.append((prompt, text))


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of a response, and read its head."""
    words = (await reader.readline()).split()
    if len(words) < 2:
        raise ConnectionError("the server closed the connection")
    while (await reader.readline()).strip():
        pass
    return int(words[1])


def _text(line: bytes) -> str:
    event = json.loads(line.removeprefix(b"data: "))
    if "error" in event:
        raise RuntimeError(f"error in a stream: {event['error']}")
    choices: Sequence[Any] = event["choices"]
    return choices[0]["text"] if choices else ""
