"""What the scripts have in common that damage blobs for as long as you like."""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path


def fuzz(
    description: str | None,
    mutate: Callable[[random.Random], bytes],
    outcome: Callable[[bytes], str],
    corpus: Path,
    slow_seconds: float,
) -> int:
    """Damage blobs, as the command line says how long; keep what breaks their reader.

    Args:
        description: of the command.
        mutate: makes a damaged blob.
        outcome: reads it, and says what became of it.
        corpus: where findings are kept.
        slow_seconds: what takes longer hangs.

    Returns:
        1 if something was found, else 0.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    end = time.monotonic() + options.minutes * 60
    outcomes: Counter[str] = Counter()
    while time.monotonic() < end:
        blob = mutate(draw)
        began = time.monotonic()
        try:
            found = outcome(blob)
        except Exception:
            traceback.print_exc()
            found = "CRASH"
        if time.monotonic() - began > slow_seconds:
            found = "HANG"
        if found in ("CRASH", "HANG"):
            corpus.mkdir(exist_ok=True)
            name = hashlib.sha256(blob).hexdigest()[:12]
            (corpus / f"{found.lower()}_{name}.blob").write_bytes(blob)
        outcomes[found] += 1
    sys.stdout.write(f"{dict(outcomes.most_common())}\n")
    return 1 if outcomes["CRASH"] + outcomes["HANG"] else 0
