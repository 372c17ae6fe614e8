"""llama.cpp through the C API of llama-cpp-python, whose Python class would copy logits."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import llama_cpp

from peers import Lengths

_BATCH = 512


class LlamaCpp:
    """Model with a context of the required length.

    Args:
        path: a .gguf file.
        lengths: lengths of prompt and answer, and threads.
        flash_attention: True for flash attention instead of the default.
    """

    def __init__(self, path: Path, lengths: Lengths, flash_attention: bool) -> None:
        self._llama = llama_cpp.Llama(
            str(path),
            n_ctx=lengths.prompt + lengths.new + 8,
            n_batch=_BATCH,
            n_threads=lengths.threads,
            n_threads_batch=lengths.threads,
            flash_attn=flash_attention,
            verbose=False,
        )
        self._greedy = llama_cpp.llama_sampler_init_greedy()

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate; see ``Opened``."""
        memory = llama_cpp.llama_get_memory(self._llama.ctx)
        llama_cpp.llama_memory_clear(memory, True)
        began = time.perf_counter()
        for begin in range(0, len(prompt), _BATCH):
            self._decode(prompt[begin : begin + _BATCH])
        tokens = [self._sample()]
        first = time.perf_counter() - began
        while len(tokens) < new:
            self._decode(tokens[-1:])
            tokens.append(self._sample())
        return first, tokens

    def _decode(self, tokens: list[int]) -> None:
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(array, len(tokens))
        code = llama_cpp.llama_decode(self._llama.ctx, batch)
        if code:
            raise RuntimeError(f"llama_decode returned {code}")

    def _sample(self) -> int:
        return llama_cpp.llama_sampler_sample(self._greedy, self._llama.ctx, -1)


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> LlamaCpp:
    """Open a .gguf file; the only option is ``flash_attn=1``."""
    return LlamaCpp(path, lengths, config.get("flash_attn", "0") == "1")


def version() -> str:
    """Return the version, and whether this build uses AMX, which makes it up to twice as fast."""
    info = llama_cpp.llama_print_system_info().decode()
    amx = "AMX" if "AMX_INT8 = 1" in info else "no AMX"
    return f"llama-cpp-python {llama_cpp.__version__}, {amx}"
