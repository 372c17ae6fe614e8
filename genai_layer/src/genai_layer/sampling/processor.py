"""What all steps on logits are: functions of logits and of what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float32]
"""f32 [vocabulary]; -inf where a token is impossible."""


@dataclass(slots=True)
class Said:
    """The prompt's and the generated ids."""

    prompt: list[int]
    generated: list[int] = field(default_factory=list[int])


Processor = Callable[[Logits, Said], Logits]
"""Gives new logits; the ones it was given stay as they are."""
