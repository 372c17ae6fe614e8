"""OpenVINO's real NPU plugin, of the PyPI wheel, on the simulated device.

The plugin finds the driver as libze_loader.so.1; models are compiled by compiler_layer, which the
driver finds as its graph compiler. Outputs are compared with those of the CPU plugin.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from driver_layer.c_abi.build import compiler
from driver_layer.tools.npu_run import environment

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler"),
]

CASES = Path(__file__).with_name("real_device.py")
F16 = 1e-2


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Results of all cases, of one process."""
    done = subprocess.run(
        [sys.executable, CASES],
        env=environment(log_calls=True),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ERROR" not in done.stderr, done.stderr[-3000:]
    return json.loads(done.stdout) | {"calls": done.stderr}


def test_the_device_is_listed_with_its_properties(found) -> None:
    devices, properties, gops = found["devices"]
    assert "NPU" in devices
    assert properties["FULL_DEVICE_NAME"] == "Intel(R) AI Boost"
    assert properties["DEVICE_ARCHITECTURE"] == "4000"
    assert properties["DEVICE_UUID"] == "80d1d11eb73811eab3de0242ac130004"
    assert gops > 10_000


@pytest.mark.parametrize("case", ["inference", "exported", "host_tensors", "many_tensors"])
def test_outputs_are_those_of_the_cpu(found, case) -> None:
    assert found[case] < F16


def test_states_are_kept_reset_and_set(found) -> None:
    assert found["state"] == [1, 2, 3, 1, 6]


def test_eight_requests_run_at_a_time(found) -> None:
    inferences, worst = found["asynchronous"]
    assert inferences == 32
    assert worst < 0.2  # of outputs up to 200


def test_a_second_start_compiles_nothing(found) -> None:
    blobs, worst = found["cached"]
    assert blobs == 1
    assert worst < F16


def test_supported_layers_are_named(found) -> None:
    assert found["queried"]["product"] == "NPU"


def test_profiling_names_the_models_layers(found) -> None:
    names = {name for name, _, _ in found["profiled"]}
    assert "product" in names
    assert all(seconds >= 0 for _, _, seconds in found["profiled"])


def test_regions_of_larger_tensors_are_used_in_place(found) -> None:
    assert max(found["regions"]) < F16
    assert "pfnSetArgumentValue2(" in found["calls"], "the plugin must have bound the regions"


def test_one_thread_compiles_while_others_infer(found) -> None:
    models, inferred, worst = found["compiled_while_another_infers"]
    assert (models, inferred, worst) == (3, True, 0)


def test_a_refused_model_reaches_the_user_with_the_reason(found) -> None:
    assert "dynamic" in found["refused"]
    assert "reshape" in found["refused"]
