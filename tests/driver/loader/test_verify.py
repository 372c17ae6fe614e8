"""Rules of loadable blobs, each with a blob that breaks only this rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from driver_layer.abi.elf import EHDR, RELA, SHDR, SectionFlag, SectionType, SymbolType
from driver_layer.abi.layout import field_offset
from driver_layer.abi.notes import Version
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import (
    BlobError,
    CompatibilityError,
    HeaderError,
    RelocError,
    SectionError,
)
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.testing.blobs import dense_blob, dense_builder
from driver_layer.testing.elf_builder import BlobBuilder, RawSection, write_elf

PLATFORM = PLATFORMS["4000"]


def parse(blob: bytes) -> HostParsedInference:
    return HostParsedInference(blob, PLATFORM)


def spoiled(change: Callable[[BlobBuilder], object]) -> bytes:
    builder = dense_builder()
    change(builder)
    return builder.build()


def with_sections(change: Callable[[list[RawSection]], object]) -> bytes:
    sections = dense_builder().raw_sections()
    change(sections)
    return write_elf(sections)


def named(sections: list[RawSection], name: str) -> RawSection:
    return next(section for section in sections if section.name == name)


def without(name: str) -> Callable[[list[RawSection]], object]:
    """Return a change that empties a section, so that section indices stay."""

    def change(sections: list[RawSection]) -> None:
        section = named(sections, name)
        section.type, section.data, section.size = SectionType.SHT_PROGBITS, b"", 0

    return change


def resize(section: RawSection, size: int) -> None:
    section.data, section.size = bytes(size), size


def header(field: str, value: int) -> bytes:
    blob = bytearray(dense_blob())
    np.frombuffer(blob, EHDR, 1)[field] = value
    return bytes(blob)


def test_the_unchanged_blob_is_accepted() -> None:
    metadata = parse(dense_blob()).metadata
    assert metadata.blob_name == "handmade"
    assert [(t.name, t.element.name, t.shape) for t in metadata.inputs] == [("x", "f32", (4, 8))]
    assert [(t.name, t.element.name, t.shape) for t in metadata.outputs] == [("y", "f32", (4, 16))]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_type", 2),
        ("e_shentsize", 40),
        ("e_phnum", 1),
        ("e_shnum", 0),
        ("e_shoff", 8),
        ("e_shoff", 2**63),
        ("e_shstrndx", 0),
        ("e_shstrndx", 9999),
    ],
)
def test_an_invalid_elf_header_is_rejected_at_its_field(field: str, value: int) -> None:
    with pytest.raises(HeaderError) as caught:
        parse(header(field, value))
    assert caught.value.offset == field_offset(EHDR, field)


@pytest.mark.parametrize("blob", [b"", b"\x7fELF", b"not an elf file" * 10, bytes(64)])
def test_a_file_that_is_not_elf_is_rejected(blob: bytes) -> None:
    with pytest.raises(HeaderError):
        parse(blob)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (SectionType.SHT_HASH, "is not allowed in a blob"),
        (SectionType.SHT_DYNAMIC, "is not allowed in a blob"),
        (0x1234, "unknown type"),
    ],
)
def test_section_types_that_a_blob_must_not_have_are_rejected(kind: int, message: str) -> None:
    with pytest.raises(SectionError, match=message):
        parse(with_sections(lambda s: setattr(named(s, "program.barrier"), "type", kind)))


def test_an_unknown_type_in_the_user_range_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    parse(spoiled(lambda b: b.sections.append(RawSection("extra", 0x8AAAFFFF, data=b"?"))))
    assert "unknown type 0x8aaaffff" in caplog.text


SECTION_RULES = [
    ("MetadataSection", without("MetadataSection"), "0 sections of this type instead of one"),
    ("meta.PlatformInfo", without("meta.PlatformInfo"), "0 sections of this type instead of one"),
    ("note", without("note.LoaderABIVersion"), "0 notes of type 0x1 instead of one"),
    ("note size", lambda s: setattr(named(s, "note.LoaderABIVersion"), "data", b"?"), "1 bytes"),
    ("alignment", lambda s: setattr(named(s, "shave.text"), "align", 3), "not a power of two"),
    ("entry size", lambda s: setattr(named(s, "symtab"), "entsize", 23), "entries of 23"),
    ("entries", lambda s: resize(named(s, "symtab"), 25), "not a multiple of an entry"),
    ("string table", lambda s: setattr(named(s, "symtab"), "link", 5), "not its string table"),
    ("symbol table", lambda s: setattr(s[-1], "link", 2), "not its symbol table"),
    ("target", lambda s: setattr(s[-1], "info", 4000), "does not exist"),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [rule[1:] for rule in SECTION_RULES],
    ids=[rule[0] for rule in SECTION_RULES],
)
def test_an_invalid_section_is_named(
    change: Callable[[list[RawSection]], object], message: str
) -> None:
    with pytest.raises(SectionError, match=message) as caught:
        parse(with_sections(change))
    assert caught.value.section is not None
    assert caught.value.offset is not None


def test_a_second_compiler_hash_is_rejected() -> None:
    twice = [RawSection(f"hash{n}", SectionType.VPU_SHT_COMPILER_HASH, data=b"1") for n in "ab"]
    parse(spoiled(lambda b: b.sections.append(twice[0])))
    with pytest.raises(SectionError, match="second compiler hash"):
        parse(spoiled(lambda b: b.sections.extend(twice)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: setattr(b, "arch", 3), "made for architecture 3"),
        (lambda b: setattr(b, "tile_count", 7), "needs 7 tiles"),
        (lambda b: setattr(b, "loader_version", Version(2, 0, 0)), "ELF ABI version 2.0.0"),
        (lambda b: setattr(b, "loader_version", Version(1, 3, 0)), "accepts 1.2.7"),
        (lambda b: setattr(b, "inference_version", Version(0, 1, 0)), "mapped inference"),
    ],
)
def test_a_blob_for_another_device_or_version_is_incompatible(
    change: Callable[[BlobBuilder], object], message: str
) -> None:
    with pytest.raises(CompatibilityError, match=message):
        parse(spoiled(change))


@pytest.mark.parametrize(
    ("platform", "change", "message"),
    [
        ("3720", {"inference_version": Version(11, 4, 10)}, "11.4.10; this driver accepts 7.0.5"),
        ("3720", {"inference_version": Version(7, 1, 0)}, "7.1.0; this driver accepts 7.0.5"),
        ("3720", {"loader_version": Version(1, 4, 0)}, "1.4.0; this driver accepts 1.3.6"),
        ("4000", {"inference_version": Version(7, 0, 5)}, "7.0.5; this driver accepts 11.13.0"),
        ("5010", {"loader_version": Version(1, 2, 7)}, "1.2.7; this driver accepts 2.2.2"),
    ],
)
def test_each_platform_has_its_own_versions(
    platform: str, change: dict[str, Version], message: str
) -> None:
    builder = dense_builder(platform)
    HostParsedInference(builder.build(), PLATFORMS[platform])
    for name, version in change.items():
        setattr(builder, name, version)
    with pytest.raises(CompatibilityError, match=message):
        HostParsedInference(builder.build(), PLATFORMS[platform])


def test_an_older_minor_version_is_accepted() -> None:
    parse(spoiled(lambda b: setattr(b, "inference_version", Version(11, 0, 0))))


def drop_entry(b: BlobBuilder) -> None:
    b.symbols = [row for row in b.symbols if row[0] != SymbolType.VPU_STT_ENTRY]


def writable_entry(b: BlobBuilder) -> None:
    named(b.sections, "program.mapped_inference").flags |= SectionFlag.SHF_WRITE


def entry_in_barriers(b: BlobBuilder) -> None:
    drop_entry(b)
    names = [section.name for section in b.sections]
    b.symbol(7 + names.index("program.barrier"), kind=SymbolType.VPU_STT_ENTRY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_entry, "0 entry symbols"),
        (entry_in_barriers, "no mapped inference fits"),
        (writable_entry, "the mapped inference must not be writable"),
        (lambda b: b.symbol(7, kind=SymbolType.VPU_STT_ENTRY), "2 entry symbols"),
        (lambda b: b.symbol(5000), "section 5000, which does not exist"),
    ],
)
def test_bad_symbols_are_refused(change: Callable[[BlobBuilder], object], message: str) -> None:
    with pytest.raises(SectionError, match=message):
        parse(spoiled(change))


USER_IN, JIT = SectionFlag.VPU_SHF_USERINPUT, SectionFlag.VPU_SHF_JIT


def refers_to_x(name: str) -> Callable[[BlobBuilder], None]:
    def change(b: BlobBuilder) -> None:
        names = [section.name for section in b.sections]
        b.relocate(7 + names.index(name), 0, 0, 1, user=USER_IN)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.relocate(8, 0, 0, 1), "is not loaded"),
        (lambda b: b.relocate(9, 0, 0, 4000), "symbol 4000 of"),
        (lambda b: b.relocate(9, 0, 0, 0), "symbol 0 of"),
        (lambda b: b.relocate(9, 0, 0, 2, user=USER_IN), "symbol 2 of 2"),
        (refers_to_x("shave.params"), "cannot refer to user buffers"),
        (refers_to_x("task.shave.invocation.0.0"), "cannot refer to user buffers"),
        (refers_to_x("program.mapped_inference"), "cannot refer to user buffers"),
    ],
)
def test_bad_relocations_are_refused(change: Callable[[BlobBuilder], object], message: str) -> None:
    with pytest.raises(RelocError, match=message) as caught:
        parse(spoiled(change))
    assert (caught.value.offset or 0) % RELA.itemsize == 0


def test_a_user_relocation_without_the_jit_flag_is_rejected() -> None:
    def change(sections: list[RawSection]) -> None:
        rela = next(s for s in sections if s.type == SectionType.SHT_RELA and s.flags & USER_IN)
        rela.flags &= ~JIT

    with pytest.raises(RelocError, match="the JIT flag and one side"):
        parse(with_sections(change))


def test_user_symbols_must_have_the_sizes_of_the_metadata() -> None:
    def change(sections: list[RawSection]) -> None:
        table = named(sections, "symtab.io.NetworkInput")
        table.data = table.data[:-8] + (99).to_bytes(8, "little")

    with pytest.raises(SectionError, match=r"\[99\] bytes for tensors of \[128\]"):
        parse(with_sections(change))


def test_a_section_beyond_the_file_is_rejected() -> None:
    blob = bytearray(dense_blob())
    headers = np.frombuffer(blob, SHDR, int(np.frombuffer(blob, EHDR, 1)["e_shnum"][0]), 64)
    headers["sh_size"][7] = 2**40
    with pytest.raises(SectionError, match="extend past the file's"):
        parse(bytes(blob))


def test_no_section_may_request_more_memory_than_the_limit() -> None:
    huge = RawSection("buffer.DDR.0", SectionType.SHT_NOBITS, SectionFlag.SHF_ALLOC, size=1 << 60)
    with pytest.raises(BlobError, match="bytes exceed the limit"):
        parse(spoiled(lambda b: b.sections.append(huge)))
