"""Removal of a trait's folder: the rest of the package works as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.conftest import ask, write_tiny

import npuw_layer
from npuw_layer import Core
from npuw_layer.tensors.traits import trait_packages

SOURCE = Path(npuw_layer.__file__).parent
FEW_STAGES = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_HINT": "STATIC",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
TRAITS = [name.rpartition(".")[2] for name in trait_packages()]

GENERATE = """
import sys
import numpy as np
from npuw_layer import Core

folder, out = sys.argv[1:]
options = dict(zip(sys.stdin.readline().split(), sys.stdin.readline().split()))
request = Core().compile_model(folder, "NPU", options).create_infer_request()
found, past = [], 0
for ids in (range(20), [5], [6]):
    count = len(ids)
    logits = request.infer({
        "input_ids": np.array([list(ids)]),
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
    })["logits"]
    found.append(logits[0, -1].copy())
    past += count
np.save(out, found)
"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Llama of one layer."""
    return write_tiny(tmp_path_factory.mktemp("llama"), 1)


@pytest.fixture(scope="module")
def expected(llama: Path) -> np.ndarray:
    """Return logits of a prompt and of two tokens after it, with all traits installed."""
    request = Core().compile_model(llama, "NPU", FEW_STAGES).create_infer_request()
    told = [(range(20), 0), ([5], 20), ([6], 21)]
    return np.array([ask(request, np.array([list(ids)]), past) for ids, past in told])


@pytest.mark.parametrize("trait", TRAITS)
def test_a_llama_is_the_same_without_a_trait(llama, tmp_path, expected, trait) -> None:
    copy = tmp_path / "npuw_layer"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "traits" / trait)
    paths = [str(tmp_path), *filter(None, sys.path)]
    run = subprocess.run(
        [sys.executable, "-c", GENERATE, llama, tmp_path / "logits.npy"],
        input=f"{' '.join(FEW_STAGES)}\n{' '.join(map(str, FEW_STAGES.values()))}\n",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert np.array_equal(np.load(tmp_path / "logits.npy"), expected)
