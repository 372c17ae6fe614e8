"""OpenVINO's option values: each has its meaning here, or is rejected with the supported ones."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.npuw.conftest import SMALL

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options
from npuw_layer.storage.cache.key import partition_choices


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    own = logging.getLogger("npuw_layer")
    before = own.level
    yield own
    own.setLevel(before)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *[("METEORLAKE", "3720"), ("LUNARLAKE", "4000"), ("PANTHERLAKE", "5010")],
        *[("lunarlake", "4000"), ("NPU3720", "3720"), ("AUTO_DETECT", "4000"), ("5010", "5010")],
    ],
)
def test_a_platform_has_the_name_of_its_product_or_its_number(name: str, number: str) -> None:
    options = parse_options({"NPU_PLATFORM": name})
    assert options.platform == number
    assert options.compiler_config()["NPU_PLATFORM"] == number


@pytest.mark.parametrize("name", ["9999", "", "ARROWLAKE", "NPU"])
def test_an_unknown_platform_is_rejected_with_the_known_ones(name: str) -> None:
    with pytest.raises(OptionError, match="use 3720, 4000, 5010, METEORLAKE, LUNARLAKE"):
        parse_options({"NPU_PLATFORM": name})


def test_a_model_compiles_for_a_product(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | {"NPU_PLATFORM": "METEORLAKE"})
    assert compiled.get_property("NPU_PLATFORM") == "3720"


def test_fewer_than_ten_submodels_are_ten() -> None:
    just = {"NPUW_ONLINE_PIPELINE": "JUST"}
    few, ten = (parse_options(just | {"NPUW_ONLINE_MIN_SIZE": n}) for n in (3, 10))
    assert few.online_min_size == 3
    assert partition_choices(few) == partition_choices(ten)
    assert partition_choices(parse_options(just | {"NPUW_ONLINE_MIN_SIZE": 11})) != (
        partition_choices(ten)
    )


def test_the_device_of_a_bank_has_no_effect() -> None:
    for device in ("", "CPU", "NPU"):
        assert not parse_options({"NPUW_WEIGHTS_BANK_ALLOC": device}).shares_weights
    assert parse_options({"NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}).shares_weights


def test_models_for_steps_of_many_tokens_span_more_positions() -> None:
    many = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 1024, "NPUW_LLM_MAX_PROMPT_LEN": 4096}
    stages = plan(parse_options(many)).generate
    assert [(stage.tokens, stage.past) for stage in stages] == [
        *[(1024, 1024), (1024, 3072), (1024, 3200)],
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64},
        {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "64,1152"},
        {"NPUW_LLM_GENERATE_PYRAMID": "NO", "NPUW_LLM_MAX_PROMPT_LEN": 64},
    ],
)
def test_a_step_of_more_tokens_than_a_model_spans_is_rejected(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="NPUW_LLM_MAX_GENERATION_TOKEN_LEN = 512: a generate"):
        plan(parse_options(options | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 512}))


def test_the_log_level_applies_to_this_layer(tiny: Path, logger: logging.Logger) -> None:
    Core().compile_model(tiny, "NPU", SMALL | {"LOG_LEVEL": "LOG_ERROR"})
    assert logger.level == logging.ERROR
    Core().compile_model(tiny, "NPU", SMALL)
    assert logger.level == logging.ERROR, "an unset level changes nothing"
    Core().compile_model(tiny, "NPU", SMALL | {"LOG_LEVEL": "LOG_NONE"})
    assert not logger.isEnabledFor(logging.CRITICAL)
    with pytest.raises(OptionError, match="must be empty, LOG_NONE, LOG_ERROR"):
        parse_options({"LOG_LEVEL": "LOUD"})


_SPEAKS = """
import logging
from npuw_layer.options import parse_options
{configured}
parse_options({{"LOG_LEVEL": "LOG_INFO"}}).set_log_level()
parse_options({{"LOG_LEVEL": "LOG_INFO"}}).set_log_level()
logging.getLogger("npuw_layer.somewhere").info("a word")
logging.getLogger("npuw_layer.somewhere").debug("another")
"""


@pytest.mark.parametrize("configured", ["", "logging.basicConfig()"], ids=["plain", "configured"])
def test_a_message_is_logged_once_with_or_without_configured_logging(configured: str) -> None:
    script = _SPEAKS.format(configured=configured)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("a word") == 1
    assert "another" not in done.stderr
