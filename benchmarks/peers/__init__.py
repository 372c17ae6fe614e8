"""Peers of the benchmark: one module each, run by ``worker.py`` in a separate process.

A module imports its library at the top, so importing and loading are timed separately, and defines

    open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Opened
    version() -> str
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths and threads that a model is opened with."""

    prompt: int
    """Maximum number of tokens in a prompt."""
    new: int
    """Number of tokens generated after the prompt."""
    threads: int
    """Number of processors that the process may use."""

    @property
    def static(self) -> dict[str, int]:
        """Return the properties of a pipeline with static shapes; at least 64 tokens each."""
        return {"MAX_PROMPT_LEN": max(self.prompt, 64), "MIN_RESPONSE_LEN": max(self.new, 64)}


class Opened(Protocol):
    """Open model."""

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate greedily, also beyond stop tokens.

        Returns:
            Seconds to the first token, and the ``new`` tokens.
        """
        ...
