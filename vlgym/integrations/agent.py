"""An async agent function that plays an episode against any OpenAI-compatible address.

    from vlgym.integrations.agent import play, tasks

    episode = await play(tasks("vlgym/CanaryMemory-v0", "train", 1)[0], base_url=url, model="policy")

Trainers that intercept such an address (AReaL, rLLM, agent-lightning and others) take it as their
rollout: they record tokens at the address, and the function returns the reward. Environments step
in the event loop's thread, because OpenGL and browsers belong to a thread; only the requests are awaited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..endpoint.client import check_url, open_client
from ..endpoint.completion import PROMPT, find_status, read_answer
from ..endpoint.messages import encode_messages
from ..endpoint.secrets import hide_in, make_hide
from ..env.prompts import PromptBuilder
from ..env.reset_options import LEVEL
from ..env.seeding import SPLITS, episode_seed
from ..errors import UserError, check_choice, check_number
from ..evaluation.episodes import end_reply
from ..parsers import check_named
from ..play.curriculum import Course, Place
from ..play.rollout import Runner
from ..registry.making import make
from ..types import Reply, StepRecord

TIMEOUT, MAX_RETRIES, MAX_ANSWER_BYTES = 600.0, 2, 16_000_000


@dataclass(frozen=True)
class Task:
    """One episode to play."""

    env_id: str
    split: str = "train"
    number: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The episode's seed, as in `vlgym eval`."""
        return episode_seed(self.env_id, self.split, self.number)

    @property
    def place(self) -> Place:
        """Its environment and its level, as a curriculum names them."""
        return Place(self.env_id, self.arguments.get(LEVEL))

    def to_row(self) -> dict[str, Any]:
        """Return a row of a data set, which `play` takes, too; an import string is refused."""
        check_named(self.arguments, "A row")
        row = asdict(self)
        return {name: value for name, value in row.items() if value != {}}  # as Parquet wants it

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Task:
        """Return the task of a row; other columns are not read, and an import string is refused."""
        if not isinstance(arguments := row.get("arguments") or {}, Mapping):
            raise UserError(f"A row says arguments={arguments!r:.80}, which is no mapping of names to values.")
        check_named(arguments, "A row")
        names = [each.name for each in fields(cls)]
        return cls(**{name: row[name] for name in names if row.get(name) is not None})


@dataclass(frozen=True)
class FinishedEpisode:
    """A finished episode."""

    reward: float
    success: bool
    turns: tuple[StepRecord, ...]  # as an evaluation writes them
    messages: list[dict[str, Any]]  # the last prompt and its reply, in the form of chat completions
    info: dict[str, Any]  # `env_id`, `split`, `seed`, `invalid` (share of unreadable replies), `score`


def tasks(
    env_id: str, split: str = "train", n: int = 1, *, first: int = 0,
    curriculum: Course | None = None, **arguments: Any,
) -> list[Task]:  # fmt: skip
    """Return the tasks `first` to `first + n - 1` of a split; a wrong argument is an error here.

    With a curriculum each task is of the environment and the level that it chooses now. Call
    `curriculum.note(task.place, episode.success)` for each before you ask for the next.

    >>> tasks("vlgym/NumberLine-v1", "train", 2)[1].number
    1
    """
    check_choice("split", split, SPLITS)
    check_number("n", n, 1)
    check_number("first", first, 0)
    make(env_id, **arguments).close()
    if curriculum is None:
        return [Task(env_id, split, first + index, arguments) for index in range(n)]
    chosen = []
    for number in range(first, first + n):
        place = curriculum.choose(number)
        level = {} if place.level is None else {LEVEL: place.level}
        chosen.append(Task(place.env_id, split, number, {**arguments, **level}))
    return chosen


async def play(
    task: Task | Mapping[str, Any], *, base_url: str | None = None, model: str,
    api_key: str | None = None, client: Any = None, history: int | None = None, **sampling: Any,
) -> FinishedEpisode:  # fmt: skip
    """Play one episode; prompts, reading of replies and records are those of `vlgym eval`.

    Args:
        task: from `tasks`, or its row.
        base_url: the address, such as `http://127.0.0.1:8000/v1`; not needed with a client.
        client: an `openai.AsyncOpenAI`, or a trainer's object of that form; the caller closes it.
        history: past turns in the prompt, with their pictures; by default as the card says. With
            the environment's `max_turns` a prompt holds the whole episode.
        **sampling: further fields of each request, such as `temperature` or `max_tokens`.

    A prompt that the address refuses for its length, or filters, has an empty reply.

    Raises:
        UserError: the environment cannot be made, or neither address nor client is given.
        openai.OpenAIError: the address does not answer, or refuses; without the key and the
        address's password.
    """
    task = task if isinstance(task, Task) else Task.from_row(task)
    if client is None:
        if base_url is None:
            raise UserError("play() needs base_url or client.")
        check_url(base_url)

    # Secrets are taken out of every error that leaves.
    limits = TIMEOUT, MAX_RETRIES, MAX_ANSWER_BYTES
    server = client or open_client(base_url, api_key or "", 1, *limits)[0]
    known = (base_url or getattr(client, "base_url", ""), api_key or getattr(client, "api_key", ""))
    hide = make_hide(*(str(each or "") for each in known))

    # The environment steps in this thread; only the request is awaited.
    env = make(task.env_id, **task.arguments)
    layout = None if history is None else PromptBuilder.asked(history, history + 1)
    runner = Runner([env], split=task.split, first_episode=task.number, episodes=1, builder=layout)
    records: list[StepRecord] = []
    prompt: list[dict[str, Any]] = []
    try:
        while not runner.done:
            turn = runner.turns()[0]
            prompt = encode_messages(turn.messages)
            try:
                completion = await server.chat.completions.create(model=model, messages=prompt, **sampling)
            except Exception as error:
                if (status := find_status(error)) not in PROMPT:
                    raise hide_in(error, hide) from None
                reply = Reply("", refused=True, status=status)
            else:
                answer = json.dumps(completion.model_dump(warnings=False), default=str)
                reply = read_answer(answer.encode(), hide)
            reply, after = end_reply(env, reply)
            record = runner.advance([turn], [reply], model)[0]
            record.final_messages, record.after = None, after
            records.append(record)
    finally:
        runner.close()
        if client is None:
            await server.close()

    # The result is computed from the records, as an evaluation does it.
    last = records[-1]
    info = {"env_id": task.env_id, "split": task.split, "seed": task.seed, "score": last.score}
    info["invalid"] = sum(record.invalid for record in records) / len(records)
    return FinishedEpisode(
        sum(record.reward for record in records), last.success, tuple(records),
        [*prompt, {"role": "assistant", "content": last.reply}], info,
    )  # fmt: skip
