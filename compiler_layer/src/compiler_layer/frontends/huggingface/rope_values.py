"""Values of a rotary embedding, from the places of a config where they may stand.

Transformers 5 writes one object, ``rope_parameters``; earlier versions wrote ``rope_scaling`` and
values beside it. ``rope_scaling`` has precedence where both stand. A file of transformers 5, and
``rope_parameters`` in any file, mean what transformers 5 computes; ``rope_scaling`` in a file of
an earlier version means what transformers 4 computes, unless only 5 computes anything.

Source: ``RotaryEmbeddingConfigMixin`` of transformers 5.24.0, ``modeling_rope_utils`` of 4.57.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler_layer.errors import UnsupportedModel
from compiler_layer.frontends.huggingface.config import Config

_ORIGINAL = "original_max_position_embeddings"

_NEEDED_BY_4 = {
    "yarn": {"factor"},
    "llama3": {_ORIGINAL},
    "longrope": {"factor", "attention_factor"},
}
"""Values of a scaling, by kind, one of which transformers 4 needs to compute anything."""


@dataclass(frozen=True, slots=True)
class RopeValues:
    """Values of one rotary embedding."""

    config: Config
    scaling: Config
    """Object with the scaling; empty for none."""
    theta_key: str
    """Key of the base beside the object."""
    share_key: str | None = None
    """Key of the rotated fraction of channels beside the object; None if all are rotated."""
    before_5: bool = False
    """True if the values mean what transformers 4 computes."""
    only_5: tuple[str, ...] = ()
    """Kinds that only transformers 5 computes."""
    by_layer_type: bool = False
    """True if transformers 5 has an object for each type of layer."""
    kinds: tuple[str, ...] = ()
    """Kinds that a family has; empty for all."""
    old_kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    """Kinds by a family's former names for them, which ``type`` may have."""

    @property
    def kind(self) -> str:
        """Value of ``rope_type``, or of ``type`` in old files.

        Raises:
            UnsupportedModel: the two differ, or one is not a word.
        """
        names = ("rope_type", "type")
        given = [self.scaling.values[name] for name in names if name in self.scaling.values]
        kind: Any = given[0] if given else "default"
        if given[1:] not in ([], [kind]) or not isinstance(kind, str):
            raise self.unsupported(" and type ".join(map(repr, given)))
        if "rope_type" not in self.scaling.values:
            kind = self.old_kinds.get(kind, kind)
        if self.kinds and kind not in self.kinds:
            raise self.unsupported(repr(kind))
        return kind

    def unsupported(self, kind: str) -> UnsupportedModel:
        """Return the error for a kind that is not supported."""
        return UnsupportedModel(f"{self.config.path}: rope_type {kind} is not supported")

    def theta(self) -> float:
        """Return the base."""
        inner = "rope_theta" in self.scaling.values and not self._means_4()
        place, key = (self.scaling, "rope_theta") if inner else (self.config, self.theta_key)
        theta = place.number(key)
        if theta <= 1:
            raise place.bad(key, "above 1")
        return theta

    def share(self) -> float:
        """Return the fraction of a head's channels that is rotated.

        Raises:
            UnsupportedModel: the family rotates all channels, and the config names another share.
        """
        key = "partial_rotary_factor"
        if self.share_key is None:
            for place in (self.config, self.scaling):
                place.require(key, 1)
            return 1.0
        inner = key in self.scaling.values and not self._means_4()
        return self.scaling.number(key) if inner else self.config.number(self.share_key)

    def factor(self) -> float:
        """Return the factor by which the context is extended."""
        if self.scaling.value("factor") is None:
            raise self.unsupported(f"{self.kind!r} without a factor")
        return self.scaling.number("factor")

    def extension(self) -> float:
        """Return the factor; by default, the ratio of the new and the original context."""
        given = self.scaling.optional_number("factor")
        ignored = self.kind == "longrope" and self._means_4() and self._outer() is not None
        if given is None or ignored:
            return self._longest() / self.original()
        return given

    def original(self) -> int:
        """Return the context length before the scaling, in tokens."""
        self.scaling.refuse_null(_ORIGINAL)
        inner, outer = self.scaling.optional_positive(_ORIGINAL), self._outer()
        if self._means_4():
            return (outer if self.kind == "longrope" else inner) or self._longest()
        return (None if self.by_layer_type else outer) or inner or self._longest()

    def _means_4(self) -> bool:
        """Return whether values mean what transformers 4 computes, and it computes anything."""
        given = {key for key, value in self.scaling.values.items() if value is not None}
        needed = _NEEDED_BY_4.get(self.kind)
        from_outer = self.kind == "longrope" and self._outer() is not None
        computed = needed is None or from_outer or bool(given & needed)
        return self.before_5 and computed and self.kind not in self.only_5

    def _outer(self) -> int | None:
        return self.config.optional_positive(_ORIGINAL)

    def _longest(self) -> int:
        return self.config.positive("max_position_embeddings")


def find_scaling(config: Config, theta: str = "rope_theta", share: str | None = None) -> RopeValues:
    """Find the object with the scaling, for families with one rotary embedding.

    Args:
        config: the model's config.
        theta: the key of the base beside the object.
        share: the key of the rotated fraction beside the object; None if all channels are rotated.

    Raises:
        BadModel: a value is not an object.
        UnsupportedModel: the object is one by type of layer.
    """
    old, new = config.section("rope_scaling"), config.section("rope_parameters")
    scaling = old or new or Config(config.path, {})
    for kind in {"full_attention", "sliding_attention"} & set(scaling.values):
        raise scaling.unsupported(kind)
    return RopeValues(config, scaling, theta, share, before_5=config.before_5 and old is not None)
