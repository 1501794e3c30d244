"""Check before a run: parser, evaluation and `env.step` read a dozen forms of a reply alike."""

import json
from collections.abc import Callable, Sequence

from ..env import VLEnv
from ..env.seeding import episode_seed
from ..errors import FailedError
from ..parsers import read_reply, write_reply
from ..play.controls import SHOWN
from ..types import Reply, StepRecord, Turn
from .episodes import Player, _Lane
from .plan import Job, Part


def check_readings(parts: Sequence[Part], tell: Callable[[str], object]) -> None:
    """Send the forms to each part; tell which are read differently, then raise `FailedError`."""
    forms, different = dict[str, str](), 0
    for part in (part for part in parts if part.pictures == SHOWN):
        env, seed = part.make(), episode_seed(part.env_id, part.split, 0)
        env.reset(seed=seed)
        forms = list_forms(env)
        played = _FirstTurns(part, [*forms.values()]).played
        for (name, text), record in zip(forms.items(), played, strict=True):
            env.reset(seed=seed)

            # Read once without a game, once from an evaluation's record, once by a step.
            parsed = read_reply(env.parser, text, env.legal_actions(), env.match_action)
            actions = [env.match_action(each) for each in parsed.actions]
            failure = parsed.failure or ("illegal_action" if None in actions else "ok")
            details = env.step(text)[-1]["vlgym"]
            read = _describe(failure, actions, parsed.form)
            evaluated = _describe(record.parse, record.actions, record.form)
            stepped = _describe(details["parse"], details["actions"], details["form"])
            if not read == evaluated == stepped:
                different += 1
                tell(f"{part.key}, {name}: parser {read}, evaluation {evaluated}, env.step {stepped}")
        env.close()
    if different:
        raise FailedError(f"{different} reply forms are read differently, so a result would depend on who reads.")
    tell(f"{len(forms)} reply forms are read alike by parser, evaluation and env.step.")


def list_forms(env: VLEnv) -> dict[str, str]:
    """Return replies with a legal action, by the name of their form, and one without."""
    legal = env.legal_actions()
    action = env.oracle() or legal[0]
    another = next((each for each in legal if each != action), action)
    words = (action, another, "ACTION", f'"{action}"', action.replace(" ", "_"))
    reply, other, placeholder, quoted, joined = (write_reply(env.parser, [each], "", legal) for each in words)
    return {
        "asked format": reply, "quoted": quoted, "underscore": joined, "bare": action,
        "nothing": "", "placeholder first": f"I answer as {placeholder}. {reply}",
        "two actions": f"{reply} or {other}",
        "thought of another": f"<think>Or {other}?</think>\n{reply}",
        "Action: line": f"I go on.\nAction: {action}",
        "answer tag": f"<answer>{action}</answer>", "boxed": rf"\boxed{{{action}}}",
        "tool call": f"<tool_call>{json.dumps({'name': 'act', 'arguments': {'action': action}})}</tool_call>",
    }  # fmt: skip


def _describe(parse: str, actions: Sequence[str | None], form: str | None) -> str:
    return f"{str(actions[0])!r:.40} by {form}" if parse == "ok" else parse


class _FirstTurns(Player):
    """Plays the first turn of a part with each text as the reply, its own policy."""

    name = "forms"

    def __init__(self, part: Part, texts: Sequence[str]) -> None:
        super().__init__([Job(part, 0)] * len(texts), self, num_envs=1)
        self.texts, self.played = texts, list[StepRecord]()
        self.play()

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(self.texts[len(self.played)])]

    def _answer(self, lane: _Lane, reply: Reply) -> None:
        super()._answer(lane, reply)
        self.played += lane.records
        lane.open, lane.turn = False, None
