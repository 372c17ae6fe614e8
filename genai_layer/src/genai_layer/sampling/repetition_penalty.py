"""Makes what was said before, in prompt or answer, less likely."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processor import Logits, Processor, Said


def repetition_penalty(penalty: float) -> Processor:
    """Divide the logit of each id said by ``penalty``, or multiply it where it is negative."""

    def process(logits: Logits, said: Said) -> Logits:
        ids = np.unique(np.array([*said.prompt, *said.generated], np.int64))
        penalised = logits.copy()
        chosen = logits[ids]
        penalised[ids] = np.where(chosen >= 0, chosen / penalty, chosen * penalty)
        return penalised

    return process
