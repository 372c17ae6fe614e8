"""Every kind of stored file: damage is rejected with the file's name, or the file is replaced.

Bits are flipped at seeded positions, the file is truncated, and bytes are appended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import SMALL, Talks
from tests.npuw.kinds.static.conftest import EXACT, classifier, recurrent

from compiler_layer.model import Model
from compiler_layer.tools.npuc import main as npuc
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.loader.read import read_blob
from npuw_layer import Core
from npuw_layer.errors import BlobError, DamagedBlob, NpuwError, OptionError, StateError
from npuw_layer.execution.partition.planned import read_plan
from npuw_layer.storage.cache.blob_cache import BlobCache
from npuw_layer.storage.cache.key import CacheKey
from npuw_layer.storage.cache.known_files import KnownFiles

FLIPS = 40
IDS = np.arange(1, 41)
PROGRAM = random.Random(5).randbytes(6000)
SPEED = {"CACHE_MODE": "OPTIMIZE_SPEED"}
RAW = {"NPU_IMPORT_RAW_BLOB": "YES"}


def flip(content: bytes) -> bytes:
    """Apply a cipher that is its own inverse."""
    return (np.frombuffer(content, np.uint8) ^ 0x5A).tobytes()


SECRET = {"CACHE_ENCRYPTION_CALLBACKS": (flip, flip)}


@dataclass(frozen=True)
class Kept:
    """A file, and its reader.

    Attributes:
        path: the file.
        read: returns the content; for files kept for the next start, the content or nothing.
        error: error of a damaged file; None if the file is replaced.
    """

    path: Path
    read: Callable[[], object]
    error: type[NpuwError] | None = None


@dataclass(frozen=True)
class Maker:
    """Writer of a file of each kind to a folder."""

    folder: Path
    tiny: Path
    talks: Talks

    def language_model(self, options: dict[str, Any], given: dict[str, Any]) -> Kept:
        lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
        return self._exported(self.tiny, lengths | options, given)

    def static_model(self, graph: Model, options: dict[str, Any], given: dict[str, Any]) -> Kept:
        write_ir(graph, self.folder / "model.xml")
        return self._exported(self.folder / "model.xml", EXACT | SPEED | options, given)

    def _exported(self, model: Path, options: dict[str, Any], given: dict[str, Any]) -> Kept:
        path = self.folder / "model.blob"
        Core().compile_model(model, "NPU", options).export_model(path)
        return Kept(path, lambda: Core().import_model(path, "NPU", given).inputs, BlobError)

    def compiled_by_npuc(self) -> Kept:
        path = self.folder / "npuc.blob"
        write_ir(classifier(), self.folder / "model.xml")
        assert npuc(["compile", str(self.folder / "model.xml"), "-o", str(path)]) == 0
        return Kept(path, lambda: Core().import_model(path, "NPU", RAW).inputs, BlobError)

    def conversation(self) -> Kept:
        talk, path = self.talks(), self.folder / "talk.npuw"
        talk.tell(IDS)
        talk.request.save_state(path)
        return Kept(path, lambda: talk.request.load_state(path), StateError)

    def plan(self) -> Kept:
        dump = {"NPUW_ONLINE_DUMP_PLAN": str(self.folder / "plan.xml")}
        options = SMALL | {"NPUW_ONLINE_ISOLATE": "ATTN"} | dump
        Core().compile_model(self.tiny, "NPU", options)
        path = self.folder / "plan.generate_192.xml"
        return Kept(path, lambda: read_plan(path), OptionError)

    def entry(self, options: dict[str, Any]) -> Kept:
        """Write a program of the cache, whose second half is weights."""
        half = len(PROGRAM) // 2
        callbacks = options.get("CACHE_ENCRYPTION_CALLBACKS", ())
        cache = BlobCache(self.folder, lambda _: [(half, half)], callbacks)
        key = CacheKey({"model": "ab" * 32, "npuw": "1", "device": "NPU 1"})

        def read() -> bytes | None:
            found = cache.obtain("one", key, lambda: PROGRAM)
            return None if found.compiled else bytes(found.program)

        assert read() is None
        return Kept(next(self.folder.glob("*.blob")), read)

    def known_digest(self) -> Kept:
        """Write the digest of a model's file, which identifies the model."""
        model, known = self.tiny / "model.safetensors", KnownFiles(self.folder)
        status = model.stat()
        known.learn_own(model, status, "ab" * 32)
        return Kept(next(self.folder.glob("*.digest")), lambda: known.recall(model, status))

    def kernel(self) -> Kept:
        cache = ObjectCache(self.folder)
        cache.write("a kernel", PROGRAM)
        return Kept(next(self.folder.glob("*.o")), lambda: bytes(cache.read("a kernel") or b""))


KINDS: dict[str, Callable[[Maker], Kept]] = {
    "language model": lambda make: make.language_model({}, {"WEIGHTS_PATH": str(make.tiny)}),
    "language model with weights": lambda make: make.language_model(SPEED, {}),
    "encrypted language model": lambda make: make.language_model(SPEED | SECRET, SECRET),
    "reranking model": lambda make: make.language_model(SPEED | {"NPUW_TEXT_RERANK": "YES"}, {}),
    "static model": lambda make: make.static_model(recurrent(), {"NPU_USE_NPUW": "YES"}, {}),
    "native model": lambda make: make.static_model(recurrent(), {}, {}),
    "encrypted native model": lambda make: make.static_model(recurrent(), SECRET, SECRET),
    "raw ELF": lambda make: make.static_model(classifier(), {"NPU_EXPORT_RAW_BLOB": "YES"}, RAW),
    "ELF of npuc": Maker.compiled_by_npuc,
    "conversation": Maker.conversation,
    "plan": Maker.plan,
    "cache entry": lambda make: make.entry({}),
    "encrypted cache entry": lambda make: make.entry(SECRET),
    "known digest": Maker.known_digest,
    "kernel": Maker.kernel,
}


@pytest.fixture
def maker(tmp_path: Path, tiny: Path, talks: Talks) -> Maker:
    return Maker(tmp_path, tiny, talks)


def damaged(whole: bytes, seed: str) -> Iterator[bytes]:
    """Yield a file with a bit flipped, anywhere and at its ends; truncated; and longer."""
    draw, size = random.Random(seed), len(whole)
    places = [draw.randrange(size) for _ in range(FLIPS - 10)]
    places += [draw.randrange(min(size, 64)) for _ in range(5)]
    places += [size - 1 - draw.randrange(min(size, 64)) for _ in range(5)]
    for at in places:
        yield whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :]
    yield from (whole[: draw.randrange(size)] for _ in range(4))
    yield from (whole + more for more in (b"\0", bytes(4096), b"more", whole))


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_rejected_by_name_or_repaired(maker: Maker, kind: str) -> None:
    kept = KINDS[kind](maker)
    whole, expected = kept.path.read_bytes(), repr(kept.read())
    if kept.error is None:
        expected = repr(kept.read())
    for content in damaged(whole, kind):
        replace(kept.path, content)
        if kept.error is None:
            assert repr(kept.read()) in ("None", "b''", expected)
            continue
        with pytest.raises(kept.error, match=kept.path.name) as caught:
            kept.read()
        assert "\n" not in str(caught.value)
        assert ";" in str(caught.value), "the error has a remedy"
    replace(kept.path, whole)
    assert repr(kept.read()) == expected, "the undamaged file is accepted"


def replace(path: Path, content: bytes) -> None:
    """Replace a file under its name: mappings of the old one stay valid."""
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("kind", ["raw ELF", "ELF of npuc"])
def test_a_flipped_bit_in_the_weights_of_an_elf_is_detected(maker: Maker, kind: str) -> None:
    kept, draw = KINDS[kind](maker), random.Random(kind)
    whole = kept.path.read_bytes()
    weights = [each for each in read_blob(whole).sections if "Constant" in each.name]
    assert weights
    for _ in range(FLIPS):
        content, section = bytearray(whole), draw.choice(weights)
        content[section.offset + draw.randrange(section.size)] ^= 1 << draw.randrange(8)
        replace(kept.path, bytes(content))
        with pytest.raises(DamagedBlob, match=r"is damaged; export the model again"):
            kept.read()


def test_the_cache_hashes_a_file_whose_digest_is_of_an_older_version(tiny, tmp_path) -> None:
    """Digest files of older versions had no check."""
    model, known = tiny / "model.safetensors", KnownFiles(tmp_path)
    status = model.stat()
    known.learn_own(model, status, "ab" * 32)
    (place,) = tmp_path.iterdir()
    assert known.recall(model, status) == "ab" * 32
    text, _, _ = place.read_text().partition(',"check"')
    place.write_text(text + "}")
    assert known.recall(model, status) is None
