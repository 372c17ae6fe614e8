"""Fuzzer of the loader; blobs that break the loader are kept in corpus/.

    python tests/driver/loader/fuzz_loader.py --minutes 10 --seed 1

Commit the fix together with the kept file: test_mutations.py replays the corpus.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
from test_mutations import CORPUS, load_and_run, mutate  # noqa: E402  # needs sys.path
from tests.fuzzing import fuzz  # noqa: E402

if __name__ == "__main__":
    sys.exit(fuzz(__doc__, mutate, load_and_run, CORPUS, slow_seconds=5.0))
