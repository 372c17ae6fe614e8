"""NPUW_SUBMODEL_DEVICE: the submodels of an entry; test_devices tests where they run."""

from __future__ import annotations

import pytest

from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.pins import parse_pins

SUBMODELS = ["prefill_64", "generate_96", "generate_128", "lm_head"]


def test_pins_are_read_by_index_name_and_kind() -> None:
    devices = ["NPU", "CPU"]
    assert parse_pins("", SUBMODELS, devices) == {}
    assert parse_pins(" 0 : CPU , last:NPU,", SUBMODELS, devices) == {
        "prefill_64": "CPU",
        "lm_head": "NPU",
    }
    assert parse_pins("generate:CPU", SUBMODELS, devices) == {
        "generate_96": "CPU",
        "generate_128": "CPU",
    }


def test_a_kind_pins_all_its_models_and_a_name_pins_one() -> None:
    several = {
        "prefill": ["prefill_16", "prefill_16_after_48", "prefill_64"],
        "generate": ["generate_128"],
        "head": ["lm_head", "lm_head_8"],
    }
    submodels = [name for names in several.values() for name in names]
    for kind, names in several.items():
        assert parse_pins(f"{kind}:CPU", submodels, ["CPU"]) == dict.fromkeys(names, "CPU")
    for name in submodels:
        assert parse_pins(f"{name}:CPU", submodels, ["CPU"]) == {name: "CPU"}


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ("0:TPU", "'TPU' is not in NPUW_DEVICES = NPU,CPU; add it there"),
        (
            "4:CPU",
            "no submodel '4'; choose from "
            "0 prefill_64, 1 generate_96, 2 generate_128, 3 lm_head, or prefill, generate, head",
        ),
        ("-1:CPU", "no submodel '-1'"),
        ("lm:CPU", "no submodel 'lm'"),
        ("prefill_64_after:CPU", "no submodel 'prefill_64_after'"),
        ("²:CPU", "no submodel '²'"),
    ],
)
def test_the_error_of_a_wrong_pin_lists_the_submodels(pins: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_pins(pins, SUBMODELS, ["NPU", "CPU"])
    assert message in str(caught.value)
