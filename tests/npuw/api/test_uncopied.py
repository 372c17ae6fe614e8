"""Objects that hold device memory are rejected by copy and pickle with a typed error."""

from __future__ import annotations

import copy
import pickle

import pytest

from driver_layer import ze
from driver_layer.errors import DriverError
from npuw_layer import Core
from npuw_layer.errors import NpuwError

ACTS = pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps])


@pytest.mark.matrix
@ACTS
def test_a_core_its_models_and_their_requests_are_not_copied(tiny, talks, act) -> None:
    request = talks().request
    compiled = Core().compile_model(tiny, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64})
    for one in (Core(), compiled, request, Core().get_default_context("NPU")):
        with pytest.raises(NpuwError, match=f"{type(one).__name__}: objects with device memory"):
            act(one)


@ACTS
def test_a_handle_of_the_driver_is_not_copied(act) -> None:
    (driver,) = ze.zeInitDrivers(0)
    for one in (driver, ze.zeDeviceGet(driver)[0], ze.zeContextCreate(driver)):
        with pytest.raises(DriverError, match="a handle cannot be copied or pickled"):
            act(one)
