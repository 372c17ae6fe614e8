"""Metadata of damaged blobs: values within their ranges, or an error with the offset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.layout import RecordArray, field_offset
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import SectionError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import NetworkMetadata, read_arch, read_network
from driver_layer.loader.read import Blob, read_blob
from driver_layer.testing.blobs import dense_builder
from driver_layer.testing.elf_builder import write_elf

CORPUS = Path(__file__).parent / "corpus"
NAMES = [name for name, _ in abi.NETWORK_METADATA]
KINDS = dict(abi.NETWORK_METADATA)
SECTION = "MetadataSection"


def arrays() -> dict[str, RecordArray]:
    """Return metadata with at least one record in each array."""
    made = {name: np.zeros(1, kind) for name, kind in abi.NETWORK_METADATA}
    made["identification"]["arch_name"] = b"VPUX40XX"
    made["resource_requirements"]["tile_count"] = 6
    for name in NAMES[2:7]:
        made[name] = np.zeros(2, abi.TENSOR_REF)
        made[name]["name"] = [b"first", b"second"]
        made[name]["data_type"] = ELEMENT_TYPES["f16"].code
        made[name]["dims"] = 3
        made[name]["dimensions_size"], made[name]["strides_size"] = abi.MAX_DIMS, abi.MAX_STRIDES
    for name in ("ov_parameters", "ov_results"):
        made[name]["tensor_names"] = b"name"
        made[name]["tensor_names_count"] = abi.MAX_NAMES
        made[name]["shape_size"] = abi.MAX_DIMS
        made[name]["type"] = abi.MAX_NODE_TYPE
    return made


def encoded(made: dict[str, RecordArray]) -> bytes:
    return abi.encode_container([made[name] for name in NAMES])


def blob_of(content: bytes, name: str = SECTION) -> Blob:
    sections = dense_builder().raw_sections()
    section = next(section for section in sections if section.name == name)
    section.data, section.size = content, len(content)
    return read_blob(write_elf(sections))


GOOD = encoded(arrays())
STARTS = {
    name: array.offset
    for name, array in zip(NAMES, abi.decode_container(GOOD, list(KINDS.values())), strict=True)
}
"""Offset of each array."""

LAST_LINK = STARTS["ov_results"] - abi.CHAIN.itemsize


def assert_in_range(network: NetworkMetadata) -> None:
    for text in (network.arch_name, network.blob_name):
        assert len(text) < abi.TEXT_BYTES
    assert 0 <= network.slice_length < 2**32
    assert 0 <= network.tile_count < 2**8
    assert 0 <= network.barriers < 2**8
    for tensors in (network.inputs, network.outputs):
        assert len({tensor.name for tensor in tensors}) == len(tensors)
        for tensor in tensors:
            assert len(tensor.name.encode()) < abi.TEXT_BYTES
            assert tensor.element in ELEMENT_TYPES.values()
            assert len(tensor.shape) <= abi.MAX_DIMS
            assert all(0 <= dim < 2**32 for dim in tensor.shape)
    for node in (*network.parameters, *network.results):
        assert len(node.tensor_names) <= abi.MAX_NAMES
        for name in (node.friendly_name, *node.tensor_names):
            assert len(name.encode()) < abi.TEXT_BYTES
        assert len(node.shape) <= abi.MAX_DIMS
        assert all(0 <= dim < 2**64 for dim in node.shape)


def read_or_refuse(content: bytes) -> None:
    found: NetworkMetadata | SectionError
    try:
        found = read_network(blob_of(content))
    except SectionError as error:
        found = error
    if isinstance(found, NetworkMetadata):
        assert_in_range(found)
    else:
        assert found.section == SECTION
        assert found.offset is not None
        assert 0 <= found.offset <= len(content)


def test_full_metadata_is_read() -> None:
    network = read_network(blob_of(GOOD))
    assert_in_range(network)
    assert (network.arch_name, network.tile_count) == ("VPUX40XX", 6)
    assert [tensor.shape for tensor in network.inputs] == [(3,) * 8] * 2
    assert network.parameters[0].tensor_names == ("name",) * 32


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 7)), min_size=1, max_size=3)
)
def test_flipped_bits_are_read_within_range_or_rejected_at_their_offset(
    flips: list[tuple[int, int]],
) -> None:
    content = bytearray(GOOD)
    for at, bit in flips:
        content[at] ^= 1 << bit
    read_or_refuse(bytes(content))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(["data_offset", "next", "count", "elem_size"]),
    st.one_of(st.integers(0, 2 * len(GOOD)), st.integers(0, 2**64 - 1)),
)
def test_a_damaged_link_is_read_within_range_or_rejected_at_its_offset(
    name: str, field: str, value: int
) -> None:
    content = bytearray(GOOD)
    np.frombuffer(content, abi.CHAIN, 1, STARTS[name] - abi.CHAIN.itemsize)[field] = value
    read_or_refuse(bytes(content))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_section_is_rejected(size: int) -> None:
    with pytest.raises(SectionError) as caught:
        read_network(blob_of(GOOD[:size]))
    assert caught.value.section == SECTION
    assert caught.value.offset is not None


@pytest.mark.parametrize("following", [len(GOOD) - 24, len(GOOD), 2**63, 2**64 - 8])
def test_the_last_link_must_not_point_out_of_the_section(following: int) -> None:
    content = bytearray(GOOD)
    np.frombuffer(content, abi.CHAIN, 1, LAST_LINK)["next"] = following
    with pytest.raises(SectionError, match="past the end") as caught:
        read_network(blob_of(bytes(content)))
    assert caught.value.offset == LAST_LINK


def test_the_link_of_platform_info_must_not_point_out_of_the_section() -> None:
    content = bytearray(abi.encode_container([np.zeros(1, abi.PLATFORM_INFO)]))
    np.frombuffer(content, abi.CHAIN, 1)["next"] = 40
    with pytest.raises(SectionError, match="past the end") as caught:
        read_arch(blob_of(bytes(content), "meta.PlatformInfo"))
    assert (caught.value.section, caught.value.offset) == ("meta.PlatformInfo", 0)


FULL = b"n" * abi.TEXT_BYTES
FIELDS = [
    ("identification", "arch_name", FULL, "without a terminating zero"),
    ("identification", "blob_name", FULL, "without a terminating zero"),
    *(
        (name, field, value, message)
        for name in NAMES[2:7]
        for field, value, message in (
            ("name", FULL, "without a terminating zero"),
            ("name", b"\xff", "is not UTF-8"),
            ("data_type", 24, "24 is more than 23"),
            ("dimensions_size", 9, "9 is more than 8"),
            ("strides_size", 10, "10 is more than 9"),
        )
    ),
    ("in_tensor_descriptors", "data_type", 0, "'second' has unsupported type 0"),
    ("out_tensor_descriptors", "name", b"first", "a second tensor has the name 'first'"),
    ("preprocessing_info", "input_name", FULL, "without a terminating zero"),
    ("preprocessing_info", "input_format", 5, "5 is more than 4"),
    ("preprocessing_info", "output_format", 5, "5 is more than 4"),
    ("preprocessing_info", "algorithm", 3, "3 is more than 2"),
    *(
        (name, field, value, message)
        for name in ("ov_parameters", "ov_results")
        for field, value, message in (
            ("friendly_name", FULL, "without a terminating zero"),
            ("input_name", FULL, "without a terminating zero"),
            ("type", 25, "25 is more than 24"),
            ("shape_size", 9, "9 is more than 8"),
            ("tensor_names_count", 33, "33 is more than 32"),
        )
    ),
]


@pytest.mark.parametrize(("name", "field", "value", "message"), FIELDS)
def test_a_field_out_of_its_range_is_rejected_at_its_offset(
    name: str, field: str, value: bytes | int, message: str
) -> None:
    made = arrays()
    made[name][field][-1] = value
    with pytest.raises(SectionError, match=f"{field}: .*{message}") as caught:
        read_network(blob_of(encoded(made)))
    last = STARTS[name] + (len(made[name]) - 1) * KINDS[name].itemsize
    assert caught.value.section == SECTION
    assert caught.value.offset == last + field_offset(KINDS[name], field)


def test_each_name_of_a_node_has_its_own_offset() -> None:
    made = arrays()
    made["ov_results"]["tensor_names"][0, 31] = FULL
    with pytest.raises(SectionError, match="tensor_names") as caught:
        read_network(blob_of(encoded(made)))
    assert caught.value.offset == STARTS["ov_results"] + 31 * abi.TEXT_BYTES


@pytest.mark.parametrize("name", ["net_inputs", "out_tensor_descriptors"])
def test_each_tensor_needs_a_descriptor(name: str) -> None:
    made = arrays()
    made[name] = made[name][:1]
    with pytest.raises(SectionError, match=r"[12] net_\w+ with [12] descriptors"):
        read_network(blob_of(encoded(made)))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("metadata_*.blob")), ids=lambda path: path.stem)
def test_metadata_that_the_public_loader_rejects_is_rejected(path: Path) -> None:
    with pytest.raises(SectionError) as caught:
        HostParsedInference(path.read_bytes(), PLATFORMS["4000"])
    assert caught.value.section in (SECTION, "meta.PlatformInfo")
    assert caught.value.offset is not None


def test_the_corpus_has_four_blobs_with_rejected_metadata() -> None:
    assert len(list(CORPUS.glob("metadata_*.blob"))) == 4
