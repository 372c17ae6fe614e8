"""CACHE_ENCRYPTION_CALLBACKS, and other options on the readers and sources of blobs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from driver_layer.abi import platforms
from npuw_layer import Core
from npuw_layer.errors import BlobError, BlobVersionError, OptionError
from npuw_layer.storage.encryption import decrypt, encrypt

OPTION = "CACHE_ENCRYPTION_CALLBACKS"
SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


def flip(content: bytes) -> bytes:
    """Apply a cipher that is its own inverse."""
    return (np.frombuffer(content, np.uint8) ^ 0x5A).tobytes()[::-1]


BOTH = (flip, flip)


def fail(_: bytes) -> bytes:
    raise KeyError("no key")


def no_bytes(_: bytes) -> bytes:
    return "text"  # type: ignore[return-value]


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_an_encrypted_blob_has_the_same_logits_and_no_plain_content(
    exporters, tiny, speak, tmp_path, mode: str
) -> None:
    path = tmp_path / "x.blob"
    config = SMALL | {OPTION: BOTH, "CACHE_MODE": mode, "BLOB_PATH": str(path)}
    exported = Core().compile_model(tiny, "NPU", config | {"EXPORT_BLOB": "YES"})
    content = path.read_bytes()
    for plain in (b"ELF", b"NPUW_LLM", b"vpux_ow", b"prefill"):
        assert plain not in content
    imported = Core().import_model(path, "NPU", {OPTION: BOTH, "WEIGHTS_PATH": tiny})
    assert np.array_equal(speak(imported), speak(exported))
    assert imported.get_property(OPTION) == BOTH
    assert imported.export_model() == content


def test_an_unencrypted_blob_can_be_imported_with_callbacks(blobs) -> None:
    Core().import_model(blobs["OPTIMIZE_SPEED"], "NPU", {OPTION: BOTH})


@pytest.fixture
def secret(blobs) -> bytes:
    return encrypt(blobs["OPTIMIZE_SPEED"].read_bytes(), BOTH)


def test_without_callbacks_an_encrypted_blob_has_its_own_message(secret) -> None:
    with pytest.raises(BlobError, match=f"it is encrypted; set {OPTION} to the functions"):
        Core().import_model(secret)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (fail, "decrypting failed: KeyError: 'no key'"),
        (no_bytes, "decrypting failed: it returned str, not bytes"),
        (lambda _: b"", "decrypting returned no bytes"),
        (lambda content: content, "it begins with"),
    ],
)
def test_the_error_of_a_failed_decryption_has_the_reason(secret, function, problem: str) -> None:
    with pytest.raises(BlobError, match=problem):
        Core().import_model(secret, "NPU", {OPTION: (flip, function)})


def test_a_damaged_file_is_not_decrypted() -> None:
    """Changed, missing and added bytes are detected before decryption."""
    whole = encrypt(b"content", BOTH)
    assert decrypt(memoryview(whole), BOTH) == b"content"
    for at in range(12, len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        for content in (damaged, whole[:at], whole + b"x"):
            with pytest.raises(BlobError):
                decrypt(memoryview(content), (fail, fail))
    with pytest.raises(BlobVersionError, match=r"encryption 1\.1"):
        decrypt(memoryview(whole[:14] + b"\1" + whole[15:]), BOTH)


@pytest.mark.matrix
@pytest.mark.parametrize("function", [fail, no_bytes])
def test_a_model_that_cannot_be_encrypted_is_not_exported(tiny, tmp_path, function) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | {OPTION: (function, flip)})
    with pytest.raises(OptionError, match=f"{OPTION}: encrypting failed"):
        compiled.export_model(tmp_path / "x.blob")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [(flip,), (flip, flip, flip), "flip,flip", flip, (1, 2)])
def test_callbacks_are_two_functions(tiny, value: object) -> None:
    with pytest.raises(OptionError, match=f"{OPTION} = .*: must be two functions"):
        Core().compile_model(tiny, "NPU", {OPTION: value})


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.blob")}


def test_entries_are_encrypted_and_others_are_replaced(tiny, speak, tmp_path, caplog) -> None:
    clear = SMALL | {"CACHE_DIR": str(tmp_path), "CACHE_MODE": "OPTIMIZE_SPEED"}
    secret = clear | {OPTION: BOTH}
    expected = speak(Core().compile_model(tiny, "NPU", clear))
    before = entries(tmp_path)
    for cached in (False, True):
        caplog.clear()
        compiled = Core().compile_model(tiny, "NPU", secret)
        assert compiled.get_property("LOADED_FROM_CACHE") is cached
        assert (f"it is not encrypted, but {OPTION} is set" in caplog.text) is not cached
        assert np.array_equal(speak(compiled), expected)
    after = entries(tmp_path)
    assert after.keys() == before.keys()
    assert not any(b"ELF" in content or b"vpux" in content for content in after.values())
    Core().compile_model(tiny, "NPU", clear)
    assert f"it is encrypted; set {OPTION}" in caplog.text
    assert entries(tmp_path) == before


def test_entries_that_cannot_be_encrypted_are_not_cached(tiny, tmp_path, caplog) -> None:
    config = SMALL | {"CACHE_DIR": str(tmp_path), OPTION: (fail, flip)}
    Core().compile_model(tiny, "NPU", config)
    assert "encrypting failed: KeyError: 'no key'; the program is not cached" in caplog.text
    assert not entries(tmp_path)


def test_blobs_of_untrusted_sources_are_not_read(blobs, tiny) -> None:
    config = {"NPU_UNTRUSTED_SOURCE": "YES"}
    for blob in (blobs["OPTIMIZE_SPEED"], b"anything"):
        with pytest.raises(OptionError, match="NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW"):
            Core().import_model(blob, "NPU", config)
    path = {"BLOB_PATH": str(blobs["OPTIMIZE_SPEED"])}
    with pytest.raises(OptionError, match="NPU_UNTRUSTED_SOURCE"):
        Core().compile_model(tiny, "NPU", config | path)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({OPTION: BOTH}, f"only the owner of {OPTION} can decrypt the blob"),
        ({"NPUW_DEVICES": "CPU"}, "NPUW_DEVICES = 'CPU' have no versioned layout"),
        ({"NPUW_DEVICES": "NPU,CPU"}, "NPUW_DEVICES = 'NPU,CPU' have no versioned layout"),
        (
            {"NPUW_ONLINE_PIPELINE": "REP"},
            r"partitioned models \(NPUW_ONLINE_…, NPUW_PLAN\) have no versioned",
        ),
        (
            {"NPUW_ONLINE_PIPELINE": "SPATIAL"},
            r"tiled blocks \(NPUW_SPATIAL\) have no versioned",
        ),
        ({"NPU_PLATFORM": "own.toml"}, r"own\.toml exists only on this machine"),
    ],
)
def test_compatibility_is_checked_first(tiny, tmp_path, monkeypatch, options, problem: str) -> None:
    if "NPU_PLATFORM" in options:
        options = {"NPU_PLATFORM": str(tmp_path / "own.toml")}
        text = files(platforms).joinpath("4000.toml").read_text()
        (tmp_path / "own.toml").write_text(text)
    monkeypatch.setattr("npuw_layer.llm.compiled.compile_llm", None)
    config = {"NPUW_ENSURE_COMPATIBILITY": "YES", "EXPORT_BLOB": "YES"} | options
    with pytest.raises(OptionError, match=f"NPUW_ENSURE_COMPATIBILITY = YES: .*{problem}"):
        Core().compile_model(tiny, "NPU", config | {"BLOB_PATH": str(tmp_path / "x.blob")})


def test_compatibility_is_checked_by_exports(tiny, speak) -> None:
    ensure = SMALL | {"NPUW_ENSURE_COMPATIBILITY": "YES"}
    content = Core().compile_model(tiny, "NPU", ensure).export_model()
    Core().import_model(content, "NPU", {"WEIGHTS_PATH": str(tiny)})
    compiled = Core().compile_model(tiny, "NPU", ensure | {"NPUW_DEVICES": "CPU"})
    with pytest.raises(OptionError, match="NPUW_ENSURE_COMPATIBILITY"):
        compiled.export_model()
