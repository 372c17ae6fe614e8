"""Options of kinds of models, which are declared in the kinds' folders and collected here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from npuw_layer.options.base import OptionGroup

if TYPE_CHECKING:
    from npuw_layer.options.model import OptionValues


class KindOptions(OptionGroup):
    """Options of one kind of model, declared in the kind's folder.

    A subclass has fields, the facts below, and nothing else that needs an instance: all options of
    a model are one object, of which a group is a base class.
    """

    flags: ClassVar[tuple[str, ...]] = ()
    """Fields that request the kind; the group's other fields have an effect with them alone."""
    follows: ClassVar[type[OptionGroup] | None] = None
    """The group that this one is listed after; the last one by default."""
    generates: ClassVar[bool] = True
    """Whether models of the kind that are split have generate stages."""

    @classmethod
    def requested(cls, options: OptionValues) -> str:
        """Return the name of the first flag that is set; empty if none is."""
        found = (cls.model_fields[flag].alias for flag in cls.flags if getattr(options, flag))
        return next(found, None) or ""

    @classmethod
    def excluded(cls, options: OptionValues) -> Mapping[str, object]:
        """Return options by name that the kind rules out, with whether they are set."""
        del options
        return {}

    @classmethod
    def gives_hidden_states(cls, options: OptionValues) -> bool:
        """Return whether a model's output is the hidden states that a head would read."""
        del options
        return False

    @classmethod
    def cache_key(cls, options: OptionValues) -> Mapping[str, str]:
        """Return what programs of split models depend on, whatever kind they are of."""
        del options
        return {}

    @classmethod
    def check(cls, options: OptionValues) -> None:
        """Check the group's options against one another and against all others.

        Raises:
            ValueError: two of them contradict each other.
        """
        del options


# By name: kinds stand above options. They find the base class of their groups above this line.
KIND_GROUPS: Sequence[type[KindOptions]] = import_module("npuw_layer.kinds.registry").groups()
"""Groups of the installed kinds, in the order in which kinds are asked."""


def listed(groups: Sequence[type[OptionGroup]]) -> list[type[OptionGroup]]:
    """Return groups with those of kinds among them, in the order in which they are listed."""
    every = [*groups]
    for group in KIND_GROUPS:
        after = len(every) if group.follows is None else every.index(group.follows) + 1
        every.insert(after, group)
    return every


def check_kinds(options: OptionValues) -> None:
    """Check the options of kinds: one kind is requested at most, and nothing that it rules out.

    Raises:
        ValueError: options contradict one another.
    """
    requested = {name: group for group in KIND_GROUPS if (name := group.requested(options))}
    for kind, group in requested.items():
        others = {name: True for name in requested if name != kind}
        excluded = {**others, **group.excluded(options)}
        for name in filter(excluded.__getitem__, excluded):
            raise ValueError(f"{name}: not with {kind} = YES; leave one of them out")
    for group in KIND_GROUPS:
        group.check(options)


def waiting() -> Iterator[tuple[str, type[KindOptions], str]]:
    """Yield options that need their kind: the name, the group, and the kind's flags."""
    for group in KIND_GROUPS:
        aliases = {name: str(field.alias) for name, field in group.model_fields.items()}
        flags = " or ".join(aliases.pop(flag) for flag in group.flags)
        yield from ((alias, group, flags) for alias in aliases.values())
