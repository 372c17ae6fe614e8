"""Fuzzes the loader for as long as you like; what breaks it is kept in corpus/.

    python tests/driver/loader/fuzz_loader.py --minutes 10 --seed 1

Put the fix and the kept file into one commit: test_mutations.py replays the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_mutations import CORPUS, load_and_run, mutate

SLOW_SECONDS = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
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
            outcome = load_and_run(blob)
        except Exception:
            traceback.print_exc()
            outcome = "CRASH"
        if time.monotonic() - began > SLOW_SECONDS:
            outcome = "HANG"
        if outcome in ("CRASH", "HANG"):
            CORPUS.mkdir(exist_ok=True)
            name = hashlib.sha256(blob).hexdigest()[:12]
            (CORPUS / f"{outcome.lower()}_{name}.blob").write_bytes(blob)
        outcomes[outcome] += 1
    sys.stdout.write(f"{dict(outcomes.most_common())}\n")
    return 1 if outcomes["CRASH"] + outcomes["HANG"] else 0


if __name__ == "__main__":
    sys.exit(main())
