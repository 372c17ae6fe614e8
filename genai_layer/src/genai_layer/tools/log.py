"""NPU_LOG chooses what is logged to stderr: a level, or layers with levels.

NPU_LOG=info npu-chat …
NPU_LOG=compiler:debug,npuw:info npu-chat …
"""

from __future__ import annotations

import logging
import os
import sys

VARIABLE = "NPU_LOG"


def set_up_log(chosen: str | None = None) -> None:
    """Log what NPU_LOG says, or ``chosen``; words that say nothing are reported and left out."""
    words = (os.environ.get(VARIABLE, "") if chosen is None else chosen).split(",")
    levels = logging.getLevelNamesMapping()
    for word in filter(None, (word.strip() for word in words)):
        layer, _, level = word.rpartition(":")
        if level.upper() not in levels:
            sys.stderr.write(f"{VARIABLE}: {word!r} is no level like info, nor layer:level\n")
            continue
        logging.basicConfig(format="%(name)s: %(message)s")
        name = layer if not layer or layer.endswith("_layer") else f"{layer}_layer"
        logging.getLogger(name or None).setLevel(levels[level.upper()])
