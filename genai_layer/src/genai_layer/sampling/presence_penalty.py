"""Makes what was generated before less likely, however often."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processor import Logits, Processor, Said


def presence_penalty(penalty: float) -> Processor:
    """Subtract ``penalty`` from the logit of each generated id, or add it to a negative one.

    The sign for negative logits is openvino_genai's, not that of other engines.
    """

    def process(logits: Logits, said: Said) -> Logits:
        ids = np.unique(np.array(said.generated, np.int64))
        penalised = logits.copy()
        penalised[ids] -= np.where(logits[ids] >= 0, penalty, -penalty).astype(np.float32)
        return penalised

    return process
