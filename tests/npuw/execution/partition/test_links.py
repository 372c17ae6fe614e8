"""Placement of links: no overlap of links that are needed together, in little memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.execution.partition.model import Lifetime, place_links


@st.composite
def lifetimes(draw: st.DrawFn) -> Lifetime:
    made = draw(st.integers(0, 9))
    return Lifetime(draw(st.integers(0, 50)) * 64, made, made + draw(st.integers(0, 5)))


@given(st.lists(lifetimes(), max_size=12))
def test_links_with_overlapping_lifetimes_do_not_overlap_in_memory(given_links):
    links = {str(number): link for number, link in enumerate(given_links)}
    offsets, nbytes = place_links(links)
    for a, one in links.items():
        begin, end = offsets[a], offsets[a] + one.nbytes
        assert begin >= 0
        assert end <= nbytes
        for b, other in links.items():
            together = a < b and one.made <= other.read and other.made <= one.read
            if together and one.nbytes and other.nbytes:
                assert end <= offsets[b] or offsets[b] + other.nbytes <= begin
    most = sum(link.nbytes for link in given_links)
    assert nbytes <= most


def test_a_chain_of_layers_takes_the_memory_of_one():
    """A layer reads the output of the previous one, and a residual bypasses its group."""
    links = {}
    for layer in range(30):
        links[f"q{layer}"] = Lifetime(64, 2 * layer, 2 * layer + 1)
        links[f"residual{layer}"] = Lifetime(128, 2 * layer, 2 * layer + 2)
        links[f"attention{layer}"] = Lifetime(64, 2 * layer + 1, 2 * layer + 2)
    assert place_links(links)[1] <= 2 * (64 + 128 + 64)
