"""Options of kinds of models, which the kinds' folders declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from npuw_layer.options.base import OptionGroup


class KindOptions(OptionGroup):
    """Options of one kind of model.

    All options of a model are one object, with all groups as base classes. Groups have methods of
    the same names, so callers name the group: ``KokoroOptions.check(options)``.
    """

    flags: ClassVar[tuple[str, ...]] = ()
    """Fields that request the kind; the group's other fields have an effect only with them."""
    follows: ClassVar[type[OptionGroup] | None] = None
    """The group that this one is listed after; by default, this one is last."""
    generates: ClassVar[bool] = True
    """True if split models of the kind have generate stages."""

    @classmethod
    def requested(cls, options: OptionGroup) -> str:
        """Return the name of the first set flag; empty without one."""
        found = (cls.model_fields[flag].alias for flag in cls.flags if getattr(options, flag))
        return next(found, None) or ""

    def excluded(self) -> Mapping[str, object]:
        """Return options that the kind excludes: name, and whether it is set."""
        return {}

    def hidden_states_only(self) -> bool:
        """Return whether a model's output is hidden states instead of logits."""
        return False

    def cache_key(self) -> Mapping[str, str]:
        """Return options that programs of any split model depend on."""
        return {}

    def check(self) -> None:
        """Check the group's options against one another and against all others.

        Raises:
            ValueError: two options contradict each other.
        """


def listed(
    groups: Sequence[type[OptionGroup]], kinds: Sequence[type[KindOptions]]
) -> Sequence[type[OptionGroup]]:
    """Return all groups in listing order, with the groups of kinds inserted."""
    every = [*groups]
    for group in kinds:
        after = len(every) if group.follows is None else every.index(group.follows) + 1
        every.insert(after, group)
    return every


def check_kinds(options: OptionGroup, kinds: Sequence[type[KindOptions]]) -> None:
    """Check that at most one kind is requested, and no option that it excludes.

    Raises:
        ValueError: options contradict one another.
    """
    found = {name: group for group in kinds if (name := group.requested(options))}
    for kind, group in found.items():
        others = {name: True for name in found if name != kind}
        excluded = {**others, **group.excluded(options.group(group))}
        for name in filter(excluded.__getitem__, excluded):
            raise ValueError(f"{name}: contradicts {kind} = YES; leave one of them out")
    for group in kinds:
        group.check(options.group(group))


def waiting(kinds: Sequence[type[KindOptions]]) -> Iterator[tuple[str, type[KindOptions], str]]:
    """Yield options that need their kind: the name, the group, and the kind's flags."""
    for group in kinds:
        aliases = {name: str(field.alias) for name, field in group.model_fields.items()}
        flags = " or ".join(aliases.pop(flag) for flag in group.flags)
        yield from ((alias, group, flags) for alias in aliases.values())
