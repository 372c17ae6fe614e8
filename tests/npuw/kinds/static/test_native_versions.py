"""Native blobs of other origins: releases of OpenVINO, other versions of ours, unknown ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.npuw.kinds.static.native import (
    ANY,
    RAW,
    assert_same,
    described,
    of_others,
    payload,
    renamed_version,
)

from npuw_layer import Core
from npuw_layer.errors import (
    BlobError,
    BlobVersionError,
    DeviceError,
    NpuwError,
)
from npuw_layer.storage.native_blob.container import footer
from npuw_layer.storage.native_blob.metadata import Metadata


@pytest.mark.parametrize("minor", range(8))
def test_blobs_of_all_versions_are_imported(whole, minor: int) -> None:
    """Other releases of OpenVINO write blobs without a section of this layer."""
    elf = payload(whole.compiled.export_model())
    for behind in (b"", bytes(4096 - 13)):
        content = elf + Metadata(minor, (2025, 1, 0)).write() + behind + footer(len(elf))
        assert_same(Core().import_model(content, "NPU"), whole)


def test_foreign_metadata_must_fit_the_program(whole) -> None:
    elf = payload(whole.compiled.export_model())
    layouts = {"input_layouts": ("N", "NC"), "output_layouts": ("NC", "NC")}
    fitting = described(elf, **layouts, batch=1, compiler=9, compatibility=b"whatever")
    assert_same(Core().import_model(fitting, "NPU"), whole)
    with pytest.raises(BlobError, match="layouts of 1 inputs, but its program has 2"):
        Core().import_model(described(elf, input_layouts=("N",)), "NPU")
    with pytest.raises(BlobError, match=r"it has 1 init schedules, .* CACHE_MODE = OPTIMIZE_SPEED"):
        Core().import_model(described(elf, init_sizes=(1,)), "NPU")


def test_metadata_of_unknown_versions_is_rejected_unless_version_checks_are_disabled(whole) -> None:
    elf = payload(whole.compiled.export_model())
    for minor, major in ((8, 2), (0, 3)):
        content = renamed_version(described(elf), minor, major)
        with pytest.raises(
            BlobVersionError, match=f"metadata {major}.{minor}, installed is 2.0 to 2.7"
        ):
            Core().import_model(content, "NPU")
        assert_same(Core().import_model(content, "NPU", ANY), whole)


def test_blobs_of_our_other_versions_are_rejected_unless_version_checks_are_disabled(
    whole, stateful, monkeypatch, caplog
) -> None:
    contents = [each.compiled.export_model() for each in (whole, stateful)]
    current = {"npuw": "9.9", "device": "another"}
    monkeypatch.setattr(
        "npuw_layer.storage.model_blob.imported.own_version", lambda: {"npuw": "9.9"}
    )
    monkeypatch.setattr(
        "npuw_layer.storage.model_blob.imported.current_versions", lambda *_: current
    )
    for content, model in zip(contents, (whole, stateful), strict=True):
        with pytest.raises(BlobVersionError, match=r"9\.9; export it again, or set NPU_DISABLE"):
            Core().import_model(content, "NPU")
        assert_same(Core().import_model(content, "NPU", ANY), model)
        assert "other versions of npuw made the blob" in caplog.text


def test_a_program_for_another_platform_is_rejected_even_without_version_checks(whole) -> None:
    content = whole.compiled.export_model()
    with pytest.raises(BlobVersionError, match=r"NPU 4000 .* NPU 3720"):
        Core().import_model(content, "NPU", {"NPU_PLATFORM": "3720"})
    for options in (RAW, ANY):
        with pytest.raises(DeviceError, match="the device rejects its payload"):
            Core().import_model(
                described(payload(content)), "NPU", options | {"NPU_PLATFORM": "3720"}
            )


def test_damage_that_no_digest_detects_gives_typed_errors_or_results(whole) -> None:
    """Blobs of other origins have no digests: the driver must survive damage."""
    draw = np.random.default_rng(7)
    elf = of_others(payload(whole.compiled.export_model()))
    assert_same(Core().import_model(described(elf), "NPU"), whole)
    outcomes: set[str] = set()
    for _ in range(60):
        damaged = bytearray(described(elf))
        at = int(draw.integers(0, 20_000))
        damaged[at : at + 4] = draw.bytes(4)
        try:
            Core().import_model(bytes(damaged), "NPU").create_infer_request()
        except NpuwError as error:
            outcomes.add(type(error).__name__)
        else:
            outcomes.add("model")
    assert {"DeviceError", "model"} <= outcomes


@pytest.mark.parametrize("without", [{}, ANY])
def test_without_version_checks_a_bare_payload_is_imported(whole, without) -> None:
    """OpenVINO, too, then takes the complete file for the payload."""
    elf = payload(whole.compiled.export_model())
    if without:
        assert_same(Core().import_model(elf, "NPU", without), whole)
        return
    with pytest.raises(BlobError, match="it does not end with"):
        Core().import_model(elf, "NPU", without)


@pytest.mark.parametrize("content", [b"", b"x", b"\x7fELF", b"OVNPU", b"\x7fELF" + bytes(200)])
@pytest.mark.parametrize("options", [{}, RAW, ANY])
def test_truncated_or_invalid_files_are_rejected(content: bytes, options) -> None:
    with pytest.raises((BlobError, DeviceError)):
        Core().import_model(content, "NPU", options)
