"""Run interleaved conversations for a given time.

    python tests/npuw/llm/interleaved/fuzz_interleaved.py --minutes 10 --seed 1 --group llama

A finding is shrunk and printed as steps; keep it as a test in test_found.py, with its fix.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import get_state_machine_test

sys.path.insert(0, str(Path(__file__).parents[1]))
from interleaved.machine import Interleaved  # after sys.path is set
from interleaved.pool import GROUPS, pool

PROFILE = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def main() -> int:
    """Run one group after another until the time is over or something is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--group", choices=list(GROUPS), help="only this group")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    end, number = time.monotonic() + 60 * options.minutes, options.seed
    groups = [options.group] if options.group else list(GROUPS)
    while time.monotonic() < end:
        for name in groups:
            sys.stderr.write(f"seed {number}: {name}\n")
            seed(number)(
                get_state_machine_test(lambda n=name: Interleaved(pool(n)), settings=PROFILE)
            )()
        number += 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
