"""One game that a person plays on the web page, in a separate process: `python -m vlgym.ui.game_process SOCKET`.

The process plays an evaluation of the policy `human`: the same seeds, prompts, parser and turn limit as for a model,
and the same records. In a game of several agents the other seats are held by the game's players, by any policy, or by
further people at the same screen. It reads and writes frames of `vlgym.env_groups.wire` (see `vlgym.ui.games`):

    read    {"env_id", "split", "episodes", "arguments", "out", "opponents", "policy"}    what to play, first of all
            {"reply": text}, {"action": number of a legal action}, {"oracle": true} or {"next": true}
    write   {"kind": "turn", ...}, {"kind": "oracle", "reply": text or null}, {"kind": "episode", ...},
            {"kind": "error", "line": text}
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..env import VLEnv
from ..env_groups.wire import pack, receive
from ..errors import UserError, check_choice, plain_line
from ..evaluation import plan_ids
from ..evaluation.episodes import end_reply
from ..evaluation.folder import EvaluationFolder, describe_evaluation
from ..evaluation.meter import Prices
from ..evaluation.plan import Part, list_jobs
from ..evaluation.policy_names import ALONE, make_policy
from ..games.table import Chair
from ..play.env_failures import close_env
from ..play.human import complete_reply, takes_lines
from ..play.policies import OraclePolicy, Policy
from ..play.rollout import Runner
from ..registry import get_registry
from ..registry.making import load_class, unwrap
from ..terminal import end_with_parent
from ..types import Reply, StepRecord, Turn
from .games import HOT_SEAT

MOST_ACTIONS = 500
"""Most legal actions that are sent; the replies of the others can be typed."""


class Person:
    """The policy `human`: the person at the page, or further people there who hold the other seats of a game.

    Attributes:
        hot: whether several people sit at the screen.
        said: what the page shows of the episode, and of the reply before.
    """

    name = "human"

    def __init__(self, page: socket.socket, *, hot: bool) -> None:
        self.page, self.hot = page, hot
        self.said: dict[str, Any] = {}

    def say(self, kind: str, **said: Any) -> None:
        """Tell the page something."""
        with suppress(OSError):  # it has ended; `receive` tells
            self.page.sendall(pack({"kind": kind, **said}))

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Wait for the reply of each seat.

        Raises:
            EOFError: the page ended the game.
        """
        return [self._ask(turn) for turn in turns]

    def _ask(self, turn: Turn) -> Reply:
        """Return the reply that the person gives; a bare legal action is put into the reply format."""
        env: Any = unwrap(turn.env)
        oracle = env.vlgym_spec.oracle if env.vlgym_spec is not None else "none"
        self._show(env, turn, oracle)
        while True:
            said = receive(self.page)
            if said.get("oracle"):
                solved = OraclePolicy(fallback=True).reply([turn])[0].text if oracle != "none" else None
                self.say("oracle", reply=solved)
            elif isinstance(said.get("action"), int):
                return Reply(env.parser.format([env.legal_actions()[said["action"]]]))
            elif isinstance(said.get("reply"), str):
                return Reply(complete_reply(env, said["reply"]))

    def _show(self, env: Any, turn: Turn, oracle: str) -> None:
        """Send the page's data of a turn; a message has its pictures by their numbers."""
        game, seat, before = env, getattr(env, "seat_now", None), self.said
        if isinstance(env, Chair):  # another person's
            game, seat, before = env.table.game, env.seat, {**before, "before": {}}
        text = game.tell(seat) if isinstance(env, Chair) else env.state_text()
        actions = env.legal_actions()
        pictures: list[Any] = []
        messages = []
        for message in turn.messages:
            parts: list[dict[str, Any]] = []
            for part in message["content"]:
                if part["type"] == "image":
                    parts.append({"type": "image", "file_name": str(len(pictures))})
                    pictures.append(part["image"])
                else:
                    parts.append(dict(part))
            messages.append({"role": message["role"], "content": parts})
        self.say(
            "turn", **before, hot=self.hot, seed=turn.seed, turn=turn.turn, max_turns=game.max_turns,
            actions=actions[:MOST_ACTIONS], more=max(0, len(actions) - MOST_ACTIONS), lines=takes_lines(env),
            oracle=oracle, messages=messages, pictures=pictures, text=text, format=env.parser.describe(), seat=seat,
        )  # fmt: skip


class Guest:
    """A policy whose records have only its name: its options may be secret."""

    def __init__(self, policy: Policy, name: str) -> None:
        self._policy, self.name = policy, name

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return the policy's answers."""
        return self._policy.reply(turns)


def seat_others(env_id: str, others: str, policy: Sequence[Any] | None, person: Person) -> Any:
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
    if person.hot:
        return Guest(person, others)
    return Guest(make_policy(check_choice("Other seats", others, {*named, HOT_SEAT, *ALONE}), {}), others)


def play(page: socket.socket, settings: dict[str, Any]) -> None:
    """Play all episodes of a plan, each answered by the page, and write each down when it ends.

    Raises:
        UserError: the environment cannot be made.
        EOFError: the page ended the game.
    """
    arguments, others = dict(settings["arguments"]), settings["opponents"]
    person = Person(page, hot=others in (HOT_SEAT, Person.name))
    if others:
        arguments["opponents"] = seat_others(settings["env_id"], others, settings["policy"], person)
    (part,) = plan_ids(
        [settings["env_id"]], episodes=settings["episodes"], split=settings["split"], arguments=arguments
    )
    session = {"command": "vlgym ui", "started": datetime.now(UTC).isoformat(timespec="seconds")}
    env = part.make()
    try:
        run = describe_evaluation([part], person, builders={}, prices=Prices().to_dict())
        with EvaluationFolder(Path(settings["out"]), run, session=session, resume=False) as folder:
            for job in list_jobs([part]):
                if job.number:
                    receive(page)  # the person has looked at the end of the episode before
                person.said = {"episode": job.number, "before": {}}
                records = _play_episode(person, env, part, job.number)
                folder.write(records)
                last = records[-1]
                person.say(
                    "episode", **person.said, success=last.success, turns=len(records), truncated=last.truncated,
                    pictures=[env.image()],
                )  # fmt: skip
    finally:
        close_env(env)


def _play_episode(person: Person, env: VLEnv, part: Part, number: int) -> list[StepRecord]:
    """Return the records of an episode."""
    runner = Runner([env], split=part.split, first_episode=number, episodes=1, part=part.key)
    records: list[StepRecord] = []
    while not runner.done:
        turns = runner.turns()
        reply, after = end_reply(env.parser, person.reply(turns)[0])
        record = runner.advance(turns, [reply], person.name)[0]
        record.after, record.final_messages = after, None
        records.append(record)
        person.said["before"] = {
            "reply": reply.text, "span": record.span, "parse": record.parse, "actions": list(record.actions),
            "reward": record.reward, "feedback": runner.slots[0].info["vlgym"]["feedback"],
            "return": env.episode_return,
        }  # fmt: skip
    return records


def main() -> None:
    """Play the plan that is read first."""
    end_with_parent()
    with socket.socket(fileno=int(sys.argv[-1])) as page:
        try:
            play(page, receive(page))
        except EOFError:
            return
        except Exception as error:  # an environment may raise anything; the page shows it
            line = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            page.sendall(pack({"kind": "error", "line": plain_line(line, 2000)}))


if __name__ == "__main__":
    main()
