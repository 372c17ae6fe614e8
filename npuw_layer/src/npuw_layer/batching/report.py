"""Counts of one step's work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepReport:
    """Counts of one step's work."""

    read: int = 0
    """Prompt tokens that the step read."""
    generated: int = 0
    """Conversations that generated: each ran one token."""
    slots: int = 0
    """Slots of the model that ran; 0 if none ran."""
    capacity: int = 0
    """Positions that the model's attention spans."""
    programs: tuple[str, ...] = ()
    """Names of the static models that ran, in order."""
