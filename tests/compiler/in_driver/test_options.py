"""Options of the plugin: applied, without effect, or rejected by name."""

from __future__ import annotations

import logging

import pytest

from compiler_layer.errors import CompilerUsageError
from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.in_driver.options import read_config
from driver_layer.abi.platforms import PLATFORMS

NPU = PLATFORMS["4000"]


def test_options_are_applied() -> None:
    config = read_config(
        {"NPU_PLATFORM": "4000", "NPU_TILES": "2", "NPU_MAX_TILES": "6", "PERF_COUNT": "YES"}, NPU
    )
    assert config.options.platform is NPU
    assert config.options.tiles == 2
    assert config.options.profiling
    assert config.separation is None


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({}, "f16"),
        ({"EXECUTION_MODE_HINT": "ACCURACY"}, "f32"),
        ({"EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_PRECISION_HINT": "f16"}, "f16"),
        ({"INFERENCE_PRECISION_HINT": "f32"}, "f32"),
        ({"INFERENCE_PRECISION_HINT": "i8"}, "f16"),
    ],
)
def test_precision_follows_the_hint_then_the_mode(config, precision) -> None:
    assert read_config(config, NPU).options.precision == precision


def test_the_compiler_chooses_tiles_that_are_not_set() -> None:
    assert read_config({"NPU_TILES": "-1", "NPU_MAX_TILES": "-1"}, NPU).options.tiles == 0


def test_weights_are_separated_by_calls() -> None:
    config = {"ENABLE_WEIGHTLESS": "YES", "WS_COMPILE_CALL_NUMBER": "1"}
    assert read_config(config, NPU).separation == 1
    assert read_config(config | {"ENABLE_WEIGHTLESS": "NO"}, NPU).separation is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("NPU_PLATFORM", "3720", "the device is an NPU 4000"),
        ("NPU_PLATFORM", "9999", "choose one of 3720"),
        ("NPU_TILES", "7", "there are 6 tiles"),
        ("NPU_TILES", "two", "not a number"),
        ("NPU_TILES", "9" * 5000, "not a number"),
        ("INFERENCE_PRECISION_HINT", "f64", "choose one of f32"),
        ("EXECUTION_MODE_HINT", "FAST", "choose one of PERFORMANCE"),
        ("PERF_COUNT", "maybe", "neither YES nor NO"),
        ("NPU_SEPARATE_WEIGHTS_VERSION", "ONE_SHOT", "choose one of ITERATIVE"),
        ("WS_COMPILE_CALL_NUMBER", "-1", "not a number"),
    ],
)
def test_impossible_values_are_rejected_by_name(name: str, value: str, reason: str) -> None:
    with pytest.raises(CompilerUsageError, match=reason) as raised:
        read_config({name: value}, NPU)
    assert str(raised.value).startswith(f"{name}={value[:40]}")


def test_names_of_strided_ports_are_separated_by_commas() -> None:
    config = read_config({"NPU_ENABLE_STRIDES_FOR": "x,layer/y,,x"}, NPU)
    assert config.strided == {"x", "layer/y"}


def test_unknown_options_are_ignored_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="compiler_layer"):
        read_config({"FOO": "1", "BAR": "a b", "NPU_TURBO": "YES", "NPU_TILES": "1"}, NPU)
    (line,) = caplog.messages
    assert line.endswith('FOO="1" BAR="a b" NPU_TURBO="YES"')


class TestSupport:
    def test_of_options(self) -> None:
        compiler = DriverCompiler()
        assert {"NPU_PLATFORM", "PERF_COUNT", "ENABLE_WEIGHTLESS"} < {*compiler.supported_options()}
        assert all(compiler.is_option_supported(n, None) for n in compiler.supported_options())

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("NPU_MODEL_SERIALIZER_VERSION", "NO_WEIGHTS_COPY"),
            ("NPU_MODEL_SERIALIZER_VERSION", None),
            ("NPU_QDQ_OPTIMIZATION_AGGRESSIVE", None),
            ("INFERENCE_PRECISION_HINT", "f64"),
            ("NPU_SEPARATE_WEIGHTS_VERSION", "ONE_SHOT"),
            ("", ""),
        ],
    )
    def test_not_of_these(self, option: str, value: str | None) -> None:
        assert not DriverCompiler().is_option_supported(option, value)
