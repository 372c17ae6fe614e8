"""Blobs in the public NPU ELF library, live: we reject what it rejects, and it loads ours.

The library is in Intel's Linux driver. Check out intel/linux-npu-driver with its submodule
third_party/npu_compiler_elf, name that folder, and run with a C++17 compiler:

    NPU_PUBLIC_ELF=FOLDER pytest -m oracle tests/oracle/test_live_public_elf.py -s

The library's sources and ``public_elf_judge.cpp`` are compiled once, outside of the checkout. An
architecture that the library does not support is skipped: 5010, up to release UD2025.44.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.pipeline import Options
from driver_layer.abi.elf import SectionType
from driver_layer.abi.metadata import CHAIN
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import BlobError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.read import Section, read_blob
from driver_layer.npu.memory import AddressSpace
from driver_layer.testing.blobs import dense_blob

CHECKOUT = os.environ.get("NPU_PUBLIC_ELF", "")
COMPILER = shutil.which("c++")
SOURCE = Path(__file__).with_name("public_elf_judge.cpp")
CORPUS = Path(__file__).parents[1] / "driver" / "loader" / "corpus"
UNKNOWN_ARCHITECTURE = 3
"""Exit status of the judge program."""

MUTANTS = 1500
METADATA = (SectionType.VPU_SHT_NETDESC, SectionType.VPU_SHT_PLATFORM_INFO)

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not CHECKOUT, reason="NPU_PUBLIC_ELF names no checkout of linux-npu-driver"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
]


class Judge:
    """The public library, called for files."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def verdicts(self, blobs: list[bytes], platform: str) -> list[str]:
        """Return the verdicts on blobs; skip the test if the platform is not supported."""
        paths = [self._folder / f"{number}.blob" for number in range(len(blobs))]
        for path, blob in zip(paths, blobs, strict=True):
            path.write_bytes(blob)
        arch = PLATFORMS[platform].arch.name
        command, files = [self._program, arch], "".join(f"{path}\n" for path in paths)
        result = subprocess.run(command, input=files, capture_output=True, text=True, check=False)
        if result.returncode == UNKNOWN_ARCHITECTURE:
            pytest.skip(f"{arch}: {result.stderr.strip()}")
        assert result.returncode == 0, result.stderr
        found = result.stdout.splitlines()
        assert len(found) == len(blobs)
        return found

    def verdict(self, blob: bytes, platform: str) -> str:
        """Return the verdict on one blob."""
        return self.verdicts([blob], platform)[0]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Compile the library and the judge program."""
    folder = tmp_path_factory.mktemp("public_elf")
    root = Path(CHECKOUT)
    library = root / "third_party" / "npu_compiler_elf" / "vpux_elf"
    parts = [library / name for name in ("core", "loader", "hpi_component")]
    sources = [*(s for part in parts for s in sorted(part.glob("src/**/*.cpp"))), SOURCE]
    assert len(sources) > 1, f"{library} holds no sources: is the submodule checked out?"
    headers = [root / "firmware" / "include", *(part / "include" for part in parts)]
    headers += [path for path in (library / "hpi_component" / "include").iterdir()]
    flags = ["-std=c++17", "-O1", "-w", "-DHOST_BUILD", *(f"-I{path}" for path in headers)]

    def compiled(number: int) -> Path:
        target = folder / f"{number}.o"
        subprocess.run([str(COMPILER), *flags, "-c", sources[number], "-o", target], check=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, range(len(sources))))
    subprocess.run([str(COMPILER), *objects, "-o", folder / "judge"], check=True)
    return Judge(folder / "judge", folder)


def ours(blob: bytes, platform: str) -> str:
    """Return our loader's verdict, in the judge's format."""
    try:
        HostParsedInference(blob, PLATFORMS[platform]).load(AddressSpace())
    except BlobError as error:
        return f"refused: {error}"
    return "accepted"


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_a_hand_made_blob_is_loaded(judge: Judge, platform: str) -> None:
    blobs = [dense_blob(platform), dense_blob(platform, strided=True)]
    assert judge.verdicts(blobs, platform) == ["accepted"] * 2


@pytest.mark.parametrize("tiles", [0, 1])
@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_a_compiled_blob_is_loaded(judge: Judge, demo: Path, platform: str, tiles: int) -> None:
    model = split(read_folder(demo), tokens=1, past=63)
    blob = compile_model(model, Options(platform=platform, tiles=tiles))
    assert judge.verdict(blob, platform) == "accepted"


@pytest.mark.parametrize(("made_for", "platform"), [("3720", "4000"), ("4000", "3720")])
def test_both_reject_a_blob_of_another_platform(judge: Judge, made_for: str, platform: str) -> None:
    blob = dense_blob(made_for)
    assert judge.verdict(blob, platform).startswith("refused: ")
    assert ours(blob, platform).startswith("refused: ")


def test_both_reject_the_metadata_of_the_corpus(judge: Judge) -> None:
    blobs = [path.read_bytes() for path in sorted(CORPUS.glob("metadata_*.blob"))]
    for verdict in (*judge.verdicts(blobs, "4000"), *(ours(blob, "4000") for blob in blobs)):
        assert verdict.startswith("refused: ")


def links(section: Section) -> list[int]:
    """Return the offsets of a section's links."""
    found = [0]
    while following := int(np.frombuffer(section.data, CHAIN, 1, found[-1])["next"][0]):
        found.append(following)
    return found


def mutant(draw: random.Random, good: bytes, sections: list[Section]) -> bytes:
    """Damage links, fields or the size of metadata sections."""
    blob = bytearray(good)
    for _ in range(draw.choice((1, 1, 1, 2))):
        section = draw.choice(sections)
        size = section.size
        if draw.random() < 0.6:
            width, at = 8, draw.choice(links(section)) + 8 * draw.randrange(4)
        else:
            width = draw.choice((1, 2, 4, 8))
            at = draw.randrange(size // width) * width
        at += section.offset
        old = int.from_bytes(blob[at : at + width], "little")
        edges = (0, 1, size, size - 1, size - 31, size - 32, 2**63, 2**64 - 1, 2**64 - size, 2**61)
        near = (old + 1, old - 1, old + 8, old - 8, old * 2, old ^ 1 << draw.randrange(64))
        value = draw.choice((*edges, *near, draw.randrange(2 * size), draw.getrandbits(64)))
        blob[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    return bytes(blob)


@pytest.mark.parametrize("platform", ["3720", "4000"])
def test_metadata_that_the_library_rejects_is_rejected_by_us(judge: Judge, platform: str) -> None:
    good = dense_blob(platform)
    sections = [section for section in read_blob(good).sections if section.type in METADATA]
    draw = random.Random(2026)
    blobs = [mutant(draw, good, sections) for _ in range(MUTANTS)]
    found = judge.verdicts(blobs, platform)
    outcomes: Counter[tuple[str, str]] = Counter()
    for blob, theirs in zip(blobs, found, strict=True):
        mine = ours(blob, platform)
        assert mine.startswith("refused: ") or theirs == "accepted", theirs
        outcomes[theirs.split(":")[0], mine.split(":")[0]] += 1
    assert min(outcomes["refused", "refused"], outcomes["accepted", "accepted"]) > MUTANTS // 20
