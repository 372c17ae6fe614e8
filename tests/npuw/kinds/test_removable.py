"""Removing its folder removes a kind; all other models run as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.kinds.static.batches import scorer

import npuw_layer
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir

SCRIPT = """
import sys
from pathlib import Path

import numpy as np

import npuw_layer
from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.options import NAMES

folder, llama, *gone = sys.argv[1:]
folder = Path(folder)
assert Path(npuw_layer.__file__).is_relative_to(folder), npuw_layer.__file__
exact = {"INFERENCE_PRECISION_HINT": "f32"}

for name in gone:
    assert name not in NAMES
    try:
        Core().compile_model(llama, "NPU", {name: "YES"})
    except OptionError as error:
        assert f"unknown option '{name}'" in str(error), error
    else:
        raise AssertionError(f"{name} is an option")

given = dict(np.load(folder / "given.npz"))
static = Core().compile_model(folder / "static.xml", "NPU", exact)
scores = static(given)["scores"]

lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
request = Core().compile_model(llama, "NPU", exact | lengths).create_infer_request()
ids = np.load(folder / "prompt.npy")
logits = request.infer(
    {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.arange(ids.shape[1])[None],
    }
)["logits"]
np.savez(folder / "found.npz", scores=scores, logits=logits[0, -1])
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("kokoro", ["NPUW_KOKORO", "NPUW_KOKORO_BLOCK_SIZE"]),
        ("paged", ["NPUW_PA", "NPUW_PA_DEVICE"]),
        ("flux2", ["NPUW_FLUX2"]),
    ],
)
def test_removing_the_folder_removes_the_kind(
    kind: str,
    options: list[str],
    demo: Path,
    demo_goldens: Mapping[str, np.ndarray],
    tmp_path: Path,
) -> None:
    shutil.copytree(Path(npuw_layer.__file__).parent, tmp_path / "npuw_layer")
    shutil.rmtree(tmp_path / "npuw_layer" / "kinds" / kind)
    draw = np.random.default_rng(3)
    given = {"ids": draw.integers(0, 32, (2, 3)), "gain": draw.standard_normal((2, 3, 16), "f4")}
    np.savez(tmp_path / "given.npz", **given)
    np.save(tmp_path / "prompt.npy", demo_goldens["prompt_7"])
    write_ir(scorer(2), tmp_path / "static.xml")

    paths = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(demo), *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        check=True,
    )

    found = np.load(tmp_path / "found.npz")
    expected = Interpreter(scorer(2)).run(given)["scores"]
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["logits"], demo_goldens["hf_logits_7"], atol=1e-3)
