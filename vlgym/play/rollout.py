"""The one place where all stages meet: environment, prompt, policy, parser, environment, record.

Read `Runner.step` first; evaluation, imitation and the learner all run through it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium

from ..env.prompts import PastTurn, PromptBuilder
from ..env.reset_options import LEVEL
from ..env.seeding import episode_seed
from ..errors import UserError
from ..parsers.thoughts import MAX_REPLY, blank_thoughts, shorten
from ..registry.making import unwrap
from ..types import Image, Message, Reply, StepRecord, Turn
from .controls import GREY, SHOWN, SHUFFLED, in_grey, with_pictures_of
from .curriculum import Course, Place
from .env_failures import ENV_ERROR, EnvFailures, close_env
from .policies import Policy
from .remote import RemoteEnv

AnyEnv = gymnasium.Env[Any, Any]


@dataclass
class _Slot:
    index: int
    env: AnyEnv
    env_id: str
    builder: PromptBuilder
    episode: int = -1
    level: int | None = None
    seed: int = 0
    turn: int = 0
    observation: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    history: dict[Any, list[PastTurn]] = field(default_factory=dict)  # by the seat, if any
    replies: list[str] = field(default_factory=list)
    active: bool = False
    twin: _Slot | None = None  # the episode whose pictures are shown instead,
    shown: list[Message] = field(default_factory=list)  # and its prompt, when it has ended the last


class Runner:
    """Steps several environments with one policy, batch by batch, and records every turn.

    Episode number `n` has the seed `episode_seed(env_id, split, n // repeats)`, and an environment
    that ends is reset at once with its next number. With `episodes`, the environment that is free
    first takes the next number; without an end, environment `i` plays `first_episode + i`,
    `first_episode + i + stride`, ..., so that its episodes do not depend on the others.

    Args:
        envs: environments, made by `gymnasium.make` or `vlgym.make`; of one id or several.
        episodes: how many to begin in all; `None` for no end.
        builder: prompt layout; by default each environment's own history defaults.
        repeats: how many consecutive episode numbers share one seed.
        stride: see above; by default the number of environments. Several runners that share the
            episodes of one training give the number of all their environments.
        remake: makes environment `i` again. With it, an environment that raises is noted in
            `failures` and replaced, and its episode ends as truncated (parse `"env_error"`, reward
            0). An episode that cannot begin is left out if `episodes` is `None`, else begun again.
            Without it, the error is raised.
        failures: notes and counts them (see `vlgym.play.env_failures`); by default a new one.
        part: part of the evaluation that the episodes belong to, for the records.
        pictures: of the prompts: `shown`, their own; `grey`, plain grey ones; `shuffled`, those of the
            episode with the next seed, which gets the same replies in an environment of `twins`.
        twins: a second environment for each, for shuffled pictures; by default `remake` makes them.
        course: chooses environment and level of each start; by default environments keep their own.
        seed: of all episodes, in place of those of the split.
        exchange: with a course of several ids: takes environment `i`, which it keeps, and the id of
            another one, which it returns; `remake` then gets that id, too.

    Attributes:
        seconds: wall time spent in the environments' steps and resets so far.

    Raises:
        UserError: no environments, or one that is not a `VLEnv`; no `exchange` for a course of
            several; shuffled pictures without `twins` or `remake`.
        FailedError: an environment failed three times in a row, here or in a method.
    """

    def __init__(
        self, envs: Sequence[AnyEnv], *, split: str = "train", first_episode: int = 0,
        episodes: int | None = None, builder: PromptBuilder | None = None, repeats: int = 1,
        stride: int | None = None, remake: Callable[..., AnyEnv] | None = None,
        failures: EnvFailures | None = None, part: str = "", pictures: str = SHOWN,
        twins: Sequence[AnyEnv] = (), course: Course | None = None, seed: int | None = None,
        exchange: Callable[[int, AnyEnv, str], AnyEnv] | None = None,
    ) -> None:  # fmt: skip
        if not envs:
            raise UserError("A Runner needs at least one environment.")
        if pictures == SHUFFLED and remake is None and len(twins) != len(envs):
            raise UserError("Shuffled pictures are those of a second environment for each: give twins, or remake.")
        if course is not None and exchange is None and len({place.env_id for place in course.places}) > 1:
            raise UserError("A Runner with a course of several environments needs `exchange`: it makes the next one.")

        # Numbers, seeds and parts follow from these alone, so runs can be resumed.
        self.split, self.repeats, self.part, self.pictures = split, repeats, part, pictures
        self.stride = len(envs) if stride is None else stride
        self.builder, self.course, self.seed = builder, course, seed
        self.remake, self.exchange, self.failures = remake, exchange, failures or EnvFailures()
        self.first_episode = self._next = first_episode
        self._end = None if episodes is None else first_episode + episodes

        # Slots, each with the twin whose pictures it shows.
        self.slots: list[_Slot] = []
        for index, env in enumerate(envs):
            inner = unwrap(env)
            name = inner.vlgym_spec.id if inner.vlgym_spec is not None else type(inner).__name__
            self.slots.append(_Slot(index, env, name, PromptBuilder.for_env(inner, builder)))
        if pictures == SHUFFLED:
            for slot in self.slots:
                env = twins[slot.index] if twins else self._remake(slot)
                slot.twin = _Slot(slot.index + len(envs), env, slot.env_id, slot.builder)

        # All resets are sent before one is waited for; what fails closes every environment.
        self._begun: list[tuple[_Slot, int, int]] = []
        start = time.perf_counter()
        try:
            for slot in self.slots:
                self._reset(slot)
            self._finish()
        except BaseException:
            self.close()
            raise
        self.seconds = time.perf_counter() - start

    @property
    def done(self) -> bool:
        """True if every episode has ended."""
        return not any(slot.active for slot in self.slots)

    def turns(self) -> list[Turn]:
        """Return the current prompt of every active environment, in slot order."""
        return [self._turn(slot) for slot in self.slots if slot.active]

    def step(self, policy: Policy) -> list[StepRecord]:
        """Let the policy answer every active environment once; return the records."""
        turns = self.turns()
        return self.advance(turns, policy.reply(turns), policy.name)

    def advance(self, turns: Sequence[Turn], replies: Sequence[Reply], name: str = "policy") -> list[StepRecord]:
        """Step every active environment with its reply to `turns()`: `step` without the policy."""
        check_replies(replies, len(turns), name)
        replies = [cut_reply(reply) for reply in replies]
        start = time.perf_counter()

        # Workers step at the same time: all steps are sent before one is waited for.
        active = [slot for slot in self.slots if slot.active]
        for slot, reply in zip(active, replies, strict=True):
            if isinstance(slot.env, RemoteEnv):
                slot.env.send_step(reply.text)

        # Resets, too.
        records = []
        for slot, turn, reply in zip(active, turns, replies, strict=True):
            record = self._record(slot, turn, reply)
            records.append(record)
            if record.terminated or record.truncated:
                self._reset(slot)
        self._finish()
        self.seconds += time.perf_counter() - start
        return records

    def _record(self, slot: _Slot, turn: Turn, reply: Reply) -> StepRecord:
        record = make_record(turn, reply, slot.episode, slot.observation["image"])
        record.level = slot.level

        # A broken episode is truncated; a learner bootstraps from its last prompt.
        record.truncated, record.final_messages = True, turn.messages
        try:
            record.terminated, record.truncated, record.reward = self._act(slot, reply.text)
        except Exception as error:
            self._replace(slot, error, reply.text)
            return record

        # The reply was read: the outcome of the step.
        add_outcome(record, slot.info)
        record.success = slot.info["success"]
        record.final_messages = self._turn(slot).messages if record.truncated else None
        if record.terminated or record.truncated:
            self.failures.end_row(slot.index)
        return record

    def get_state(self) -> dict[str, Any]:
        """Return JSON-able data from which `set_state` restores every episode exactly."""
        slots = [
            {
                "episode": slot.episode, "place": [slot.env_id, slot.level], "active": slot.active,
                "replies": list(slot.replies),
                "samples": slot.env.action_space.np_random.bit_generator.state,
            }
            for slot in self.slots
        ]  # fmt: skip
        return {"next": self._next, "slots": slots}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`'s episodes exactly, by replaying their replies from their seeds.

        Raises:
            UserError: the state has another number of environments.
        """
        if len(state["slots"]) != len(self.slots):
            raise UserError(f"The saved rollout has {len(state['slots'])} environments, this one {len(self.slots)}.")
        for slot, saved in zip(self.slots, state["slots"], strict=True):
            slot.active = saved["active"]
            if slot.active:
                if self.course is not None:
                    self._move(slot, Place(*saved["place"]))
                self._start(slot, saved["episode"], saved["replies"])
                slot.env.action_space.np_random.bit_generator.state = saved["samples"]
        self._next = state["next"]

    def envs(self) -> list[Any]:
        """Return every environment, then the twins."""
        twins = [slot.twin for slot in self.slots if slot.twin is not None]
        return [slot.env for slot in (*self.slots, *twins)]

    def close(self) -> None:
        """Close every environment, whatever one of them raises."""
        for env in self.envs():
            close_env(env)

    def _reset(self, slot: _Slot) -> None:
        """Send the reset of the slot's next episode, if there is one; `_finish` begins it."""
        if self._end is None:
            slot.active, skip = True, self.stride
            episode = self.first_episode + slot.index if slot.episode < 0 else slot.episode + skip
        else:
            slot.active, skip, episode = self._next < self._end, 0, self._next
            self._next += slot.active
        if not slot.active:
            return

        # The course may give the slot another environment, so it comes before the reset is sent.
        if self.course is not None:
            self._move(slot, self.course.choose(episode // self.repeats))
        if isinstance(slot.env, RemoteEnv):
            slot.env.send_reset(self._seed(slot, episode), _options(slot))
        self._begun.append((slot, episode, skip))

    def _move(self, slot: _Slot, place: Place) -> None:
        """Give the slot the environment and the level of its next episode."""
        slot.level = place.level
        if slot.twin is not None:
            self._move(slot.twin, place)
        if place.env_id != slot.env_id and self.exchange is not None:
            env, slot.env, slot.env_id = slot.env, None, place.env_id  # type: ignore[assignment]
            try:
                slot.env = self.exchange(slot.index, env, place.env_id)
            except Exception as error:
                self._replace(slot, error, None)
            slot.builder = PromptBuilder.for_env(unwrap(slot.env), self.builder)

    def _finish(self) -> None:
        """Begin the episodes that `_reset` chose."""
        while self._begun:
            slot, episode, skip = self._begun.pop(0)
            self._start(slot, episode, skip=skip)

    def _start(self, slot: _Slot, episode: int, replies: Sequence[str] = (), skip: int = 0) -> None:
        """Begin an episode with replies; in a new environment if one raises, `skip` episodes on."""
        while True:
            text = None
            try:
                self._begin(slot, episode)
                for text in replies:
                    self._act(slot, text)
                return
            except Exception as error:
                self._replace(slot, error, text)
            episode += skip

    def _replace(self, slot: _Slot, error: Exception, reply: str | None) -> None:
        """Note a failure of the environment and put a new one in its place; or raise it."""
        # A new one may fail as well; `note` ends the third try in a row.
        while self.remake is not None:
            self.failures.note(
                slot.index, error, slot.env, env_id=slot.env_id, episode=slot.episode,
                seed=slot.seed, turn=slot.turn, reply=reply, part=self.part,
            )  # fmt: skip
            try:
                slot.env = self._remake(slot)
                if slot.twin is not None:
                    close_env(slot.twin.env)
                    slot.twin.env = self._remake(slot)
                return
            except Exception as failure:
                error = failure
        raise error

    def _remake(self, slot: _Slot) -> AnyEnv:
        assert self.remake is not None
        return self.remake(slot.index, *[slot.env_id] * (self.exchange is not None))

    def _begin(self, slot: _Slot, episode: int) -> None:
        slot.episode, slot.turn, slot.history, slot.replies = episode, 0, {}, []
        slot.seed = self._seed(slot, episode)
        slot.env.action_space.seed((slot.seed + episode % self.repeats) % 2**32)
        slot.observation, slot.info = slot.env.reset(seed=slot.seed, options=_options(slot))
        if slot.twin is not None:
            self._begin(slot.twin, episode + self.repeats)
            slot.twin.active, slot.shown = True, self._prompt(slot.twin)

    def _seed(self, slot: _Slot, episode: int) -> int:
        return episode_seed(slot.env_id, self.split, episode // self.repeats) if self.seed is None else self.seed

    def _act(self, slot: _Slot, text: str) -> tuple[bool, bool, float]:
        """Step the slot's environment; return terminated, truncated and reward."""
        past = PastTurn(slot.observation["image"], slot.info["vlgym"]["turn_text"], text)
        seat = slot.info.get("seat")
        slot.observation, reward, terminated, truncated, slot.info = slot.env.step(text)
        slot.replies.append(text)
        if slot.builder.history_turns:
            slot.history[seat] = [*slot.history.get(seat, []), past][-slot.builder.history_turns :]
        slot.turn += 1
        if slot.twin is not None and slot.twin.active:
            slot.twin.active = not any(self._act(slot.twin, text)[:2])
            slot.shown = self._prompt(slot.twin) if slot.twin.active else slot.shown
        return bool(terminated), bool(truncated), float(reward)

    def _turn(self, slot: _Slot) -> Turn:
        details, messages = slot.info["vlgym"], self._prompt(slot)
        if self.pictures == GREY:
            messages = in_grey(messages)
        elif self.pictures == SHUFFLED:
            messages = with_pictures_of(messages, slot.shown)
        return Turn(
            messages, slot.env, slot.env_id, slot.seed, slot.turn, slot.episode % self.repeats,
            self.part, slot.observation["text"], tuple(details["legal_actions"]), details["feedback"],
        )  # fmt: skip

    def _prompt(self, slot: _Slot) -> list[Message]:
        details, past = slot.info["vlgym"], slot.history.get(slot.info.get("seat"), [])
        return slot.builder.build(
            details["instructions"], details["turn_text"], slot.observation["image"], past,
            system=unwrap(slot.env).system_text,
        )  # fmt: skip


def make_record(turn: Turn, reply: Reply, episode: int, image: Image) -> StepRecord:
    """Return the record of a reply that no environment has read yet."""
    return StepRecord(
        turn.env_id, episode, turn.seed or 0, turn.turn, turn.messages, image, turn.text, reply.text, (),
        ENV_ERROR, reward=0.0, terminated=False, truncated=False, invalid=False, success=False,
        cut=reply.cut, refused=reply.refused, repeat=turn.repeat, part=turn.part, usage=reply.usage,
        status=reply.status, reasoning=reply.reasoning, extra=reply.extra,
    )  # fmt: skip


def add_outcome(record: StepRecord, info: dict[str, Any]) -> None:
    """Add to a record how an environment read the reply, as `info` after the step says."""
    details = info["vlgym"]
    record.invalid, record.score = info["invalid_action"], info.get("score")
    record.actions = tuple(details["actions"])
    for name in ("parse", "span", "form", "point"):
        setattr(record, name, details[name])


def cut_reply(reply: Reply) -> Reply:
    """Return a reply as `shorten` leaves it, marked as cut where something that is read is lost."""
    if len(reply.text) <= MAX_REPLY:
        return reply
    unread = len(blank_thoughts(reply.text)) < len(reply.text)
    return replace(reply, text=shorten(reply.text), cut=reply.cut or unread)


def check_replies(replies: Sequence[Reply], count: int, name: str) -> None:
    """Raise a `UserError` if a policy did not give one `Reply` with a text for each prompt."""
    due = f"one vlgym.types.Reply for each of the {count} prompts"
    if not isinstance(replies, Sequence) or isinstance(replies, str):
        raise UserError(f"Policy {name!r} gave {type(replies).__name__}; its reply() returns a list, {due}.")
    for reply in replies:
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            kind = f"Reply({type(reply.text).__name__})" if isinstance(reply, Reply) else type(reply).__name__
            hint = " Wrap the text: Reply(text)." if isinstance(reply, str) else ""
            raise UserError(f"Policy {name!r} gave {kind}; its reply() returns {due}.{hint}")
    if len(replies) != count:
        raise UserError(f"Policy {name!r} gave {len(replies)} replies to {count} prompts.")


def run_episodes(runner: Runner, policy: Policy) -> Iterator[list[StepRecord]]:
    """Step until every episode has ended; yield each episode's records as it ends."""
    open_episodes: dict[tuple[str, int], list[StepRecord]] = {}
    while not runner.done:
        for record in runner.step(policy):
            key = (record.env_id, record.episode)
            open_episodes.setdefault(key, []).append(record)
            if record.terminated or record.truncated:
                yield open_episodes.pop(key)


def _options(slot: _Slot) -> dict[str, Any] | None:
    return None if slot.level is None else {LEVEL: slot.level}
