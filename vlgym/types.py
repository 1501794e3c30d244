"""The plain records that pass between the stages: parsed replies, outcomes, turns, steps.

They have no behaviour: each stage owns its own logic. This module imports nothing of the package.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # `[H, W, 3] uint8`, RGB
Message = dict[str, Any]
"""`{"role": "system"|"user"|"assistant", "content": [PART, ...]}`; a part is
`{"type": "image", "image": Image}` or `{"type": "text", "text": str}`."""
Match = Callable[[str], str | None]
"""An environment's match: the action that a candidate means, or `None` where it is illegal."""


@dataclass(frozen=True)
class Parsed:
    """Result of parsing a reply.

    Attributes:
        actions: candidates in order, stripped; empty on a failure, except for `illegal_action` of a
            `matching` parser.
        failure: `None`, or a failure code of the parser (`no_action`, `bad_json`, ...).
        span: character range `[start, end)` of the action in the reply.
        form: the parser's name, or a form of `auto` (`tag`, `answer`, `boxed`, ...).
    """

    actions: tuple[str, ...] = ()
    failure: str | None = None
    span: tuple[int, int] | None = None
    form: str | None = None


@runtime_checkable
class Parser(Protocol):
    """A total, pure function from reply text to actions, and its inverse.

    `parse` never raises, whatever the text, and takes time linear in its length. `format` writes a
    reply that `parse` reads back as exactly these actions. `describe` is a sentence of the prompt.

    A parser may also have `end(text) -> int | None`, its stop rule (see `find_end`): the length of
    the shortest beginning of `text` that holds the action. A model writes no further.

    A parser whose attribute `matching` is true reads by legality: `parse` and `end` take
    `(text, legal, matches)`, the last being the environment's `Match` (see `read_reply`).
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
        terminated: the task itself ended (won, lost, goal reached).
        truncated: a limit of the underlying environment, not of turns, ended the episode.
        feedback: one line for `info["vlgym"]["feedback"]`; a model sees it only in a turn's text.
        illegal: the rules forbade the action in this state; counted as invalid.
        point: the place in the picture that the action named, as shares of width and height.
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
    """Tokens, seconds (failed attempts included) and attempts of a reply."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1


Status = Literal["model", "tool_call", "reasoning_only", "filtered", "refused", "provider_error", "abort"]
"""Origin of a reply: the model wrote text or a native tool call; the server sent thoughts alone; a
filter declined; the server refused; the provider failed; the request was aborted."""
MODEL_STATUSES: tuple[Status, ...] = ("model", "tool_call")  # the model wrote the reply


@dataclass(frozen=True)
class Reply:
    """A policy's answer.

    Attributes:
        extra: further data of the policy for the step record (token ids, ...).
        cut: a limit ended the reply before it was over.
        refused: the model, or a filter before it, declined to answer.
        status: origin of the text; a policy without a server has `model` alone.
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
        value: the critic's estimate of the state before the reply.
        advantage: of the reply, in the gradient steps; `None` if it was not trained on.
        tokens: of the reply, as text, with the end-of-turn token where it has one.
        log_probs: natural logarithm of each token's probability when it was sampled.
    """

    value: float | None = None
    advantage: float | None = None
    tokens: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()


class Policy(Protocol):
    """Answers a batch of prompts, one per environment.

    Further members are optional, and found by name:

    - `describe() -> dict`: settings that replies depend on; by default its name.
    - `prefers() -> dict`: its default `history_turns`, `history_images` and `parser`.
    - `submit(turn) -> concurrent.futures.Future[Reply]`: each environment goes on as soon as its
      own answer is there (see `AskingPolicy`).
    - `sees`: `True` for a model that is given pictures; `vlgym eval` first tests if they reach it.
    - `concurrency`: the number of episodes at once that suits it.
    - `check(pictures=True)`: called before any environment is made; raises `UserError` where no
      reply can be had.
    - `describe_session()`: settings that its replies do not depend on (an address, limits).
    - `close()`: called once at the end.
    """

    name: str

    def reply(self, turns: Sequence[Turn]) -> list[Reply]: ...


@runtime_checkable
class AskingPolicy(Policy, Protocol):
    """A policy that answers each prompt for itself; `reply` waits for all of a batch.

    The `Future` ends with a `Reply`, or with `UserError` (a wrong key), which ends the run.
    """

    def submit(self, turn: Turn) -> Future[Reply]: ...


@dataclass
class StepRecord:
    """One turn of one episode, complete enough to be scored again.

    Attributes:
        episode: index of the episode within its run.
        turn: index of the turn within the episode, from 0.
        image: image of this turn, `[H, W, 3] uint8`.
        text: text of this turn's observation.
        reply: the policy's text up to its stop; over `MAX_REPLY` with shortened thoughts.
        actions: actions that were executed, in order.
        parse: `"ok"`, the failure code, or `"env_error"` where the environment failed.
        invalid: no legal action was read from the reply.
        success, score: flag and the benchmark's own score, where it has one, after the turn.
        cut: a limit ended the reply before it was over, the policy's or that of `reply`.
        repeat: which playing of this seed it is, from 0.
        part: part of the evaluation that the episode belongs to; elsewhere empty.
        level: the difficulty level that a curriculum chose.
        after: the policy's text after its reply was over (see `Parser.end`); it is not read.
        refused, usage, status, reasoning: as in `Reply`.
        extra: as in `Reply`; not written to disk.
        span, form: as in `Parsed`.
        point: as in `Outcome`, of the last action that was executed.
        final_messages: of a truncated episode, the next turn's prompt; not written to disk.
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
