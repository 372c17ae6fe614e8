"""Fuzzer of the reader of native blobs; inputs that break the reader are saved in corpus/.

    python tests/npuw/storage/native_blob/fuzz_native.py --minutes 10 --seed 1

Commit the fix together with the saved file: test_hostile_files.py replays the corpus.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[3])]
from test_hostile_files import CORPUS, mutate, outcome  # noqa: E402  # its folder is known only now
from tests.fuzzing import fuzz  # noqa: E402

if __name__ == "__main__":
    sys.exit(fuzz(__doc__, mutate, outcome, CORPUS, slow_seconds=2.0))
