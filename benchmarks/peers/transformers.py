"""transformers on PyTorch in its default mode: eager, with its own cache."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from transformers import __version__ as transformers_version

from peers import Lengths

_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Transformers:
    """Causal language model.

    Args:
        path: a Hugging Face folder.
        dtype: f32 or bf16.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        found = AutoModelForCausalLM.from_pretrained(str(path), dtype=_TYPES[dtype])
        self._model = found.eval()

    @torch.inference_mode()
    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate; see ``Opened``."""
        began = time.perf_counter()
        out = self._model(torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
        tokens = [int(out.logits[0, -1].argmax())]
        first = time.perf_counter() - began
        while len(tokens) < new:
            last = torch.tensor([tokens[-1:]])
            out = self._model(last, past_key_values=out.past_key_values, use_cache=True)
            tokens.append(int(out.logits[0, -1].argmax()))
        return first, tokens


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Transformers:
    """Open a Hugging Face folder; ``config`` names the ``dtype``."""
    torch.set_num_threads(lengths.threads)
    return Transformers(path, config["dtype"])


def version() -> str:
    """Return the versions of transformers and PyTorch."""
    return f"{transformers_version}, torch {torch.__version__}"
