"""Native engines generate the reference engine's texts, at every instruction-set level."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from driver_layer.engines.native.jit.host import Isa, native_isa

DEMO = Path(__file__).parents[2] / "models" / "demo"

PROGRAM = """
import json, sys
from genai_layer import GenerationConfig, LLMPipeline
lengths = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
pipe = LLMPipeline(sys.argv[1], "NPU", **lengths, **json.loads(sys.argv[2]))
config = GenerationConfig(max_new_tokens=24)
print(json.dumps([pipe.generate(text, config) for text in ("What is an NPU?", "Name a bird.")]))
"""


def answers(environment: dict[str, str], **properties: str) -> list[str]:
    """Return the demo model's texts from a process with other environment variables."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(DEMO), json.dumps(properties)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return answers({"NPU_ENGINE": "reference"})


@pytest.mark.long
@pytest.mark.parametrize("isa", [isa for isa in Isa if isa <= native_isa()])
def test_every_instruction_set_generates_the_same_texts(isa: Isa, expected: list[str]) -> None:
    assert answers({"NPU_ENGINE": "native", "NPU_NATIVE_ISA": isa.name.lower()}) == expected


@pytest.mark.long
@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_number_of_threads_does_not_change_the_texts(threads: str, expected: list[str]) -> None:
    assert answers({"NPU_ENGINE": "native", "NPU_ENGINE_THREADS": threads}) == expected


def explanations(engine: str, cache: Path) -> dict[str, str]:
    """Return the output of ``npuc explain`` for the demo model's blobs, by name."""
    environment = {"NPU_ENGINE": engine}
    answers(environment, CACHE_DIR=str(cache))
    scripts = Path(sys.executable).parent
    for entry in cache.glob("*.blob"):
        extract = [scripts / "npuw", "extract", entry, cache / "programs"]
        subprocess.run(extract, capture_output=True, check=True)
    command = [str(scripts / "npuc"), "explain", "--each"]
    return {
        blob.name: subprocess.run(
            [*command, str(blob)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for blob in (cache / "programs").glob("*.blob")
    }


@pytest.mark.long
def test_simulated_time_does_not_depend_on_the_engine(tmp_path) -> None:
    native, reference = (explanations(one, tmp_path / one) for one in ("native", "reference"))
    assert len(native) >= 2, "prefill and generate"
    assert all(" µs" in text for text in native.values())
    assert native == reference


@pytest.mark.long
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_other_precisions_generate_the_same_texts(precision: str) -> None:
    properties = {"INFERENCE_PRECISION_HINT": precision}
    native, reference = (
        answers({"NPU_ENGINE": engine}, **properties) for engine in ("native", "reference")
    )
    assert native == reference


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NPU_ENGINE", "quantum", "unknown engine; use native or reference"),
        ("NPU_NATIVE_ISA", "mmx", "unknown level; use one of scalar, portable, avx2, avx512"),
        ("NPU_ENGINE_THREADS", "many", "not a positive number; correct or unset it"),
    ],
)
def test_an_invalid_value_is_one_line_that_lists_the_valid_ones(
    variable: str, value: str, message: str
) -> None:
    command = [Path(sys.executable).with_name("npu-chat"), str(DEMO), "--prompt", "Hi"]
    environment = {**os.environ, variable: value}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


FORK = """
import os, sys
from genai_layer import GenerationConfig, LLMPipeline
pipe = LLMPipeline(sys.argv[1], "NPU", MAX_PROMPT_LEN=64, MIN_RESPONSE_LEN=64)
config = GenerationConfig(max_new_tokens=8)
parent = pipe.generate("What is an NPU?", config)
child = os.fork()
if not child:
    os._exit(0 if pipe.generate("What is an NPU?", config) == parent else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.matrix
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_forked_process_continues_with_its_own_threads(engine: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(DEMO)],
        env={**os.environ, "NPU_ENGINE": engine},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == "0"
