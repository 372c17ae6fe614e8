"""Enumerations as openvino_genai's: not integers, but convertible to them."""

from __future__ import annotations

import copy
import operator
import pickle

import pytest

import genai_layer
from genai_layer.named_enum import NamedEnum

_OWNERS = [genai_layer, genai_layer.AdapterConfig, genai_layer.TextEmbeddingPipeline]
ENUMERATIONS = [
    each
    for owner in _OWNERS
    for each in (getattr(owner, name) for name in dir(owner))
    if isinstance(each, type) and issubclass(each, NamedEnum)
]
MEMBERS = [member for each in ENUMERATIONS for member in each]


def test_all_enumerations_are_here() -> None:
    assert len(ENUMERATIONS) == 9


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_a_member_converts_to_its_integer_and_equals_none(member: NamedEnum) -> None:
    assert int(member) == operator.index(member) == member.value
    assert member != member.value
    assert member  # also the member 0
    assert MEMBERS.count(member) == 1
    with pytest.raises(TypeError):
        member < member  # noqa: B015


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_a_member_is_printed_and_copied_as_itself(member: NamedEnum) -> None:
    name = f"{type(member).__name__}.{member.name}"
    assert (str(member), f"{member}", repr(member)) == (name, name, f"<{name}: {member.value}>")
    assert copy.deepcopy(member) is pickle.loads(pickle.dumps(member)) is member
