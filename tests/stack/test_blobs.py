"""Blobs of the compiler, read by independent tools."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import lief
import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.pipeline import Options
from driver_layer.abi.elf import RELA, VPU_RT_SYMTAB, SectionType
from driver_layer.abi.metadata import NETWORK_METADATA, decode_container
from driver_layer.abi.notes import NT_LOADER_ABI_VERSION, NT_MAPPED_INFERENCE_VERSION
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.abi.tasks import MAPPED_INFERENCE
from driver_layer.errors import BlobError, DeviceFault, OutOfMemory
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import read_version
from driver_layer.loader.read import read_blob
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.tools.objdump import main as objdump

PLATFORM = PLATFORMS["4000"]


@pytest.fixture(scope="module")
def blob(llama_8m: Path) -> bytes:
    """Blob of llama-8m's generate model."""
    return compile_model(split(read_folder(llama_8m), tokens=1, past=63), Options())


@pytest.fixture(scope="module")
def path(blob: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("blob") / "generate.blob"
    file.write_bytes(blob)
    return file


def test_readelf_reads_a_blob_without_a_warning(path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("binutils is not installed")
    result = subprocess.run([readelf, "-a", "-W", path], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert "arning" not in result.stdout
    assert "REL (Relocatable file)" in result.stdout


def test_pyelftools_reads_the_values_of_the_reference(path: Path) -> None:
    with path.open("rb") as file:
        elf = ELFFile(file)
        assert elf["e_type"] == "ET_REL"
        assert (elf["e_machine"], elf["e_phnum"], elf["e_shoff"]) == ("EM_NONE", 0, 64)
        sections = list(elf.iter_sections())
        types = {section.name: section["sh_type"] for section in sections}
        assert types["MetadataSection"] == 0x8AAAAAAA
        assert types["meta.PlatformInfo"] == 0x8AAAAAAF
        assert types["buffer.CMX_NN.0"] == 0x8AAAAAAD
        by_name = {section.name: section for section in sections}
        assert by_name["meta.PlatformInfo"].data()[32:40] == (4).to_bytes(8, "little")
        for name, kind in (("LoaderABIVersion", 1), ("MappedInferenceVersion", 0xA000)):
            note = by_name[f"note.{name}"]
            assert note["sh_size"] == 32
            assert next(note.iter_notes())["n_type"] in (kind, "NT_GNU_ABI_TAG")
        symtab = by_name["symtab"]
        assert sections[symtab["sh_link"]].name == ".symstrtab"
        entries = [s for s in symtab.iter_symbols() if s["st_info"]["type"] == "STT_LOOS"]
        assert [s.name for s in entries] == ["entry"], "VPU_STT_ENTRY is 10, which ELF calls LOOS"
        used = {
            relocation["r_info_type"]
            for section in sections
            if section["sh_type"] == "SHT_RELA"
            for relocation in section.iter_relocations()
        }
        assert used == {0, 11, 18}


@pytest.mark.matrix
@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_a_blob_has_versions_and_symbols_of_its_platform(demo: Path, platform: str) -> None:
    """CMX is a symbol in the runtime's table on 3720, in the blob's table on later platforms."""
    facts = PLATFORMS[platform]
    model = split(read_folder(demo), tokens=1, past=63)
    blob = read_blob(compile_model(model, Options(platform=platform)))
    assert read_version(blob, NT_LOADER_ABI_VERSION) == facts.loader_abi
    assert read_version(blob, NT_MAPPED_INFERENCE_VERSION) == facts.mapped_inference
    root = next(s for s in blob.sections if s.name == "program.mapped_inference")
    version = int(root.records(MAPPED_INFERENCE)["api_version"][0])
    assert divmod(version, 1 << 16) == (
        facts.mapped_inference.major,
        facts.mapped_inference.minor,
    )
    tables = blob.of_type(SectionType.SHT_RELA)
    runtime = [table for table in tables if table.link == VPU_RT_SYMTAB]
    assert bool(runtime) == (platform == "3720")
    for table in runtime:
        assert not (table.records(RELA)["r_info"] >> np.uint64(32)).any()
    HostParsedInference(blob, facts).load(AddressSpace())


def test_metadata_lists_states_after_the_models_own_arguments(path: Path) -> None:
    with path.open("rb") as file:
        content = ELFFile(file).get_section_by_name("MetadataSection").data()
    arrays = dict(
        zip(
            [name for name, _ in NETWORK_METADATA],
            decode_container(content, [kind for _, kind in NETWORK_METADATA]),
            strict=True,
        )
    )
    names = [ref["name"].decode() for ref in arrays["in_tensor_descriptors"].records]
    assert names[:3] == ["input_ids", "attention_mask", "position_ids"]
    assert all(name.startswith("vpux_ie_read_value_") for name in names[3:])
    outputs = [ref["name"].decode() for ref in arrays["out_tensor_descriptors"].records]
    assert outputs[0] == "logits"
    suffixes = {name.removeprefix("vpux_ie_assign_") for name in outputs[1:]}
    assert suffixes == {name.removeprefix("vpux_ie_read_value_") for name in names[3:]}
    assert len(arrays["ov_parameters"].records) == 3


def test_lief_reads_a_blob(path: Path) -> None:
    lief.logging.disable()
    binary = lief.ELF.parse(path)
    assert binary is not None
    assert binary.header.file_type == lief.ELF.Header.FILE_TYPE.REL
    assert "program.mapped_inference" in {section.name for section in binary.sections}


def test_npu_objdump_finds_a_blob_well_formed(path: Path, capsys) -> None:
    assert objdump(["--check", str(path)]) == 0
    assert capsys.readouterr().out == "ok\n"


def test_npu_objdump_shows_every_task(path: Path, capsys) -> None:
    assert objdump(["-x", str(path)]) == 0
    out = capsys.readouterr().out
    assert "SHAVE tile 0:" in out
    assert "matmul" in out
    assert "input input_ids" in out
    assert "output logits" in out


def load_and_run(blob: bytes) -> str:
    space, device = AddressSpace(), Device(PLATFORM)
    try:
        inference = HostParsedInference(blob, PLATFORM)
        inference.load(space)
        buffers = [
            [space.allocate(max(1, tensor.nbytes), MemoryKind.DMA).address for tensor in tensors]
            for tensors in (inference.metadata.inputs, inference.metadata.outputs)
        ]
        inference.apply_input_output(*buffers)
        device.run_inference(space, inference.address)
    except BlobError as error:
        return "nameless error" if error.offset is None else type(error).__name__
    except (DeviceFault, OutOfMemory) as error:
        return type(error).__name__
    return "ran"


def test_a_damaged_blob_raises_a_typed_error(blob: bytes) -> None:
    """Headers, metadata, lists and relocations are damaged; weights would only slow the test."""
    draw = random.Random(4)
    spans = [
        (s.offset, s.size)
        for s in HostParsedInference(blob, PLATFORM)._blob.sections
        if 0 < len(s.data) <= 1 << 17
    ]
    outcomes: set[str] = set()
    for _ in range(150):
        damaged = bytearray(blob)
        offset, size = draw.choice([(0, 64 + 64 * 150), *spans])
        at = offset + draw.randrange(size)
        damaged[at : at + 4] = draw.choice((b"\xff" * 4, bytes(4), draw.randbytes(4)))
        outcomes.add(load_and_run(bytes(damaged)))
    assert "nameless error" not in outcomes
    assert len(outcomes) >= 3, outcomes


def test_equal_models_compile_to_equal_bytes(llama_8m: Path, blob: bytes) -> None:
    again = compile_model(split(read_folder(llama_8m), tokens=1, past=63), Options())
    assert np.array_equal(np.frombuffer(blob, "u1"), np.frombuffer(again, "u1"))
