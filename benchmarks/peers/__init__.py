"""What the benchmark sets side by side: a module each, run by ``worker.py`` in its own process.

A module imports its library at the top, so that importing and loading are timed apart, and offers

    open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Opened
    version() -> str
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lengths:
    """What a model is opened for."""

    prompt: int
    """Tokens of the longest prompt."""
    new: int
    """Tokens generated after it."""
    threads: int
    """Processors that the process may use."""

    @property
    def static(self) -> dict[str, int]:
        """The properties of a pipeline of static shapes; at least 64 tokens each."""
        return {"MAX_PROMPT_LEN": max(self.prompt, 64), "MIN_RESPONSE_LEN": max(self.new, 64)}


class Opened(Protocol):
    """A model that is ready."""

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate greedily, whatever tokens come.

        Returns:
            Seconds to the first token, and the ``new`` tokens.
        """
        ...
