"""Play a plan: each episode in a separate environment, each waiting for its own answer alone.

Environments are stepped in the calling thread, because some (OpenGL, browsers) belong to the thread
that made them; or in workers, which step at the same time.
"""

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..env import VLEnv
from ..env.prompts import PromptBuilder
from ..env.seeding import SPLITS, episode_seed
from ..env_groups import LOCAL, EnvGroup
from ..errors import EndpointError, check_choice, check_number
from ..parsers import make_stop
from ..parsers.thoughts import MAX_REPLY
from ..play.controls import SHOWN, SHUFFLED
from ..play.env_failures import EnvFailures, Failure, close_env, warn
from ..play.policies import AskingPolicy, Policy
from ..play.remote import RemoteEnv
from ..play.rollout import Runner, check_replies, cut_reply
from ..play.trajectory import check_record_values
from ..registry.making import unwrap
from ..types import Reply, StepRecord, Turn
from .plan import Job, Part
from .summary import Report, changes_bounds, find_wrong_reward, summarize, without_images

POLL = 0.2  # seconds between two looks for Ctrl-C while nothing is answered


@dataclass(eq=False)
class _Lane:
    """Environments that serve one episode after another, and their episode while it is `open`."""

    envs: list[VLEnv] = field(default_factory=list)
    place: tuple[str, str, str] | None = None
    open: bool = False
    job: Job = field(init=False)
    runner: Runner = field(init=False)
    turn: Turn | None = None
    records: list[StepRecord] = field(default_factory=list)

    def close(self) -> None:
        for env in self.envs:
            close_env(env)
        self.envs, self.place, self.open, self.turn = [], None, False, None


class Player:
    """Plays jobs with one policy.

    Args:
        policy: asked for each episode apart if it has `submit`, else for all open prompts at once.
        builders: prompt layout of each part, by its key; by default the environment's own.
        on_reply: called with each reply and the key of its part; its errors end the play.
        on_failure: called with each failure of an environment or endpoint; the episode is replayed.

    Raises:
        FailedError: an environment, or the endpoint, broke one episode off three times.
    """

    def __init__(
        self, jobs: Sequence[Job], policy: Policy, *, num_envs: int = 8, group: EnvGroup = LOCAL,
        builders: Mapping[str, PromptBuilder | None] | None = None,
        on_episode: Callable[[list[StepRecord]], None] = lambda episode: None,
        on_reply: Callable[[Reply, str], None] = lambda reply, part: None,
        on_failure: Callable[[Failure], object] = lambda failure: None,
    ) -> None:  # fmt: skip
        self.policy, self.builders, self.group = policy, builders or {}, group
        self.on_episode, self.on_reply, self.failures = on_episode, on_reply, EnvFailures(on_failure)
        self._waiting = list(reversed(jobs))
        self._lanes = [_Lane() for _ in range(min(num_envs, len(jobs)))]
        self._pending: dict[_Lane, Future[Reply]] = {}
        self._answers: queue.SimpleQueue[_Lane] = queue.SimpleQueue()

    def play(self) -> None:
        """Play until every job is done. However it ends, every environment is closed."""
        take = partial(self._take_one, self.policy) if isinstance(self.policy, AskingPolicy) else self._take_all
        try:
            while lanes := self._fill():
                for lane, reply in take(lanes):
                    self._answer(lane, reply)
        finally:
            for future in self._pending.values():
                future.cancel()
            for lane in self._lanes:
                lane.close()

    def _fill(self) -> list[_Lane]:
        while free := [lane for lane in self._lanes if not lane.open][: len(self._waiting)]:
            # All resets are sent before one is waited for: workers begin at the same time.
            for begin in (self._prepare, self._begin):
                for lane in free:
                    try:
                        begin(lane)
                    except Exception as error:
                        self._drop(lane, error)
                free = [lane for lane in free if lane.open]
        return [lane for lane in self._lanes if lane.open]

    def _prepare(self, lane: _Lane) -> None:
        lane.job, lane.records = self._waiting.pop(), []
        part, item = lane.job.part, lane.job.part.item_of(lane.job.number)
        place = (part.env_id, part.planner, repr({**part.arguments, **part.items[item]}))
        if lane.place != place:
            lane.close()
        lane.open, lane.place = True, place
        while len(lane.envs) < 1 + (part.pictures == SHUFFLED):
            lane.envs.append(part.make(item, self.group))
        if isinstance(lane.envs[0], RemoteEnv):
            lane.envs[0].send_reset(_seed(lane.job))

    def _begin(self, lane: _Lane) -> None:
        part = lane.job.part
        lane.runner = Runner(
            lane.envs[:1], twins=lane.envs[1:], split=part.split, first_episode=lane.job.number,
            episodes=1, part=part.key, repeats=part.per_seed, pictures=part.pictures,
            builder=self.builders.get(part.key),
        )  # fmt: skip

    def _take_all(self, lanes: Sequence[_Lane]) -> Iterator[tuple[_Lane, Reply]]:
        """Ask the policy for all prompts at once."""
        replies = self.policy.reply([self._ask(lane) for lane in lanes])
        check_replies(replies, len(lanes), self.policy.name)
        for lane, reply in zip(lanes, replies, strict=True):
            if isinstance(env := self._ask(lane).env, RemoteEnv):  # they work at the same time
                env.send_step(end_reply(env, reply)[0].text)
        return zip(lanes, replies, strict=True)

    def _take_one(self, policy: AskingPolicy, lanes: Sequence[_Lane]) -> Iterator[tuple[_Lane, Reply]]:
        """Ask the policy for each new prompt; yield the next answer, if one comes within `POLL`."""
        for lane in lanes:
            if lane not in self._pending:
                self._pending[lane] = policy.submit(self._ask(lane))
                answered = partial(lambda lane, _: self._answers.put(lane), lane)
                self._pending[lane].add_done_callback(answered)

        # An endpoint's error breaks this episode off, and no other.
        with suppress(queue.Empty):
            lane = self._answers.get(timeout=POLL)
            try:
                reply = self._pending.pop(lane).result()
            except EndpointError as error:
                self._drop(lane, error)
            else:
                yield lane, reply

    def _ask(self, lane: _Lane) -> Turn:
        if lane.turn is None:
            lane.turn = replace(lane.runner.turns()[0], repeat=lane.job.number % lane.job.part.repeats)
        return lane.turn

    def _answer(self, lane: _Lane, reply: Reply) -> None:
        turn, part = self._ask(lane), lane.job.part
        reply, after = end_reply(unwrap(turn.env), reply)
        self.on_reply(reply, part.key)

        # An environment that pays what its card excludes is as broken as one that raises.
        try:
            record = lane.runner.advance([turn], [reply], self.policy.name)[0]
            check_record_values({"reward": record.reward, "score": record.score})
            if wrong := find_wrong_reward(part.env_id, part.changed, record):
                raise ValueError(f"{part.env_id} {wrong}")
        except Exception as error:
            self._drop(lane, error, reply.text)
            return

        # Only the whole episode is passed on.
        record.final_messages, record.after, lane.turn = None, after, None
        lane.records.append(record)
        if lane.runner.done:
            lane.open = False
            self.on_episode(lane.records)

    def _drop(self, lane: _Lane, error: Exception, reply: str | None = None) -> None:
        """Note why an episode broke off; it does not count, and is played again."""
        job, turn, env = lane.job, lane.turn, lane.envs.pop(0) if lane.envs else None
        lane.close()
        self.failures.note(
            (job.part.key, job.number), error, env, env_id=job.part.env_id, episode=job.number,
            seed=_seed(job), turn=turn.turn if turn else 0, reply=reply, part=job.part.key,
        )  # fmt: skip
        self._waiting.append(job)


def evaluate(
    env_id: str, policy: Policy, *, episodes: int = 100, split: str = "test",
    first_episode: int = 0, num_envs: int = 8, env_kwargs: dict[str, Any] | None = None,
    builder: PromptBuilder | None = None,
    on_episode: Callable[[list[StepRecord]], None] | None = None,
    on_failure: Callable[[Failure], object] = warn, group: EnvGroup = LOCAL, pictures: str = SHOWN,
) -> Report:  # fmt: skip
    """Play `episodes` episodes of a split and return their report.

    Args:
        episodes: `first_episode, ..., first_episode + episodes - 1` of the split are played.
        on_failure: called with each failure of an environment; the episode is played again (see
            `vlgym.play.env_failures`). By default it is a warning.
        group: where the environments live; the episodes are the same everywhere.
        pictures: as `Runner`'s.

    Raises:
        UserError: the id cannot be made, or an argument is out of range.
        FailedError: an environment failed three times in a row.

    >>> from vlgym.play.policies import OraclePolicy
    >>> report = evaluate("vlgym/NumberLine-v1", OraclePolicy(), episodes=10)
    >>> print(f"{report.success} of 10 episodes, at least {report.success_low:.2f}")
    1.0 of 10 episodes, at least 0.72
    """
    for name, value in (("episodes", episodes), ("num_envs", num_envs)):
        check_number(name, value, 1)
    check_choice("split", split, SPLITS)
    part = Part(env_id, split, first_episode + episodes, pictures=pictures, arguments=env_kwargs or {})
    finished: list[list[StepRecord]] = []

    def finish(episode: list[StepRecord]) -> None:
        finished.append([without_images(record) for record in episode])
        if on_episode is not None:
            on_episode(episode)

    jobs, builders = [Job(part, first_episode + i) for i in range(episodes)], {part.key: builder}
    callbacks: dict[str, Any] = {"on_episode": finish, "on_failure": on_failure}
    Player(jobs, policy, builders=builders, num_envs=num_envs, group=group, **callbacks).play()
    finished.sort(key=lambda episode: episode[0].episode)
    return summarize(env_id, policy.name, split, finished, changed=changes_bounds(env_id, env_kwargs or {}))


def end_reply(env: VLEnv | RemoteEnv, reply: Reply) -> tuple[Reply, str]:
    """Return the reply up to the end of its action, as the environment's parser says, and the rest.

    A server writes on to the end of its turn, our engine does not: equal models get equal actions.
    """
    end = make_stop(env)(reply.text)
    if end is None:
        return cut_reply(reply), ""
    head = cut_reply(replace(reply, text=reply.text[:end], cut=False))
    return head, reply.text[end : end + MAX_REPLY - len(head.text)]


def _seed(job: Job) -> int:
    return episode_seed(job.part.env_id, job.part.split, job.number // job.part.per_seed)
