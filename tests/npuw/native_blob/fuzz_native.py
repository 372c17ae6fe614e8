"""Fuzzes the reader of native blobs for as long as you like; what breaks it is kept in corpus/.

    python tests/npuw/native_blob/fuzz_native.py --minutes 10 --seed 1

Put the fix and the kept file into one commit: test_hostile_files.py replays the corpus.
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
from test_hostile_files import CORPUS, mutate, outcome

SLOW_SECONDS = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    end = time.monotonic() + options.minutes * 60
    outcomes: Counter[str] = Counter()
    while time.monotonic() < end:
        content = mutate(draw)
        began = time.monotonic()
        try:
            found = outcome(content)
        except Exception:
            traceback.print_exc()
            found = "CRASH"
        if time.monotonic() - began > SLOW_SECONDS:
            found = "HANG"
        if found in ("CRASH", "HANG"):
            CORPUS.mkdir(exist_ok=True)
            name = hashlib.sha256(content).hexdigest()[:12]
            (CORPUS / f"{found.lower()}_{name}.blob").write_bytes(content)
        outcomes[found] += 1
    sys.stdout.write(f"{dict(outcomes.most_common())}\n")
    return 1 if outcomes["CRASH"] + outcomes["HANG"] else 0


if __name__ == "__main__":
    sys.exit(main())
