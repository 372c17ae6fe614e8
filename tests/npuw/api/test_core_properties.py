"""Default options of a Core, and facts about its device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino
import pytest

from npuw_layer import Core
from npuw_layer.errors import NpuwUsageError, OptionError

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 128}


def test_models_have_the_defaults_of_their_core_unless_overridden(tiny: Path) -> None:
    core = Core()
    core.set_property("NPU", LENGTHS)
    core.set_property({"PERF_COUNT": "YES"})
    core.set_property(("NPUW_LLM_MIN_RESPONSE_LEN", 256))
    core.set_property("NPU", ("NPU_TILES", 1))
    first = core.compile_model(tiny)
    second = core.compile_model(tiny, "NPU", {"NPUW_LLM_MIN_RESPONSE_LEN": 64, "NPU_TILES": 2})
    for model, response, tiles in ((first, 256, 1), (second, 64, 2)):
        assert model.get_property("NPUW_LLM_MAX_PROMPT_LEN") == 128
        assert model.get_property("NPUW_LLM_MIN_RESPONSE_LEN") == response
        assert model.get_property("NPU_TILES") == tiles
        assert model.get_property("PERF_COUNT") is True
    core.set_property("NPU", {"PERF_COUNT": "NO"})
    assert first.get_property("PERF_COUNT") is True, "the model was compiled before"
    assert Core().get_property("NPU", "NPUW_LLM_MAX_PROMPT_LEN") == 1024, "Cores share nothing"


def test_all_options_are_read_as_set_or_as_default() -> None:
    core = Core()
    assert core.get_property("NPU", "NPUW_DEVICES") == "NPU"
    core.set_property("NPU", {"NPUW_DEVICES": "NPU,CPU", "PERF_COUNT": "YES"})
    assert core.get_property("NPU", "NPUW_DEVICES") == "NPU,CPU"
    assert core.get_property("PERF_COUNT") is True
    for name in core.get_property("NPU", "SUPPORTED_PROPERTIES"):
        core.get_property("NPU", name)


def test_one_wrong_option_sets_none() -> None:
    core = Core()
    for wrong, text in (
        ({"PERF_COUNT": "YES", "NPU_TILE": 1}, "did you mean NPU_TILES"),
        ({"PERF_COUNT": "YES", "NPU_TILES": "many"}, "NPU_TILES = 'many'"),
        ({"PERF_COUNT": "YES", "FULL_DEVICE_NAME": "mine"}, "FULL_DEVICE_NAME is read-only"),
        (("PERF_COUNT", "YES", 1), "its name and its value"),
        (["PERF_COUNT"], "a dict of options"),
    ):
        with pytest.raises(OptionError, match=text):
            core.set_property("NPU", wrong)
    assert core.get_property("NPU", "PERF_COUNT") is False
    with pytest.raises(OptionError, match="this runtime has only NPU"):
        core.set_property("GPU", {"PERF_COUNT": "YES"})
    with pytest.raises(
        OptionError, match="unknown property 'PERF_COUNTS'; did you mean PERF_COUNT"
    ):
        core.get_property("NPU", "PERF_COUNTS")
    with pytest.raises(OptionError, match="this runtime has only NPU"):
        core.get_property("CPU", "PERF_COUNT")


def test_the_device_has_read_only_properties() -> None:
    core = Core()
    said = {name: core.get_property("NPU", name) for name in FACTS}
    assert said["AVAILABLE_DEVICES"] == ["4000"]
    assert said["DEVICE_ARCHITECTURE"] == "4000"
    assert said["FULL_DEVICE_NAME"] == "Intel(R) AI Boost"
    assert said["NPU_MAX_TILES"] == 6
    assert said["NPU_DEVICE_ALLOC_MEM_SIZE"] == 0 < said["NPU_DEVICE_TOTAL_MEM_SIZE"]
    core.set_property("NPU", {"NPU_PLATFORM": "NPU3720"})
    assert core.get_property("NPU", "AVAILABLE_DEVICES") == ["3720"]
    assert core.get_property("NPU", "NPU_MAX_TILES") == 2


FACTS = (
    "AVAILABLE_DEVICES",
    "DEVICE_ARCHITECTURE",
    "DEVICE_TYPE",
    "DEVICE_UUID",
    "EXECUTION_DEVICES",
    "FULL_DEVICE_NAME",
    "NPU_COMPILER_VERSION",
    "NPU_DEVICE_ALLOC_MEM_SIZE",
    "NPU_DEVICE_TOTAL_MEM_SIZE",
    "NPU_DRIVER_VERSION",
    "NPU_MAX_TILES",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "OPTIMIZATION_CAPABILITIES",
)


def test_memory_of_models_is_counted(tiny: Path) -> None:
    core = Core()
    model = core.compile_model(tiny, "NPU", LENGTHS)
    request = model.create_infer_request()
    assert core.get_property("NPU", "NPU_DEVICE_ALLOC_MEM_SIZE") > 0
    del request, model


def test_names_and_values_are_those_of_openvino() -> None:
    """Compare with the real plugin, which has some properties without a device, too."""
    real, core = openvino.Core(), Core()
    names = dict(real.get_property("NPU", "SUPPORTED_PROPERTIES"))
    ours = core.get_property("NPU", "SUPPORTED_PROPERTIES")
    # The host's bus and rated speed are not simulated; a Core has one device.
    assert names.keys() - ours.keys() == NOT_HERE
    alike = names.keys() & ours.keys()
    assert {name for name in alike if ours[name] != names[name]} == {
        "CACHE_ENCRYPTION_CALLBACKS",  # can be read back, as all options can
        "MODEL_PTR",  # can be given as an option
    }
    for name in ("OPTIMIZATION_CAPABILITIES", "OPTIMAL_NUMBER_OF_INFER_REQUESTS"):
        assert core.get_property("NPU", name) == real.get_property("NPU", name)


NOT_HERE = {
    "DEVICE_GOPS",
    "DEVICE_ID",
    "DEVICE_PCI_INFO",
    "RANGE_FOR_ASYNC_INFER_REQUESTS",
    "RANGE_FOR_STREAMS",
}


def test_an_imported_model_uses_run_time_defaults_and_its_own_other_options(tiny: Path) -> None:
    exporter = Core().compile_model(tiny, "NPU", LENGTHS | {"CACHE_MODE": "OPTIMIZE_SPEED"})
    core = Core()
    core.set_property("NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 512, "PERF_COUNT": "YES"})
    imported = core.import_model(exporter.export_model())
    assert imported.get_property("NPUW_LLM_MAX_PROMPT_LEN") == 128
    assert imported.get_property("PERF_COUNT") is True
    with pytest.raises(OptionError, match="NPUW_LLM_MAX_PROMPT_LEN"):
        core.import_model(exporter.export_model(), "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 512})


def test_a_remote_context_is_that_of_the_platform_that_was_set() -> None:
    core = Core()
    core.set_property("NPU", {"NPU_PLATFORM": "3720"})
    context = core.get_default_context("NPU").get_params()["L0_CONTEXT"]
    assert context is core.create_context("NPU", {}).get_params()["L0_CONTEXT"]
    other = core.create_context("NPU", {"NPU_PLATFORM": "4000"}).get_params()["L0_CONTEXT"]
    assert other is not context


def test_a_default_option_applies_to_a_model(tiny: Path) -> None:
    core = Core()
    core.set_property("NPU", LENGTHS | {"NPU_RUN_INFERENCES_SEQUENTIALLY": "YES"})
    with pytest.raises(NpuwUsageError, match="is only for static models of the NPU itself"):
        core.compile_model(tiny)


def test_logits_do_not_depend_on_the_source_of_an_option(tiny: Path) -> None:
    core = Core()
    core.set_property("NPU", LENGTHS)
    ids = np.arange(5)[None]
    found = [
        model.create_infer_request().infer(
            {
                "input_ids": ids,
                "attention_mask": np.ones((1, 5), np.int64),
                "position_ids": ids,
                "beam_idx": np.zeros(1, np.int32),
            }
        )["logits"]
        for model in (core.compile_model(tiny), Core().compile_model(tiny, "NPU", LENGTHS))
    ]
    assert np.array_equal(*found)
