"""Server benchmark: 64 concurrent clients, of which some leave, read slowly, or send broken bodies.

Checks that each answer equals the one asked alone, that all slots are free afterwards, and that the
memory stays; prints the time to the first text and the tokens per second. A calm load, of clients
that only read streams, also runs on llama-cpp-python's server, if it is given: on a GGUF file of
the same model, with each of some numbers of threads. The share of the machine that other
processes use is printed, too.

    python benchmarks/bench_serve.py [--seconds 120] [--clients 64] [--slots 4]
    python benchmarks/bench_serve.py --peers-python there/bin/python --gguf demo-f16.gguf
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from machine import describe
from other_work import OtherWork
from serve_load import CALM, ROUGH, Client, Tally, load
from serve_process import ServerProcess, free_port
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "demo"
QUESTIONS = [
    "What is an NPU?",
    "What is a KV cache?",
    "What is a blob?",
    "Who reads a blob?",
    "What is prefill?",
    "What is a variant?",
    "How does the compiler schedule tasks?",
    "Hello!",
]
PROMPTS = [f"<|im_start|>user\n{one}<|im_end|>\n<|im_start|>assistant\n" for one in QUESTIONS]
"""Questions in the demo model's chat template."""
_SAMPLES = 4


def main() -> int:
    """Run the benchmark; return 1 if an answer was wrong, or a slot was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seconds", type=float, default=120.0, help="duration of the rough load (default 120)")
    add("--calm-seconds", type=float, default=30.0, help="duration of the calm one (default 30)")
    add("--clients", type=int, default=64, help="concurrent clients (default 64)")
    add("--slots", type=int, default=4, help="slots of our server (default 4)")
    add("--tokens", type=int, default=64, help="limit of an answer (default 64)")
    add("--peers-python", type=Path, help="Python with llama-cpp-python[server]")
    add("--peer-threads", type=int, nargs="+", default=[1, 2], help="its threads (default 1 2)")
    add("--gguf", type=Path, help="GGUF file of the demo model")
    arguments = parser.parse_args()
    print("\n".join(describe()))
    with tempfile.TemporaryDirectory() as folder:
        sound = _ours(arguments, Path(folder))
        if arguments.peers_python is not None and arguments.gguf is not None:
            for threads in arguments.peer_threads:
                _peer(arguments, threads, Path(folder))
    return 0 if sound else 1


def _ours(arguments: argparse.Namespace, folder: Path) -> bool:
    """Measure our server; return whether all answers were right, and all slots free."""
    port = free_port()
    options = ["--port", port, "--slots", arguments.slots, "-c", "MAX_PROMPT_LEN=256"]
    command = [sys.executable, "-m", "genai_layer.tools.serve", MODEL, *options]
    with ServerProcess(command, port, "/ready", folder / "ours.log") as server:
        server.wait_until_ready()
        measure = _Measurement(server, arguments)
        measure.run("ours, calm", CALM, arguments.calm_seconds)
        for number in range(_SAMPLES):
            title = f"ours, rough {number + 1} of {_SAMPLES}"
            tally = measure.run(title, ROUGH, arguments.seconds / _SAMPLES, number)
            print(f"  {_statuses(tally)}; {server.memory() / 1e6:.0f} MB resident")
        idle = asyncio.run(_is_idle(server))
        print(f"wrong answers: {measure.wrong}; slots and queue are {'' if idle else 'NOT '}free")
        code = server.stop(signal.SIGTERM)
        print(f"exit code after SIGTERM: {code}")
    return not measure.wrong and idle and code == 0


def _peer(arguments: argparse.Namespace, threads: int, folder: Path) -> None:
    """Measure llama-cpp-python's server."""
    port = free_port()
    command = [arguments.peers_python, "-m", "llama_cpp.server", "--model", arguments.gguf]
    options = ["--n_ctx", 512, "--n_threads", threads, "--n_threads_batch", threads]
    options += ["--port", port]
    options += ["--model_alias", MODEL.name, "--interrupt_requests", "False"]
    log = folder / "peer.log"
    with ServerProcess([*command, *options], port, "/v1/models", log) as server:
        server.wait_until_ready()
        title = f"llama-cpp-python, threads: {threads}, calm"
        _Measurement(server, arguments).run(title, CALM, arguments.calm_seconds)


class _Measurement:
    """Loads on a server, whose answers are compared to those asked alone."""

    def __init__(self, server: ServerProcess, arguments: argparse.Namespace) -> None:
        self._server, self._clients = server, arguments.clients
        self._client = Client(server.port, MODEL.name, arguments.tokens)
        self._expected = {prompt: asyncio.run(self._client.ask(prompt)) for prompt in PROMPTS}
        self._tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
        self.wrong = 0

    def run(self, title: str, shares: Mapping[str, float], seconds: float, seed: int = 0) -> Tally:
        """Put a load on the server, and print its results."""
        watch, used = OtherWork(self._server.process.pid), self._server.processor_seconds()
        work = load(self._client, self._expected, shares, self._clients, seconds, seed)
        tally = asyncio.run(work)
        used = self._server.processor_seconds() - used
        self.wrong += len(tally.wrong)
        encoded = self._tokenizer.encode_batch(tally.texts)
        tokens, first = sum(len(one.ids) for one in encoded), sorted(tally.first)
        half, most = (first[int(len(first) * share)] for share in (0.5, 0.99))
        print(
            f"{title}: {tally.answers} answers in {tally.seconds:.1f} s, "
            f"{tokens / tally.seconds:.0f} tokens/s, TTFT p50 {half:.2f} s, p99 {most:.2f} s; "
            f"{tokens / used:.0f} tokens per second of a processor; "
            f"other processes: {watch.share():.0%}",
            flush=True,
        )
        return tally


async def _is_idle(server: ServerProcess, seconds: float = 10) -> bool:
    """Return whether no request waits or runs, after some seconds at most."""
    for _ in range(int(seconds * 10)):
        lines = server.get("/metrics").splitlines()
        busy = [one for one in lines if one.startswith("vllm:num_requests") and one[-3:] != "0.0"]
        if not busy:
            return True
        await asyncio.sleep(0.1)
    return False


def _statuses(tally: Tally) -> str:
    return json.dumps({str(status): count for status, count in sorted(tally.statuses.items())})


if __name__ == "__main__":
    sys.exit(main())
