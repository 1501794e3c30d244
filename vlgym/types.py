"""The plain records that pass between the stages: parsed replies, outcomes, turns, steps.

Deliberately without behaviour: each stage owns its own logic, and this module imports nothing of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""`[H, W, 3] uint8`, RGB."""

Message = dict[str, Any]
"""`{"role": "system"|"user"|"assistant", "content": [PART, ...]}`; a part is `{"type": "image", "image": Image}` or
`{"type": "text", "text": str}`."""

Match = Callable[[str], str | None]
"""An environment's own match: returns the action that a candidate means, or `None` where it is illegal."""


@dataclass(frozen=True)
class Parsed:
    """Result of parsing a reply.

    Attributes:
        actions: candidate actions in order, as written by the model (stripped); empty on a failure, except that a
            `matching` parser's `illegal_action` names what was written.
        failure: `None`, or a failure code of the parser (`no_action`, `empty_action`, `bad_json`, ...).
        span: character range `[start, end)` of the action in the reply; `None` on a failure without an action.
        form: by which form it was read: the parser's name, or one of the forms of `auto` (`tag`, `answer`, `boxed`,
            ...); `None` on a failure.
    """

    actions: tuple[str, ...] = ()
    failure: str | None = None
    span: tuple[int, int] | None = None
    form: str | None = None


@runtime_checkable
class Parser(Protocol):
    """A total, pure function from reply text to actions, and its inverse.

    `parse` never raises, whatever the text, and takes time linear in its length. `format` writes a reply that `parse`
    reads back as exactly these actions. `describe` is the sentence in the prompt that states the reply format.

    A parser may also have `end(text) -> int | None`, its stop rule: the length of the shortest beginning of `text` that
    holds the action that `parse` reads, or `None`. What a model would write after that is not asked for (see
    `find_end`).

    A parser whose attribute `matching` is true reads by legality: `parse` and `end` take `(text, legal, matches)`, the
    last being the environment's own match (see `read_reply`).
    """

    name: str
    version: int

    def parse(self, text: str, legal: Sequence[str] | None) -> Parsed: ...

    def format(self, actions: Sequence[str], thoughts: str = "") -> str: ...

    def describe(self) -> str: ...


@dataclass(frozen=True)
class Outcome:
    """Result of an environment's `act`.

    Attributes:
        reward: reward of this action (reward units of the environment).
        terminated: the task itself ended (won, lost, goal reached).
        truncated: a limit of the underlying environment ended the episode; the turn limit is the base class's business.
        feedback: one line for `info["vlgym"]["feedback"]`; shown to the model only if the environment's text says so.
        illegal: the action is in the vocabulary but the rules forbade it in this state; counted as invalid.
        point: the place in the picture that the action named, x and y as shares of its width and height; pages mark it.
    """

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    feedback: str = ""
    illegal: bool = False
    point: tuple[float, float] | None = None


@dataclass(frozen=True)
class Turn:
    """A policy's input for one environment at one turn.

    Attributes:
        messages: the prompt as neutral chat messages; all that a model may see.
        env: the environment itself, for privileged policies (oracle, random) only.
        turn: index of the turn within the episode, from 0.
        repeat: which playing of this seed it is, from 0.
        part: part of the evaluation that the episode belongs to; elsewhere empty.
        legal: the legal actions, as far as the model is told them.
        feedback: `info["vlgym"]["feedback"]` of the last action; the messages do not hold it.
    """

    messages: list[Message]
    env: Any
    env_id: str = ""
    seed: int | None = None
    turn: int = 0
    repeat: int = 0
    part: str = ""
    text: str = ""
    legal: tuple[str, ...] = ()
    feedback: str = ""


@dataclass(frozen=True)
class Usage:
    """Tokens, time and attempts of a reply.

    Attributes:
        prompt_tokens: tokens of the prompt, as the model's side counts them.
        completion_tokens: tokens of the reply.
        seconds: from the question to the answer, attempts that failed included.
        attempts: how often it was asked until there was an answer.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1


Status = Literal["model", "tool_call", "reasoning_only", "filtered", "refused", "provider_error", "abort"]
"""Origin of a reply: the model wrote it, as text (`model`) or as a native tool call; the server sent thoughts and no
text; a filter declined; the server refused the prompt; the provider failed; the request was aborted."""
MODEL_STATUSES: tuple[Status, ...] = ("model", "tool_call")
"""Statuses of replies that are the model's."""


@dataclass(frozen=True)
class Reply:
    """A policy's answer.

    Attributes:
        extra: whatever else the policy wants to find again in the step record (token ids, ...).
        cut: a limit ended the reply before it was over.
        refused: the model, or a filter before it, declined to answer.
        usage: what it took, where that is known.
        status: whose words the text is; a policy without a server has none but `model`.
        reasoning: thoughts that came apart from the text.
    """

    text: str
    extra: Any = None
    cut: bool = False
    refused: bool = False
    usage: Usage | None = None
    status: Status = "model"
    reasoning: str = ""


@dataclass(frozen=True)
class LearnerNotes:
    """A learner's numbers on a turn that it trained on, for people to look at.

    Attributes:
        value: its critic's estimate of the state before the reply; `None` without a critic.
        advantage: advantage of the reply in the gradient steps; `None` if the reply was not trained on.
        tokens: the reply's tokens as text, the end-of-turn token included where it has one.
        log_probs: natural logarithm of each token's probability when it was sampled.
    """

    value: float | None = None
    advantage: float | None = None
    tokens: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()


class Policy(Protocol):
    """Answers a batch of prompts, one per environment.

    Whatever else a policy has is optional, and found by its name:

    - `describe() -> dict`: what its replies depend on, for a run's record; by default its name.
    - `prefers() -> dict`: settings that it was made for (`history_turns`, `history_images`, `parser`), which hold where
      the user names none.
    - `submit(turn) -> concurrent.futures.Future[Reply]`: with it, a slow answer holds up its own episode alone: each
      environment goes on as soon as its own answer is there (see `AskingPolicy`).
    - `sees`: `True` for a model that is given pictures; `vlgym eval` first looks whether they reach it.
    - `concurrency`: how many episodes at once suit it.
    - `check(pictures=True)`: called once before any environment is made, `pictures` being whether prompts hold any;
      raises `UserError` where no reply can be had.
    - `describe_session()`: what its replies do not depend on (an address, limits), for the record of a session.
    - `close()`: called once at the end.
    """

    name: str

    def reply(self, turns: Sequence[Turn]) -> list[Reply]: ...


@runtime_checkable
class AskingPolicy(Policy, Protocol):
    """A policy that answers each prompt for itself, such as an endpoint's: `reply` waits for all of a batch.

    The `Future` of `submit` ends with a `Reply`, or with an exception: `UserError` where going on makes no sense (a
    wrong key), which ends the run.
    """

    def submit(self, turn: Turn) -> Future[Reply]: ...


@dataclass
class StepRecord:
    """One turn of one episode, complete enough to be scored again.

    Attributes:
        episode: index of the episode within its run.
        seed: seed of the episode's reset; `None` when unknown.
        turn: index of the turn within the episode, from 0.
        messages: the exact prompt that the policy saw.
        image: image of this turn, `[H, W, 3] uint8`.
        text: text of this turn's observation.
        reply: the policy's text, as far as an environment reads it, thoughts shortened where it is longer than
            `MAX_REPLY` (see `vlgym.parsers.thoughts.shorten`).
        actions: actions that were executed, in order.
        parse: `"ok"`, the failure code, or `"env_error"` where the environment itself failed (see `Runner`).
        invalid: no legal action was read from the reply.
        success: the success flag after the turn.
        score: the benchmark's own score after the turn, where one exists.
        cut: a limit ended the reply before it was over, as the policy says, or that of `reply`.
        refused: the policy declined to answer, as it says.
        repeat: which playing of this seed it is, from 0.
        part: part of the evaluation that the episode belongs to; elsewhere empty.
        level: the difficulty level that a curriculum chose; `None` without one.
        after: what the policy went on to write after its reply was over (see `Parser.end`); it is not read.
        usage: what the reply took, where the policy says so.
        status, reasoning: as in `Reply`.
        extra: what the policy attached to its reply; not written to disk.
        span: character range `[start, end)` of the action in `reply`; `None` where none was read.
        form: by which form the action was read (see `Parsed`); `None` where none was.
        point: as in `Outcome`, of the last action that was executed.
        learner: what a learner computed of the turn, where one recorded it.
        final_messages: where the episode was truncated, the prompt that the next turn would have had (for
            bootstrapping a value);
            else `None`. Not written to disk.
    """

    env_id: str
    episode: int
    seed: int | None
    turn: int
    messages: list[Message]
    image: Image
    text: str
    reply: str
    actions: tuple[str, ...]
    parse: str
    reward: float
    terminated: bool
    truncated: bool
    invalid: bool
    success: bool
    score: float | None = None
    cut: bool = False
    refused: bool = False
    repeat: int = 0
    part: str = ""
    level: int | None = None
    after: str = ""
    usage: Usage | None = None
    status: Status = "model"
    reasoning: str = ""
    extra: Any = field(default=None, repr=False)
    final_messages: list[Message] | None = field(default=None, repr=False)
    span: tuple[int, int] | None = None
    form: str | None = None
    point: tuple[float, float] | None = None
    learner: LearnerNotes | None = None
