"""State machine: conversations of one compiled model, whose steps interleave at random."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interleaved.crowd import Crowd
from interleaved.moments import lose_device
from interleaved.pool import Pool
from interleaved.reference import Reference
from interleaved.speaker import Judge, Speaker

MOST = 4
"""Maximum number of live requests."""

VOCABULARY = 96

who = st.integers(0, MOST - 1)
share = st.floats(0, 1, width=16)


class Ids(list[int]):
    """Tokens with a short repr; equal parameters give equal first tokens."""

    def __init__(self, count: int, step: int = 1, like: int = 0) -> None:
        super().__init__(
            (7 * index * index + 3 if index < like else 11 + step * index) % VOCABULARY
            for index in range(count)
        )
        self._written = f"Ids({count}, {step}, {like})"

    def __repr__(self) -> str:
        return self._written


@st.composite
def tokens(draw: st.DrawFn, most: int) -> Ids:
    """Draw tokens; half of all sequences share a prefix."""
    step, count = draw(st.integers(0, 5)), draw(st.integers(1, most))
    return Ids(count, step, draw(st.integers(0, count)) if draw(st.booleans()) else 0)


class Interleaved(RuleBasedStateMachine):
    """Requests and batched conversations of one model; see ``pool.GROUPS``.

    Args:
        pool: the models.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self.pool = pool
        self.judge = Judge(pool.stateful, pool.group.error)
        self.folder = TemporaryDirectory(prefix="conversations-")
        self.number = 0
        self.speakers: list[Speaker] = []
        self.crowd: Crowd | None = None

    @initialize(number=st.integers(0, 7))
    def compile(self, number: int) -> None:
        self.number = number % len(self.pool.group.configurations)
        self.compiled = self.pool.begin(self.number)
        self.limits = self.pool.group.limits(self.number)
        self.open(0)

    @rule(first=st.sampled_from([0, 0, 0, 1, 5]))
    def open(self, first: int) -> None:
        if len(self.speakers) == MOST:
            self._close(self.speakers.pop(0))
        request = self.compiled.create_infer_request()
        self.speakers.append(Speaker(request, Reference(self.limits, first), self.judge))

    @precondition(lambda self: len(self.speakers) > 1)
    @rule(who=who)
    def close(self, who: int) -> None:
        self._close(self.speakers.pop(who % len(self.speakers)))

    @rule(who=who, first=st.sampled_from([0, 0, 2]), by_variable=st.booleans())
    def reset(self, who: int, first: int, by_variable: bool) -> None:
        speaker = self._speaker(who)
        if by_variable:
            speaker.caches()[-1].reset()
        else:
            speaker.request.reset_state()
        speaker.reference.reset(first)

    @rule(who=who, ids=tokens(70), padding=st.sampled_from([0, 0, 0, 1, 3]))
    def prompt(self, who: int, ids: list[int], padding: int) -> None:
        """Read a new conversation's prompt, perhaps with padding."""
        self._speaker(who).say(ids, 0, min(padding, len(ids) - 1))

    @rule(who=who, ids=tokens(40))
    def go_on(self, who: int, ids: list[int]) -> None:
        speaker = self._speaker(who)
        speaker.say(ids, speaker.reference.said)

    @rule(who=who, ids=tokens(12), keep=share)
    def go_back(self, who: int, ids: list[int], keep: float) -> None:
        """Rewind to an earlier token, and continue differently."""
        speaker = self._speaker(who)
        speaker.say(ids, int(keep * speaker.reference.said))

    @rule(who=who, ids=tokens(70), greedy=st.booleans())
    def generate(self, who: int, ids: list[int], greedy: bool) -> None:
        """Generate token by token, across variants, until the cache is full and beyond."""
        self._speaker(who).generate(ids, greedy)

    @rule(who=who, border=st.sampled_from([16, 24, 64, 72, 128]), left=st.integers(0, 2))
    def fill(self, who: int, border: int, left: int) -> None:
        """Read tokens until a variant, a chunk or the cache is full, or almost."""
        speaker = self._speaker(who)
        missing = border - left - len(speaker.reference.ids)
        if missing > 0:
            speaker.generate(Ids(missing, 3), False)

    @rule(ids=tokens(20), asynchronous=st.booleans())
    def all_at_once(self, ids: list[int], asynchronous: bool) -> None:
        """Run every request in its own thread."""
        jobs: list[Callable[[], object]] = []
        with ThreadPoolExecutor(MOST) as threads:
            for number, speaker in enumerate(self.speakers):
                said = [(token + number) % VOCABULARY for token in ids]
                inputs, keep = speaker.inputs(said, speaker.reference.said), speaker.reference.said
                if asynchronous:
                    speaker.request.start_async(inputs)
                    answer = speaker.waited
                else:
                    started = threads.submit(speaker.request.infer, inputs)
                    answer = lambda done=started: done.result()["logits"]  # noqa: E731
                jobs.append(lambda s=speaker, i=said, k=keep, a=answer: s.hear(i, k, 0, a))
            for job in jobs:
                job()

    @rule(who=who, ids=tokens(64), keep=share, run=st.integers(1, 6), cancelled=st.booleans())
    def interrupt(self, who: int, ids: list[int], keep: float, run: int, cancelled: bool) -> None:
        """Lose the device, or cancel the inference, at a given run."""
        speaker = self._speaker(who)
        kept = int(keep * speaker.reference.said)
        speaker.interrupt(ids, kept, run, self.pool.moments, cancelled)

    @precondition(lambda self: len(self.speakers) > 1)
    @rule(one=who, two=who)
    def save_and_load(self, one: int, two: int) -> None:
        """Save one request's conversation, and continue it in another."""
        source, target = self._speaker(one), self._speaker(two)
        source.request.save_state(self._file("one"))
        target.request.load_state(self._file("one"))
        target.reference = source.reference.copy(self.limits)

    @precondition(lambda self: len(self.speakers) > 1)
    @rule(one=who, two=who)
    def set_states(self, one: int, two: int) -> None:
        """Copy a conversation through variables; its tokens are unknown then."""
        source, target = self._speaker(one), self._speaker(two)
        if source is target or not source.reference.plain or source.reference.dropped:
            return
        target.request.reset_state()
        target.reference.reset(source.reference.first)
        states = {each.name: each.state for each in source.caches()}
        if not source.reference.ids:
            return
        for each in target.caches():
            each.state = states[each.name]
        # Rows contain their positions; the request counts from the first token after them.
        target.reference = source.reference.copy(self.limits)
        target.reference.foreign = len(target.reference.ids)

    @rule(who=who)
    def look(self, who: int) -> None:
        self._speaker(who).check_rows()

    @rule(number=st.integers(0, 7), imported=st.booleans())
    def restart(self, number: int, imported: bool) -> None:
        """Save all conversations, restart, perhaps with other options, and continue."""
        for place, speaker in enumerate(self.speakers):
            speaker.request.save_state(self._file(place))
        before = self.speakers
        self._end_crowd()
        self.number = number % len(self.pool.group.configurations)
        again = imported and self.pool.exports(self.number)
        start = self.pool.import_again if again else self.pool.begin
        self.compiled = start(self.number)
        self.limits = self.pool.group.limits(self.number)
        self.speakers = []
        for place, speaker in enumerate(before):
            request = self.compiled.create_infer_request()
            request.load_state(self._file(place))
            reference = speaker.reference.copy(self.limits)
            self.speakers.append(Speaker(request, reference, self.judge))
            self._close(speaker)

    @rule(places=st.integers(0, 3))
    def join(self, places: int) -> None:
        if self.crowd is None:
            engine = self.compiled.create_batching(places)
            self.crowd = Crowd(engine, self.limits, self.judge)
        if len(self.crowd.members) < MOST:
            self.crowd.join()

    @precondition(lambda self: self.crowd and self.crowd.members)
    @rule(who=who)
    def leave(self, who: int) -> None:
        assert self.crowd is not None
        self.crowd.leave(self.crowd.members[who % len(self.crowd.members)])

    @precondition(lambda self: self.crowd and self.crowd.members)
    @rule(who=who, ids=tokens(70), keep=share, steps=st.integers(0, 3), cancels=st.booleans())
    def batch(self, who: int, ids: list[int], keep: float, steps: int, cancels: bool) -> None:
        """Submit tokens of one batched conversation, and run some steps."""
        assert self.crowd is not None
        member = self.crowd.members[who % len(self.crowd.members)]
        if cancels:
            self.crowd.cancel(member)
        self.crowd.submit(member, ids, int(keep * member.request.stored))
        for _ in range(steps):
            self.crowd.step()

    @precondition(lambda self: self.crowd and self.crowd.members)
    @rule(ids=tokens(40))
    def batch_generates(self, ids: list[int]) -> None:
        """Continue all batched conversations by some tokens, one per step."""
        assert self.crowd is not None
        self.crowd.run()
        for token in ids:
            for number, member in enumerate(self.crowd.members):
                said = [(token + number) % VOCABULARY]
                self.crowd.submit(member, said, member.request.stored)
            self.crowd.step()

    @precondition(lambda self: self.crowd and self.crowd.waits)
    @rule(run=st.integers(1, 4))
    def batch_fails(self, run: int) -> None:
        """Lose the device in the middle of a step."""
        assert self.crowd is not None
        with self.pool.moments.at_run(run, lose_device):
            self.crowd.step()

    @invariant()
    def keeps_to_the_bounds_of_the_prefix_cache(self) -> None:
        prefixes = self.compiled._compiled.prefixes
        assert prefixes is None or len(prefixes) <= 6

    def teardown(self) -> None:
        try:
            if self.crowd is not None:
                self.crowd.run()
            for speaker in self.speakers:
                self._close(speaker)
            self._end_crowd()
        finally:
            self.folder.cleanup()

    def _speaker(self, who: int) -> Speaker:
        return self.speakers[who % len(self.speakers)]

    def _close(self, speaker: Speaker) -> None:
        speaker.check_given()

    def _end_crowd(self) -> None:
        if self.crowd is not None:
            self.crowd.close()
            self.crowd = None

    def _file(self, name: object) -> Path:
        return Path(self.folder.name) / f"{name}.npuw"
