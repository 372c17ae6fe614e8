"""An intact entry that the device rejects is replaced, and is never fatal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.mapped import map_file
from npuw_layer.errors import DeviceError
from npuw_layer.storage.cache.blob_cache import Refused
from npuw_layer.storage.container import STAGE, describe, read_container, write_container
from npuw_layer.storage.manifest import EntryManifest

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


def forge(path: Path, edit: Callable[[bytes], bytes]) -> None:
    """Change an entry's program, with correct digests."""
    entry = read_container(memoryview(path.read_bytes()), STAGE, EntryManifest)
    program = edit(bytes(entry.programs[0]))
    part = describe(entry.manifest.parts[0].name, program, ())
    with path.open("wb") as file:
        manifest = EntryManifest(parts=(part,), key=entry.manifest.key)
        write_container(file, STAGE, manifest, [program])


REFUSED: list[Callable[[bytes], bytes]] = [
    lambda program: b"\x7fELF",
    lambda program: program[:-64] + bytes(64),  # the section table
    lambda program: program[:4] + b"\x01" + program[5:],  # a 32-bit ELF
]


@pytest.mark.matrix
@pytest.mark.parametrize("edit", REFUSED)
def test_a_program_that_the_device_rejects_is_compiled_again_with_a_warning(
    start, tiny, tmp_path, entry_named, caplog, edit
) -> None:
    _, logits = start(tiny, tmp_path)
    forge(entry_named(tmp_path, "generate"), edit)
    caplog.clear()
    compiled, again = start(tiny, tmp_path)
    assert compiled == 1
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "is intact, but cannot be used: loading a blob" in warning.message
    assert warning.message.endswith("it is compiled again")
    assert np.array_equal(again, logits)
    assert start(tiny, tmp_path)[0] == 0, "the entry is replaced"


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "other"), [("generate", "prefill"), ("lm_head", "generate")])
def test_a_program_of_another_stage_is_compiled_again(
    start, tiny, tmp_path, entry_named, caplog, name: str, other: str
) -> None:
    """Such a program can be loaded; its first run would fail, or write to wrong memory."""
    _, logits = start(tiny, tmp_path)
    entry = entry_named(tmp_path, other).read_bytes()
    program = bytes(read_container(memoryview(entry), STAGE, EntryManifest).programs[0])
    forge(entry_named(tmp_path, name), lambda _: program)
    for compiled in (1, 0):
        caplog.clear()
        found, again = start(tiny, tmp_path)
        assert (found, "cannot be used" in caplog.text) == (compiled, bool(compiled))
        assert np.array_equal(again, logits)


@pytest.mark.matrix
@pytest.mark.parametrize("devices", ["NPU,CPU", "CPU"])
def test_a_rejected_program_is_compiled_again_for_several_devices(
    tiny, tmp_path, entry_named, caplog, devices: str
) -> None:
    config = SMALL | {"NPUW_DEVICES": devices, "CACHE_DIR": str(tmp_path)}
    Core().compile_model(tiny, "NPU", config)
    forge(entry_named(tmp_path, "generate"), lambda program: b"junk" + program)
    for from_cache in (False, True):
        caplog.clear()
        compiled = Core().compile_model(tiny, "NPU", config)
        assert compiled.get_property("LOADED_FROM_CACHE") is from_cache
        assert ("but cannot be used" in caplog.text) is not from_cache
        assert compiled.get_property("EXECUTION_DEVICES") == [devices.split(",")[0]]


def test_stored_weights_that_do_not_fit_the_programs_are_replaced(
    start, tiny, tmp_path, entry_named, caplog
) -> None:
    _, logits = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
    forge(entry_named(tmp_path, "weights"), lambda content: content[:-64])
    for refused in (True, False):
        caplog.clear()
        compiled, again = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
        assert (compiled, "the weights have" in caplog.text) == (0, refused)
        assert np.array_equal(again, logits)


def test_one_of_two_processes_replaces_an_entry(halves, key, tmp_path, without_compiling) -> None:
    """The bytes of the new entry may be equal; the file distinguishes the entries."""
    first, second = (halves(tmp_path).obtain("one", key, lambda: b"program!") for _ in range(2))
    assert first.entry is None
    assert second.entry is not None
    refused = Refused(second.entry, "no such machine")
    again = halves(tmp_path).obtain("one", key, lambda: b"program!", refused)
    assert (again.compiled, again.entry) == (True, None)
    found = halves(tmp_path).obtain("one", key, without_compiling, refused)
    assert found.program == b"program!"


def test_a_rejected_new_program_is_an_error(tiny, tmp_path, monkeypatch) -> None:
    """Compiling again would not help: the device rejects all programs of the compiler."""
    made: list[object] = []

    def junk(*_: object) -> bytes:
        made.append(None)
        return b"junk"

    monkeypatch.setattr("npuw_layer.backends.level_zero.LevelZeroDevice.compile", junk)
    for count in (1, 2):
        with pytest.raises(DeviceError, match="loading a blob"):
            Core().compile_model(tiny, "NPU", SMALL | {"CACHE_DIR": str(tmp_path)})
        assert len(made) == count


def test_a_replaced_entry_stays_valid_for_its_users(halves, key, tmp_path) -> None:
    halves(tmp_path).obtain("one", key, lambda: b"program!")
    old = halves(tmp_path).obtain("one", key, lambda: b"")
    halves(tmp_path).obtain("one", key, lambda: b"another!", Refused(old.entry, "why"))
    (path,) = tmp_path.glob("*.blob")
    with path.open("rb") as file:
        entry = read_container(map_file(file), STAGE, EntryManifest)
    assert (bytes(old.program), bytes(entry.programs[0])) == (b"program!", b"another!")
