"""Makes what was generated before less likely, the more often the more."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processor import Logits, Processor, Said


def frequency_penalty(penalty: float) -> Processor:
    """Subtract ``penalty`` × count from the logit of each generated id; sign as in presence."""

    def process(logits: Logits, said: Said) -> Logits:
        ids, counts = np.unique(np.array(said.generated, np.int64), return_counts=True)
        penalised = logits.copy()
        amount = penalty * counts
        penalised[ids] -= np.where(logits[ids] >= 0, amount, -amount).astype(np.float32)
        return penalised

    return process
