"""One game that a person plays on the web page, in a separate process: `python -m vlgym.ui.game_process`.

The process plays an evaluation of the policy `human`: the same seeds, prompts, parser and turn limit as for a model,
and the same records. In a game of several agents the other seats are held by the game's players, by any policy, or by
further people at the same screen. It reads one JSON object a line and writes one a line (see `vlgym.ui.games`):

    read    {"env_id", "split", "episodes", "arguments", "out", "opponents", "policy"}    what to play, first of all
            {"reply": text} or {"action": number of a legal action} or {"oracle": true}
    write   {"kind": "turn", ...}, {"kind": "oracle", "reply": text or null}, {"kind": "episode", ...},
            {"kind": "error", "line": text}
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from ..env import VLEnv
from ..env.rendering import encode_png
from ..errors import UserError, check_choice, plain_line
from ..evaluation import plan_ids
from ..evaluation.episodes import end_reply
from ..evaluation.folder import EvaluationFolder, describe_evaluation
from ..evaluation.meter import Prices
from ..evaluation.plan import Part, list_jobs
from ..evaluation.policy_names import ALONE, make_policy
from ..play.env_failures import close_env
from ..play.human import complete_reply, takes_lines
from ..play.policies import OraclePolicy, Policy
from ..play.rollout import Runner
from ..registry import get_registry
from ..registry.making import load_class, unwrap
from ..terminal import end_with_parent
from ..types import Message, Reply, StepRecord, Turn
from .games import HOT_SEAT

MOST_ACTIONS = 500
"""Most legal actions that are sent; the replies of the others can be typed."""


class Conversation:
    """The two ends of the pipe."""

    def __init__(self, read: TextIO, write: TextIO) -> None:
        self.read, self.write = read, write

    def say(self, kind: str, **said: Any) -> None:
        """Write a line."""
        json.dump({"kind": kind, **said}, self.write)
        self.write.write("\n")
        self.write.flush()

    def hear(self) -> dict[str, Any]:
        """Read a line.

        Raises:
            EOFError: the page ended the game.
        """
        line = self.read.readline()
        if not line:
            raise EOFError
        said = json.loads(line)
        return said if isinstance(said, dict) else {}


class HotSeat:
    """The policy `human`, which answers for further people at the same screen, who hold the other seats of a game."""

    name = "human"

    def __init__(self, pipe: Conversation) -> None:
        self.pipe, self.episode = pipe, 0

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Wait for the reply of each seat.

        Raises:
            EOFError: the page ended the game.
        """
        replies = []
        for turn in turns:
            chair: Any = turn.env
            game = chair.table.game
            self.pipe.say(
                "turn", episode=self.episode, before={}, hot=True,
                **_describe(chair, turn, game.tell(chair.seat), game.max_turns, chair.seat),
            )  # fmt: skip
            replies.append(Reply(_ask(self.pipe, chair, turn)))
        return replies


class Guest:
    """A policy whose records have only its name: its options may be secret."""

    def __init__(self, policy: Policy, name: str) -> None:
        self._policy, self.name = policy, name

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return the policy's answers."""
        return self._policy.reply(turns)


def seat_others(env_id: str, others: str, policy: Sequence[Any] | None, people: HotSeat) -> Any:
    """Return the players of the other seats, as `opponents` of a game takes them.

    `others` is `HOT_SEAT`, a player of the game, a policy of `ALONE`, or the name of the configured `policy` (see
    `vlgym.ui.games.Configured`).

    Raises:
        UserError: there is no such policy, or it has no such option.
    """
    named = getattr(load_class(get_registry().get(env_id)), "named_players", ())
    if policy is not None:
        return Guest(make_policy(*policy), policy[0])
    if others in named:
        return others
    if others in (HOT_SEAT, people.name):
        return Guest(people, others)
    return Guest(make_policy(check_choice("Other seats", others, {*named, HOT_SEAT, *ALONE}), {}), others)


def play(pipe: Conversation, settings: dict[str, Any]) -> None:
    """Play all episodes of a plan, each answered through the pipe, and write each down when it ends.

    Raises:
        UserError: the environment cannot be made.
        EOFError: the page ended the game.
    """
    arguments, others, people = dict(settings["arguments"]), settings["opponents"], HotSeat(pipe)
    if others:
        arguments["opponents"] = seat_others(settings["env_id"], others, settings["policy"], people)
    (part,) = plan_ids(
        [settings["env_id"]], episodes=settings["episodes"], split=settings["split"], arguments=arguments
    )
    session = {"command": "vlgym ui", "started": datetime.now(UTC).isoformat(timespec="seconds")}
    env = part.make()
    try:
        run = describe_evaluation([part], people, builders={}, prices=Prices().to_dict())
        with EvaluationFolder(Path(settings["out"]), run, session=session, resume=False) as folder:
            for job in list_jobs([part]):
                people.episode = job.number
                records, last = _play_episode(pipe, env, part, job.number, hot=others in (HOT_SEAT, people.name))
                folder.write(records)
                pipe.say(
                    "episode", episode=job.number, before=last, success=records[-1].success, turns=len(records),
                    truncated=records[-1].truncated, picture=_encode(env.image()),
                )  # fmt: skip
    finally:
        close_env(env)


def _play_episode(
    pipe: Conversation, env: VLEnv, part: Part, number: int, *, hot: bool
) -> tuple[list[StepRecord], dict[str, Any]]:
    """Return the records of an episode, and what the page shows of its last reply."""
    runner = Runner([env], split=part.split, first_episode=number, episodes=1, part=part.key)
    records: list[StepRecord] = []
    before: dict[str, Any] = {}
    while not runner.done:
        (turn,) = runner.turns()
        pipe.say(
            "turn", episode=number, before=before, hot=hot,
            **_describe(env, turn, unwrap(env).state_text(), env.max_turns, getattr(unwrap(env), "seat_now", None)),
        )  # fmt: skip
        reply, after = end_reply(env.parser, Reply(_ask(pipe, env, turn)))
        record = runner.advance([turn], [reply], "human")[0]
        record.after, record.final_messages = after, None
        records.append(record)
        before = {
            "reply": reply.text, "span": record.span, "parse": record.parse, "actions": list(record.actions),
            "reward": record.reward, "feedback": runner.slots[0].info["vlgym"]["feedback"],
            "return": env.episode_return,
        }  # fmt: skip
    return records, before


def _ask(pipe: Conversation, env: Any, turn: Turn) -> str:
    """Return the reply that the person gives; a bare legal action is put into the reply format, as in a terminal."""
    while True:
        said = pipe.hear()
        if said.get("oracle"):
            solved = OraclePolicy(fallback=True).reply([turn])[0].text if _oracle(env) != "none" else None
            pipe.say("oracle", reply=solved)
        elif isinstance(said.get("action"), int):
            return env.parser.format([env.legal_actions()[said["action"]]])
        elif isinstance(said.get("reply"), str):
            return complete_reply(env, said["reply"])


def _oracle(env: Any) -> str:
    return env.vlgym_spec.oracle if env.vlgym_spec is not None else "none"


def _describe(env: Any, turn: Turn, text: str, max_turns: int, seat: int | None) -> dict[str, Any]:
    """Return the page's data of a turn."""
    actions = env.legal_actions()
    pictures: list[str] = []
    return {
        "seed": turn.seed, "turn": turn.turn, "max_turns": max_turns, "actions": actions[:MOST_ACTIONS],
        "more": max(0, len(actions) - MOST_ACTIONS), "lines": takes_lines(env), "oracle": _oracle(env),
        "messages": [_plain(message, pictures) for message in turn.messages], "pictures": pictures,
        "text": text, "format": env.parser.describe(), "seat": seat,
    }  # fmt: skip


def _plain(message: Message, pictures: list[str]) -> dict[str, Any]:
    """A message with its pictures by their numbers."""
    parts: list[dict[str, Any]] = []
    for part in message["content"]:
        if part["type"] == "image":
            parts.append({"picture": len(pictures)})
            pictures.append(_encode(part["image"]))
        else:
            parts.append({"text": part["text"]})
    return {"role": message["role"], "parts": parts}


def _encode(image: Any) -> str:
    return base64.b64encode(encode_png(image)).decode("ascii")


def main() -> None:
    """Play the plan in the first line of the input."""
    end_with_parent()
    answer = os.dup(1)
    os.dup2(2, 1)  # a library's prints must not reach the pipe
    with os.fdopen(answer, "w", encoding="utf-8") as file:
        pipe = Conversation(sys.stdin, file)
        try:
            play(pipe, pipe.hear())
        except EOFError:
            return
        except UserError as error:
            pipe.say("error", line=plain_line(str(error), 2000))
        except Exception as error:  # an environment may raise anything; the page shows it
            pipe.say("error", line=plain_line(f"{type(error).__name__}: {error}", 2000))
            raise


if __name__ == "__main__":
    main()
