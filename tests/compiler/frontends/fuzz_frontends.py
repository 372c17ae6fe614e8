"""Fuzzer of both frontends and the compiler behind them; findings are stored in corpus/.

    python tests/compiler/frontends/fuzz_frontends.py --minutes 10 --seed 1

A finding is stored once per failing place, with the smallest sufficient change of the undamaged
files. Commit the fix together with the stored file: test_bad_ir.py and test_bad_folders.py replay
the corpus.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "goldens")]
import families  # noqa: E402  # its folder is known only now
import mutations  # noqa: E402

Files = dict[str, bytes]

SHARDED = ("mistral", "qwen2")


@dataclass(frozen=True)
class Subject:
    """Undamaged files, the function that damages them, and the one that reads the result."""

    name: str
    files: Files
    mutate: Callable[[random.Random, Files], Files]
    outcome: Callable[[Files, Path], str]


def subjects() -> list[Subject]:
    """Return the IR of the corpus, and a folder of every family."""
    ir = Subject("ir", mutations.seed_ir(), mutations.mutate_ir, mutations.outcome_of_ir)
    folders: list[Subject] = []
    for name, description in families.descriptions().items():
        with tempfile.TemporaryDirectory() as folder:
            families.write_folder(Path(folder), description, 3 if name in SHARDED else 1)
            files = mutations.folder_files(Path(folder))
        folders.append(
            Subject("folder", files, mutations.mutate_folder, mutations.outcome_of_folder)
        )
    return [ir, *folders]


def failure(subject: Subject, files: Files) -> str | None:
    """Return the place of the failure, or None."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            subject.outcome(files, Path(folder))
        except Exception as error:
            inner = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} at {Path(inner.filename).name}:{inner.lineno}"
    return None


def minimised(subject: Subject, files: Files, place: str) -> Files:
    """Return the files with all changes reverted that the failure does not need."""
    for name in files:
        undamaged = subject.files.get(name)
        if undamaged is None:
            continue
        if failure(subject, files | {name: undamaged}) == place:
            files = files | {name: undamaged}
        elif name.endswith(".xml"):
            files = files | {name: _fewer_changes(subject, files, name, place)}
    return files


def _fewer_changes(subject: Subject, files: Files, name: str, place: str) -> bytes:
    """Return the text with all changed hunks reverted that the failure does not need."""
    old = subject.files[name].splitlines(keepends=True)
    new = files[name].splitlines(keepends=True)
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    kept = [change[0] != "equal" for change in changes]

    def text() -> bytes:
        parts = [
            new[c:d] if keep else old[a:b]
            for keep, (_, a, b, c, d) in zip(kept, changes, strict=True)
        ]
        return b"".join(line for part in parts for line in part)

    for number, changed in enumerate(kept):
        if changed:
            kept[number] = False
            kept[number] = failure(subject, files | {name: text()}) != place
    return text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("error")
    draw = random.Random(options.seed)
    end = time.monotonic() + options.minutes * 60
    ir, *folders = subjects()
    found: dict[str, str] = {}
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        while time.monotonic() < end:
            subject = ir if draw.random() < 0.8 else draw.choice(folders)
            files = subject.mutate(draw, subject.files)
            try:
                outcomes[subject.outcome(files, Path(scratch))] += 1
            except Exception:
                outcomes["CRASH"] += 1
                _keep(subject, files, found)
    sys.stdout.write(f"{dict(outcomes.most_common())}\n")
    return 1 if found else 0


def _keep(subject: Subject, files: Files, found: dict[str, str]) -> None:
    """Report and store a finding, unless its place was found before."""
    place = failure(subject, files)
    if place is None or place in found:
        return
    text = mutations.packed(minimised(subject, files, place))
    path = (
        mutations.CORPUS / f"{subject.name}_{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    )
    path.write_text(text)
    found[place] = path.name
    sys.stdout.write(f"{place}: {path.name}\n")


if __name__ == "__main__":
    sys.exit(main())
