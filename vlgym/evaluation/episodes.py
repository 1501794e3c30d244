"""Play a plan: each episode in a separate environment, each waiting for its own answer alone.

Environments are stepped in the calling thread, because some (OpenGL, browsers) belong to the thread that made them; or
in workers, where all that are answered together work at the same time.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..env import VLEnv
from ..env.prompts import PromptBuilder
from ..env.seeding import episode_seed
from ..env_groups import LOCAL, EnvGroup
from ..errors import EndpointError
from ..parsers import make_stop
from ..parsers.thoughts import MAX_REPLY
from ..play.controls import SHUFFLED
from ..play.env_failures import EnvFailures, Failure, close_env
from ..play.policies import AskingPolicy, Policy
from ..play.remote import RemoteEnv
from ..play.rollout import Runner, cut_reply
from ..play.trajectory import check_values
from ..registry.making import unwrap
from ..types import Reply, StepRecord, Turn
from .held_out import find_wrong_reward
from .plan import Job

POLL = 0.2  # seconds between two looks for Ctrl-C while nothing is answered


@dataclass(eq=False)
class _Table:
    """An episode that is being played."""

    job: Job
    runner: Runner
    turn: Turn | None = None
    records: list[StepRecord] = field(default_factory=list)


class Player:
    """Plays jobs with one policy.

    Args:
        jobs: what to play, in this order.
        policy: who answers. One with `submit` is asked for each episode apart; any other gets all open prompts at once.
        builders: prompt layout of each part, by its key; where there is none, the environment's own.
        num_envs: most episodes at once.
        on_episode: called with each finished episode's records.
        on_batch: called with the replies that came together.
        on_reply: called with each reply and the key of its part; what it raises ends the play.
        on_failure: called with each failure of an environment or of the endpoint; its episode is played again.
        group: where the environments live.

    Raises:
        FailedError: an environment, or the endpoint, broke one episode off three times.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        policy: Policy,
        *,
        builders: dict[str, PromptBuilder] | None = None,
        num_envs: int = 8,
        on_episode: Callable[[list[StepRecord]], None] = lambda episode: None,
        on_batch: Callable[[Sequence[Reply]], None] = lambda replies: None,
        on_reply: Callable[[Reply, str], None] = lambda reply, part: None,
        on_failure: Callable[[Failure], object] = lambda failure: None,
        group: EnvGroup = LOCAL,
    ) -> None:
        self.policy, self.builders, self.num_envs = policy, builders or {}, num_envs
        self.on_episode, self.on_reply, self.failures = on_episode, on_reply, EnvFailures(on_failure)
        self.on_batch, self.group = on_batch, group
        self._waiting = list(reversed(jobs))
        self._tables: list[_Table] = []
        self._idle: dict[tuple[Any, ...], list[VLEnv]] = {}

    def play(self) -> None:
        """Play until every job is done. However it ends, every environment is closed."""
        try:
            if isinstance(self.policy, AskingPolicy):
                self._play_apart(self.policy)
            else:
                self._play_together()
        finally:
            for table in self._tables:
                table.runner.close()
            for envs in self._idle.values():
                for env in envs:
                    close_env(env)

    def _play_together(self) -> None:
        while self._fill():
            tables = list(self._tables)
            replies = self.policy.reply([self._ask(table) for table in tables])
            self.on_batch(replies)
            for table, reply in zip(tables, replies, strict=True):
                env = self._ask(table).env
                if isinstance(env, RemoteEnv):  # all of them work at the same time
                    env.send_step(end_reply(env, reply)[0].text)
            for table, reply in zip(tables, replies, strict=True):
                self._answer(table, reply)

    def _play_apart(self, policy: AskingPolicy) -> None:
        answers: queue.SimpleQueue[tuple[_Table, Future[Reply]]] = queue.SimpleQueue()
        asked: dict[_Table, Future[Reply]] = {}
        try:
            while self._fill():
                for table in self._tables:
                    if table not in asked:
                        asked[table] = policy.submit(self._ask(table))
                        asked[table].add_done_callback(partial(_pass_on, answers, table))
                with suppress(queue.Empty):
                    table, future = answers.get(timeout=POLL)
                    del asked[table]
                    try:
                        reply = future.result()
                    except EndpointError as error:
                        self._drop(table, error, self._ask(table).turn)
                    else:
                        self.on_batch([reply])
                        self._answer(table, reply)
        finally:
            for future in asked.values():
                future.cancel()

    def _fill(self) -> bool:
        """Begin episodes while there is room; return whether any is open."""
        while self._waiting and len(self._tables) < self.num_envs:
            job = self._waiting.pop()
            try:
                self._tables.append(self._begin(job))
            except Exception as error:
                self._break_off(job, error)
        return bool(self._tables)

    def _begin(self, job: Job) -> _Table:
        part, envs = job.part, []
        try:
            for _ in range(1 + (part.pictures == SHUFFLED)):
                envs.append(self._take(job))
            runner = Runner(
                envs[:1], twins=envs[1:], split=part.split, first_episode=job.number, episodes=1, part=part.key,
                repeats=part.per_seed, builder=self.builders.get(part.key), pictures=part.pictures,
            )  # fmt: skip
        except BaseException:
            for env in envs:
                close_env(env)
            raise
        return _Table(job, runner)

    def _take(self, job: Job) -> VLEnv:
        """Return an environment of the job's item: an idle one, else a new one."""
        idle = self._idle.get(_place(job))
        if not idle and sum(map(len, self._idle.values())) + len(self._tables) >= self.num_envs:
            self._close_one_idle()
        return idle.pop() if idle else job.part.make(job.part.item_of(job.number), self.group)

    def _ask(self, table: _Table) -> Turn:
        if table.turn is None:
            table.turn = replace(table.runner.turns()[0], repeat=table.job.part.repeat_of(table.job.number))
        return table.turn

    def _answer(self, table: _Table, reply: Reply) -> None:
        turn, table.turn = self._ask(table), None
        reply, after = end_reply(unwrap(turn.env), reply)
        self.on_reply(reply, table.job.part.key)
        try:
            record = table.runner.advance([turn], [reply], self.policy.name)[0]
            check_values({"reward": record.reward, "score": record.score})
            if wrong := find_wrong_reward(table.job.part.env_id, table.job.part.changed, record):
                raise ValueError(f"{table.job.part.env_id} {wrong}")
        except Exception as error:
            self._drop(table, error, turn.turn, reply.text)
            return
        record.final_messages, record.after = None, after
        table.records.append(record)
        if table.runner.done:
            self._leave(table)
            self.on_episode(table.records)

    def _leave(self, table: _Table) -> None:
        self._tables.remove(table)
        self._idle.setdefault(_place(table.job), []).extend(table.runner.envs())

    def _drop(self, table: _Table, error: Exception, turn: int, reply: str | None = None) -> None:
        self._tables.remove(table)
        table.runner.close()
        self._break_off(table.job, error, turn, reply)

    def _break_off(self, job: Job, error: Exception, turn: int = 0, reply: str | None = None) -> None:
        """Note why an episode broke off; it does not count, and is played again."""
        part = job.part
        seed = episode_seed(part.env_id, part.split, job.number // part.per_seed)
        self.failures.note(
            (part.key, job.number), error, None, env_id=part.env_id, episode=job.number, seed=seed, turn=turn,
            reply=reply, part=part.key,
        )  # fmt: skip
        self._waiting.append(job)

    def _close_one_idle(self) -> None:
        for envs in self._idle.values():
            if envs:
                close_env(envs.pop())
                return


def _pass_on(answers: queue.SimpleQueue[Any], table: _Table, future: Future[Reply]) -> None:
    answers.put((table, future))


def end_reply(env: VLEnv | RemoteEnv, reply: Reply) -> tuple[Reply, str]:
    """Return the reply up to where the environment's parser has what it asked for, and what came after that.

    A server goes on to the end of the turn and our engine does not; so equal models get equal actions from both.
    """
    end = make_stop(env)(reply.text)
    if end is None:
        return cut_reply(reply), ""
    kept = cut_reply(replace(reply, text=reply.text[:end], cut=False))
    return kept, reply.text[end : end + MAX_REPLY - len(kept.text)]


def _place(job: Job) -> tuple[str, str, str]:
    """Return the data that the environments of two jobs must share so that one can serve both."""
    part = job.part
    return (part.env_id, part.planner, repr({**part.arguments, **part.items[part.item_of(job.number)]}))
