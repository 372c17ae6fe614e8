"""Loop of the fuzzing scripts, which damage blobs for a given time."""

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
    """Damage blobs for the time on the command line; store those that crash or hang the reader.

    Args:
        description: description of the command.
        mutate: returns a damaged blob.
        outcome: reads a blob, and returns the name of the outcome.
        corpus: folder for findings.
        slow_seconds: limit above which a reader hangs.

    Returns:
        1 if there is a finding, else 0.
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
