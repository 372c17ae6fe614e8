"""An entry that is whole, and that the device refuses all the same, is made anew, never fatal."""

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
    """Change an entry's program, with all digests right."""
    entry = read_container(memoryview(path.read_bytes()), STAGE, EntryManifest)
    program = edit(bytes(entry.programs[0]))
    part = describe(entry.manifest.parts[0].name, program, ())
    with path.open("wb") as file:
        manifest = EntryManifest(parts=(part,), key=entry.manifest.key)
        write_container(file, STAGE, manifest, [program])


REFUSED: list[Callable[[bytes], bytes]] = [
    lambda program: b"\x7fELF",
    lambda program: program[:-64] + bytes(64),  # the table of its sections
    lambda program: program[:4] + b"\x01" + program[5:],  # of 32 bits
]


@pytest.mark.matrix
@pytest.mark.parametrize("edit", REFUSED)
def test_what_the_device_refuses_is_compiled_anew_with_a_warning(
    start, tiny, tmp_path, entry_named, caplog, edit
) -> None:
    _, logits = start(tiny, tmp_path)
    forge(entry_named(tmp_path, "generate"), edit)
    caplog.clear()
    compiled, again = start(tiny, tmp_path)
    assert compiled == 1
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "is whole, but cannot be used: loading a blob" in warning.message
    assert warning.message.endswith("it is compiled anew")
    assert np.array_equal(again, logits)
    assert start(tiny, tmp_path)[0] == 0, "the entry is replaced"


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "other"), [("generate", "prefill"), ("lm_head", "generate")])
def test_a_program_that_is_another_stages_is_compiled_anew(
    start, tiny, tmp_path, entry_named, caplog, name: str, other: str
) -> None:
    """It would be loaded, and fail when it is first run, or write where it must not."""
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
def test_so_it_is_where_other_devices_could_take_over(
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


def test_stored_weights_that_are_not_what_programs_read_are_made_anew(
    start, tiny, tmp_path, entry_named, caplog
) -> None:
    _, logits = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
    forge(entry_named(tmp_path, "weights"), lambda content: content[:-64])
    for refused in (True, False):
        caplog.clear()
        compiled, again = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
        assert (compiled, "the weights have" in caplog.text) == (0, refused)
        assert np.array_equal(again, logits)


def test_of_two_that_are_refused_an_entry_one_makes_another(
    halves, key, tmp_path, without_compiling
) -> None:
    """The same bytes may come out again; what tells the entries apart are their files."""
    first, second = (halves(tmp_path).obtain("one", key, lambda: b"program!") for _ in range(2))
    assert first.entry is None
    assert second.entry is not None
    refused = Refused(second.entry, "no such machine")
    again = halves(tmp_path).obtain("one", key, lambda: b"program!", refused)
    assert (again.compiled, again.entry) == (True, None)
    found = halves(tmp_path).obtain("one", key, without_compiling, refused)
    assert found.program == b"program!"


def test_what_is_refused_when_it_is_new_is_an_error(tiny, tmp_path, monkeypatch) -> None:
    """No loop: the device does not take what the compiler makes."""
    made: list[object] = []

    def junk(*_: object) -> bytes:
        made.append(None)
        return b"junk"

    monkeypatch.setattr("npuw_layer.backends.level_zero.LevelZeroDevice.compile", junk)
    for count in (1, 2):
        with pytest.raises(DeviceError, match="loading a blob"):
            Core().compile_model(tiny, "NPU", SMALL | {"CACHE_DIR": str(tmp_path)})
        assert len(made) == count


def test_the_entry_that_is_replaced_stays_with_those_who_have_it(halves, key, tmp_path) -> None:
    halves(tmp_path).obtain("one", key, lambda: b"program!")
    old = halves(tmp_path).obtain("one", key, lambda: b"")
    halves(tmp_path).obtain("one", key, lambda: b"another!", Refused(old.entry, "why"))
    (path,) = tmp_path.glob("*.blob")
    with path.open("rb") as file:
        entry = read_container(map_file(file), STAGE, EntryManifest)
    assert (bytes(old.program), bytes(entry.programs[0])) == (b"program!", b"another!")
