"""Which model's inferences begin first where several wait for the device."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class TurnOptions(OptionGroup):
    """Which model's programs begin first where those of several wait for the NPU.

    A program that has begun runs to its end: others come between those of an inference.
    """

    title: ClassVar[str] = "Turns"

    model_priority: Literal["LOW", "MEDIUM", "HIGH"] = Field("MEDIUM", alias="MODEL_PRIORITY")
    """How urgent the model is beside others of the process: where programs wait for the NPU, the
    most urgent begins, and among equals who came first."""
    workload_type: Literal["DEFAULT", "EFFICIENT"] = Field("DEFAULT", alias="WORKLOAD_TYPE")
    """EFFICIENT lets the model work in the background: its programs begin when no others wait,
    whatever their MODEL_PRIORITY is."""
