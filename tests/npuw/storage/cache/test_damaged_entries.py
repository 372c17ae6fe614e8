"""An entry that is damaged, stale or of another name is replaced, with a warning."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.covering import beside_by_turns

from npuw_layer import Core
from npuw_layer.storage.cache.blob_cache import BlobCache
from npuw_layer.storage.cache.key import CacheKey
from npuw_layer.storage.container import Container

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}

PROGRAM = random.Random(5).randbytes(6000)


@pytest.fixture
def entry(halves, key, tmp_path) -> Path:
    """Return the file of an entry; half of its program is weights."""
    halves(tmp_path).obtain("one", key, lambda: PROGRAM)
    (path,) = tmp_path.glob("*.blob")
    return path


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_every_flipped_bit_is_detected(data, halves, key, entry, caplog) -> None:
    whole = entry.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1), "byte")
    bit = data.draw(st.integers(0, 7), "bit")
    entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
    caplog.clear()
    assert halves(entry.parent).obtain("one", key, lambda: PROGRAM).compiled
    assert "is not used" in caplog.text
    assert entry.read_bytes() == whole, "the entry is replaced"


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_an_entry_of_any_other_length_is_not_used(data, halves, key, entry, caplog) -> None:
    whole = entry.read_bytes()
    length = data.draw(st.integers(0, len(whole) - 1), "length")
    more = data.draw(st.binary(min_size=1, max_size=9), "more")
    for content in (whole[:length], whole + more, whole[length:]):
        if content == whole:
            continue
        entry.write_bytes(content)
        caplog.clear()
        assert halves(entry.parent).obtain("one", key, lambda: PROGRAM).compiled
        assert "is not used" in caplog.text


@pytest.mark.parametrize("content", [b"junk", b"\x7fELF" + bytes(5000), b"\x13\x37npuw"])
def test_another_file_is_not_used(halves, key, entry, content: bytes) -> None:
    entry.write_bytes(content)
    assert halves(entry.parent).obtain("one", key, lambda: PROGRAM).compiled


def test_a_pipe_is_rejected_as_entry_without_waiting(halves, key, entry, caplog) -> None:
    entry.unlink()
    os.mkfifo(entry)
    assert halves(entry.parent).obtain("one", key, lambda: PROGRAM).compiled
    assert f"{entry} cannot be read: [Errno 22] not a regular file" in caplog.text
    assert entry.is_fifo()


def test_a_pipe_is_ignored_in_the_search_for_the_nearest_entry(halves, key, entry, caplog) -> None:
    os.mkfifo(entry.with_name(f"{key.model}-{'0' * 40}.blob"))
    other = CacheKey({**key.parts, "INFERENCE_PRECISION_HINT": "f32"})
    caplog.set_level("INFO")
    assert halves(entry.parent).obtain("one", other, lambda: b"f32").compiled
    assert "the nearest entry has other INFERENCE_PRECISION_HINT" in caplog.text


def test_an_entry_under_anothers_name_is_not_used(halves, key, entry, caplog) -> None:
    other = CacheKey({**key.parts, "INFERENCE_PRECISION_HINT": "f32"})
    entry.rename(entry.with_name(f"{other.name}.blob"))
    assert halves(entry.parent).obtain("one", other, lambda: b"f32").program == b"f32"
    assert "it was compiled for other INFERENCE_PRECISION_HINT (none, now f32)" in caplog.text


@pytest.mark.parametrize(("part", "version"), [("npuw", "2"), ("device", "NPU 2")])
def test_an_entry_of_other_versions_is_not_used_and_logged(
    halves, key, entry, caplog, part: str, version: str
) -> None:
    newer = CacheKey({**key.parts, part: version})
    assert halves(entry.parent).obtain("one", newer, lambda: b"new").program == b"new"
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert f"other {part} ({key.parts[part]}, now {version})" in warning.message
    assert len(list(entry.parent.glob("*.blob"))) == 2, "the old version's entry remains"


def test_the_log_has_the_differences_from_the_nearest_entry(halves, key, entry, caplog) -> None:
    caplog.set_level("INFO")
    other = CacheKey({**key.parts, "NPU_TILES": "1"})
    halves(entry.parent).obtain("one", other, lambda: b"new")
    assert "one: compiling: the nearest entry has other NPU_TILES (none, now 1)" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def reads(monkeypatch) -> list[str]:
    """Record the verified parts."""
    seen: list[str] = []
    for name in ("check_programs", "check_constants"):
        real = getattr(Container, name)

        def noted(self, name=name, real=real) -> None:
            seen.append(name)
            real(self)

        monkeypatch.setattr(Container, name, noted)
    return seen


def test_weights_are_read_only_where_they_may_have_changed(
    halves, key, entry, without_compiling, monkeypatch
) -> None:
    seen = reads(monkeypatch)

    def look() -> list[str]:
        seen.clear()
        assert halves(entry.parent).obtain("one", key, without_compiling).program == PROGRAM
        return list(seen)

    assert look() == ["check_programs"], "the writing process knows the digest"
    content = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(content)
    settled = entry.stat().st_mtime_ns + 10**10
    monkeypatch.setattr("time.time_ns", lambda: settled)
    assert look() == ["check_programs", "check_constants"], "another file, with unknown constants"
    assert look() == ["check_programs"], "the constants are known now"
    for known in entry.parent.glob("*.digest"):
        known.unlink()
    assert look() == ["check_programs", "check_constants"], "its constants are unknown"


def test_a_damaged_digest_is_not_used(halves, key, entry, monkeypatch) -> None:
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (known,) = entry.parent.glob("*.digest")
    kept = json.loads(known.read_bytes())
    for damage in (b"", b"{}", b"[1]", b"\xff", json.dumps(kept | {"sha256": "0" * 64}).encode()):
        known.write_bytes(damage)
        entry.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert halves(entry.parent).obtain("one", key, lambda: PROGRAM).compiled, damage


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    lambda content: content[:-1] + b"?",
    lambda content: b"junk",
]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("damage", "which"), beside_by_turns([*DAMAGE, DAMAGE[0]], ["generate", "weights"])
)
def test_a_model_with_a_damaged_entry_returns_the_same_logits(
    start, tiny, tmp_path, entry_named, caplog, damage, which: str
) -> None:
    _, logits = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
    one = entry_named(tmp_path, which)
    one.write_bytes(damage(one.read_bytes()))
    compiled, again = start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")
    assert compiled == (which == "generate")
    assert np.array_equal(logits, again)
    assert "is not used" in caplog.text
    caplog.clear()
    assert start(tiny, tmp_path, CACHE_MODE="OPTIMIZE_SPEED")[0] == 0, "the entry is replaced"
    assert "is not used" not in caplog.text


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"NPUW_DEVICES": "NPU"}, True),
        ({"NPUW_WEIGHTS_OFFLOAD": "ASYNC"}, True),
        ({"NPUW_DEVICES": "CPU"}, False),
        ({"NPUW_DEVICES": "NPU,CPU"}, False),
        ({"NPUW_ACC_CHECK": "YES"}, False),
    ],
)
def test_programs_that_name_files_are_not_used_for_a_copy_of_the_model(
    tall, tmp_path, options: dict[str, str], found: bool
) -> None:
    """Graphs for other devices name files; the NPU's programs find weights in any folder."""
    copy = shutil.copytree(tall, tmp_path / "copy")
    config = SMALL | {"CACHE_DIR": str(tmp_path / "cache")} | options
    Core().compile_model(tall, "NPU", config)
    for folder, from_cache in ((tall, True), (copy, found)):
        compiled = Core().compile_model(folder, "NPU", config)
        assert compiled.get_property("LOADED_FROM_CACHE") == from_cache


def test_a_cache_that_cannot_find_weights_verifies_all_bytes(key, tmp_path) -> None:
    cache = BlobCache(tmp_path, lambda program: ())
    cache.obtain("one", key, lambda: PROGRAM)
    assert not list(tmp_path.glob("*.digest")), "no digest is stored"
