"""Observation of a batching: its state is read from what conversations count anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from npuw_layer.batching.memory_map import memory_map
from npuw_layer.batching.observed import (
    BatchingState,
    KVShape,
    ObservedPlace,
    ObservedStep,
    StepReport,
)
from npuw_layer.batching.participant import Participant, Together, reads_prompt
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.row_layouts import CacheSize
from npuw_layer.llm.plan.variants import select_generate_request, selection_reason
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.make_cache import cache_states

Place = tuple[Conversation, Participant | None]
"""Caches and models of a place, and the conversation that has them."""


class Observer:
    """Reader of a batching's state.

    Args:
        compiled: the static models.
        places: number of places, of which some may not exist yet.
    """

    def __init__(self, compiled: CompiledLLM, places: int) -> None:
        self._compiled = compiled
        self._places = places
        self._last: ObservedStep | None = None
        """Last step that ran programs."""
        self._last_ended: ObservedPlace | None = None
        self._watched = False
        """True once anybody has observed the batching."""

    @cached_property
    def _shape(self) -> KVShape:
        compiled = self._compiled
        size, lengths = CacheSize.of(cache_states(compiled)), compiled.plan.lengths
        # Each layer has K and V; 8-bit ones have scales as well.
        variables = 4 if compiled.options.kv_element == "i8" else 2
        return KVShape(
            capacity=lengths.total,
            max_prompt=lengths.max_prompt,
            min_response=lengths.min_response,
            variants=compiled.plan.capacities,
            prefill_models=sorted({stage.tokens for stage in compiled.plan.prefill}),
            bytes_per_token=size.row_bytes,
            layers=size.count // variables,
        )

    def note(self, report: StepReport, seconds: float) -> None:
        """Keep the report of a step, if it ran programs; only the thread of the step calls this."""
        if report.programs:
            number = 1 if self._last is None else self._last.number + 1
            counts = (report.read, report.generated, report.slots, report.capacity)
            self._last = ObservedStep(
                *counts, report.programs, number=number, host_ms=1000 * seconds
            )

    def report(self) -> Mapping[str, str]:
        """Return the facts of the last step, readable; empty before."""
        last, ladder = self._last, "/".join(map(str, self._compiled.plan.capacities))
        if last is None:
            return {}
        facts = {"slots": f"{last.generated} of {last.slots}"} if last.generated else {}
        variant = {"KV variant": f"{last.capacity} of {ladder}"} if last.capacity else {}
        return {"programs": " + ".join(last.programs), **facts, **variant}

    def note_end(self, slot: int, place: Conversation, owner: Participant) -> None:
        """Keep what a conversation shows when it ends, if anybody has observed the batching."""
        if self._watched:
            self._last_ended = self._place(slot, place, owner)

    def state(self, places: Sequence[Place], waiting: int) -> BatchingState:
        """Return the state.

        Args:
            places: the places that exist.
            waiting: conversations with tokens that wait for a place.
        """
        self._watched = True
        found = [self._place(slot, *place) for slot, place in enumerate(places)]
        absent = [ObservedPlace(slot) for slot in range(len(places), self._places)]
        memory = memory_map(self._compiled, [place for place, _ in places])
        shown = [*found, *absent]
        return BatchingState(self._shape, memory, shown, waiting, self._last, self._last_ended)

    def _place(self, slot: int, place: Conversation, owner: Participant | None) -> ObservedPlace:
        if owner is None:
            return ObservedPlace(slot)
        submission, rows, counts = owner.submission, place.cache.rows, place.reader.prefill.counts
        reading = submission is not None and reads_prompt(submission, self._compiled.plan)
        variant, reason = (None, None) if reading else self._variant(place, owner.together)
        # Counts are of the last prompt: until the first chunk is read, of another conversation.
        chunks = [*counts.chunks] if rows.tokens else []
        return ObservedPlace(
            slot=slot,
            conversation=owner.request,
            phase="prefilling" if reading else "generating",
            prompt_tokens=owner.prompt_tokens,
            stored_tokens=rows.stored,
            cached_tokens=counts.cached_tokens if rows.tokens else 0,
            variant=variant,
            variant_reason=reason,
            mask_ones=rows.stored,
            copied_bytes=sum(each.tokens for each in chunks if not each.in_place)
            * self._shape.bytes_per_token,
            prefill_chunks=[each.tokens for each in chunks],
        )

    def _variant(self, place: Conversation, together: Together | None) -> tuple[int, str]:
        """Return the capacity of a conversation's generate model, and the reason for it."""
        if together is not None:
            return together.capacity, (
                f"{together.conversations} conversations generate together; the smallest variant "
                f"that holds the longest of them is {together.capacity}"
            )
        capacities, generate = self._compiled.plan.capacities, place.reader.generate
        chosen_for, reserve = generate.selected_for, self._compiled.plan.lengths.min_response
        reason = selection_reason(capacities, chosen_for, reserve)
        chosen = select_generate_request(capacities, chosen_for, reserve)
        if generate.variant > chosen:
            reason = f"{capacities[chosen]} is full; the next larger variant took over"
        return capacities[generate.variant], reason
