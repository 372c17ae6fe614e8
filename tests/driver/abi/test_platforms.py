"""Platform files: their numbers, errors in a file, and user-defined platforms."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi import platforms
from driver_layer.abi.metadata import ArchKind
from driver_layer.abi.notes import Version
from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORMS, Platform, load_platform
from driver_layer.abi.platforms.platform import parse_platform
from driver_layer.errors import DriverInputError, PlatformError

FIELDS = [field.name for field in dataclasses.fields(Platform)]


def text_of(name: str) -> str:
    return files(platforms).joinpath(f"{name}.toml").read_text()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the default platform's file."""
    file = tmp_path / "mine.toml"
    file.write_text(text_of("4000"))
    return file


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_three_platforms_have_the_numbers_of_the_reference() -> None:
    assert list(PLATFORMS) == ["3720", "4000", "5010"]
    assert DEFAULT_PLATFORM in PLATFORMS
    by_key = {
        "arch": [ArchKind.VPUX37XX, ArchKind.VPUX40XX, ArchKind.NPU5010],
        "device_id": [0x7D1D, 0x643E, 0xB03E],
        "tiles": [2, 6, 3],
        "macs_per_cycle": [2048, 2048, 4096],
        "dpu_mhz": [1300, 1700, 1950],
        "cmx_mhz": [975, 971, 1114],
        "workspace_bytes": [1936 << 10, 1439 << 10, 1439 << 10],
        "dma_bytes_per_cycle": [32, 64, 64],
        "ddr_mb_per_s": [27000, 136000, 136000],
        "ddr_latency_ns": [956, 300, 300],
        "barriers_per_tile": [32, 16, 16],
        "timer_khz": [38400, 19200, 19200],
        "loader_abi": [Version(1, 3, 6), Version(1, 2, 7), Version(2, 2, 2)],
        "mapped_inference": [Version(7, 0, 5), Version(11, 4, 10), Version(11, 4, 10)],
        "firmware_inference": [Version(7, 0, 5), Version(11, 13, 0), Version(11, 13, 0)],
        "runtime_symbols": [8, 0, 0],
    }
    for key, values in by_key.items():
        assert [getattr(each, key) for each in PLATFORMS.values()] == values, key


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_file_has_the_name_of_its_platform(name: str) -> None:
    assert parse_platform(text_of(name).encode(), name) == PLATFORMS[name]


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_number_has_a_source_tag(name: str) -> None:
    text = text_of(name)
    tagged = re.findall(r"^(\w+) = \S+ +# [VCDEA](?:, [VCDEA])*(?:  \S.*)?$", text, re.MULTILINE)
    assert ["name", *tagged] == re.findall(r"^(\w+) =", text, re.MULTILINE)


def test_a_copy_with_another_clock_is_another_platform(copy: Path) -> None:
    change(copy, "dpu_mhz = 1700", "dpu_mhz = 1850")
    assert load_platform(copy) == dataclasses.replace(PLATFORMS["4000"], dpu_mhz=1850)
    assert load_platform(str(copy)).dpu_mhz == 1850


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=r"nowhere\.toml: No such file"):
        load_platform(tmp_path / "nowhere.toml")
    with pytest.raises(PlatformError, match="null byte"):
        load_platform("a\0b")


def test_a_pipe_is_rejected_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(PlatformError, match=r"pipe\.toml: not a regular file"):
        load_platform(tmp_path / "pipe.toml")


@pytest.mark.parametrize("content", [b"tiles = ", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(PlatformError, match=r"bad\.toml: not a TOML file"):
        load_platform(tmp_path / "bad.toml")


@pytest.mark.parametrize("key", FIELDS)
def test_a_missing_key_is_named(copy: Path, key: str) -> None:
    copy.write_text(re.sub(rf"^{key} = .*$", "", copy.read_text(), flags=re.MULTILINE))
    with pytest.raises(PlatformError, match=rf"mine\.toml: {key}: missing") as caught:
        load_platform(copy)
    assert (caught.value.file, caught.value.key) == (str(copy), key)
    assert isinstance(caught.value, DriverInputError)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dpu_mhz =", "dpu_ghz =", "dpu_ghz: unknown key; the keys are name, arch"),
        ("dpu_mhz = 1700", 'dpu_mhz = "1700"', "dpu_mhz: '1700' is not of type int"),
        ("dpu_mhz = 1700", "dpu_mhz = 1700.5", r"dpu_mhz: 1700\.5 is not of type int"),
        ("dpu_mhz = 1700", "dpu_mhz = true", "dpu_mhz: True is not of type int"),
        ("dpu_mhz = 1700", "dpu_mhz = 0", "dpu_mhz: 0 is not positive"),
        ("dpu_mhz = 1700", "dpu_mhz = -1", "dpu_mhz: -1 is not positive"),
        ("ddr_latency_ns = 300", "ddr_latency_ns = -1", "ddr_latency_ns: -1 is not positive"),
        ('name = "4000"', "name = 4000", "name: 4000 is not of type str"),
        ('arch = "VPUX40XX"', 'arch = "VPUX99XX"', "arch: 'VPUX99XX' is not one of UNKNOWN"),
        ('arch = "VPUX40XX"', "arch = [4]", r"arch: \[4\] is not one of UNKNOWN"),
        ('"1.2.7"', '"1.2"', "loader_abi: '1.2' is not a version, e.g. 1.2.7"),
        ('"1.2.7"', '"0.2.7"', r"loader_abi: '0\.2\.7' is not a version"),
        ('"1.2.7"', "1.2", r"loader_abi: 1\.2 is not a version"),
        ("= 0.958589", '= "most"', "ddr_cmx_efficiency: 'most' is not of type float"),
        ("= 0.958589", "= nan", "ddr_cmx_efficiency: nan is not positive"),
        ("= 0.958589", "= 1.5", r"ddr_cmx_efficiency: 1\.5 > 1"),
        ("tiles = 6 ", "tiles = 7 ", "tiles: 7; a blob can address 6"),
        ("dma_ports = 2", "dma_ports = 9", "dma_ports: 9; a blob has 6"),
        ("= 2_097_152", "= 2_097_153", "cmx_bytes: more than a tile's address range holds"),
        ("= 1_473_536", "= 4_000_000", "workspace_bytes: more than cmx_bytes"),
        ("barriers_per_tile = 16", "barriers_per_tile = 32", "barriers_per_tile: 32 for each of 6"),
    ],
)
def test_a_wrong_value_is_named(copy: Path, old: str, new: str, message: str) -> None:
    change(copy, old, new)
    with pytest.raises(PlatformError, match=rf"mine\.toml: {message}"):
        load_platform(copy)


@pytest.mark.parametrize("key", ["ddr_latency_ns", "ddr_post_cycles", "runtime_symbols"])
def test_latencies_and_counts_may_be_zero(copy: Path, key: str) -> None:
    copy.write_text(re.sub(rf"^{key} = .*$", f"{key} = 0", copy.read_text(), flags=re.MULTILINE))
    assert getattr(load_platform(copy), key) == 0


def test_an_efficiency_may_be_written_as_a_whole_number(copy: Path) -> None:
    change(copy, "= 0.958589", "= 1")
    assert load_platform(copy).ddr_cmx_efficiency == 1.0


@given(st.sampled_from(FIELDS), st.one_of(st.integers(), st.floats(), st.booleans()))
def test_any_number_for_any_key_results_in_a_platform_or_the_typed_error(
    key: str, value: float | bool
) -> None:
    written = str(value).lower() if isinstance(value, bool) else repr(value)
    text = re.sub(rf"^{key} = .*$", f"{key} = {written}", text_of("4000"), flags=re.MULTILINE)
    with contextlib.suppress(PlatformError):
        assert getattr(parse_platform(text.encode(), "file"), key) == value
