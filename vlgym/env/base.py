"""VLEnv: the base class that makes an author's rules (`Game`) a Gymnasium environment.

It parses replies, applies the invalid-action policy, counts turns, assembles observation and info,
saves and restores. It knows nothing of models, history or wrappers.
"""

import contextlib
import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from ..errors import UserError, check_choice, check_number, check_reward
from ..parsers import get_parser, list_actions, read_reply, write_reply
from ..parsers.silence import draw_move, pay_stand_in, write_feedback
from ..types import Image, Outcome, Parsed, Parser
from .arguments import arguments_in_force, bind_arguments, signature_of
from .game import Game
from .prompts import IN_PICTURE, IN_WORDS, WITHOUT_PICTURE
from .reset_options import LEVEL, begin_level, level_option, plain_options, read_level, read_reset_options
from .seeding import split_of
from .spaces import MessageSpace, ReplySpace, clean_text
from .spec import PLANNERS, EnvSpec
from .states import PICKLE_PROTOCOL, check_picklable, rebuild, seal_state, unfit, unseal_state

GREY_LEVEL = 128  # of plain grey pictures, 0 to 255
COUNTERS = ("turn", "episode_return", "_ended", "_forced", "_acted", "_failure")  # in a saved state
MODALITIES = ("image", "text", "both", "none")
INVALID_POLICIES = ("noop", "random", "published", "terminate")


class VLEnv(Game, gymnasium.Env[dict[str, Any], str]):
    """A Gymnasium environment that shows an image and a text, and is acted on by free text.

    Authors write the methods of `Game`: `start`, `act`, `image`, `task`, `state_text`,
    `legal_actions`, `success` and (with an oracle) `oracle` and `think`.

    Observation: `{"image": [H, W, 3] uint8, "text": str}`; the text is this turn's complete message.
    Action: any string; 16,384 characters of it are read, thoughts aside.
    Info: `success`, `invalid_action`, `score` (where one exists), and `vlgym`: `turn`, `actions`
        (executed), `parse` (`"ok"` or the failure code), `span` (characters `[start, end)` of the
        action in the reply), `form` (by which it was read), `point` (the place in the picture that
        the action named, see `Outcome`), `legal_actions` (empty with a `notation`), `feedback`,
        `instructions`, `turn_text`; `span`, `form` and `point` may be `None`.

    Args:
        parser: parser name, import string or object; by default the spec's first reply style, under
            the Global planner `plan` instead of `auto`, `tag` or `json`.
        planner: `online`, one action a reply; or `global` (MageBench), one reply that holds the
            whole plan: it is executed, and the episode ends.
        invalid_action: effect of an unreadable or illegal reply. `noop` (default): none, at
            `step_cost`. `random`: a random legal action, of which only the cost counts; an end that
            it brings is no success. `published`: a random legal action, paid in full, as in the
            papers' code. `terminate`: the end (also where the rules refuse). A plan's actions
            before its first illegal one are executed.
        invalid_penalty: subtracted from the reward of an invalid turn (reward units, `>= 0`).
        max_turns: actions until truncation; default from the spec.
        level: difficulty level of every episode, 0 the easiest; `reset(options={"level": k})`
            chooses it for one episode. `None` changes nothing.
        modality: what shows the state: `image` (default); `text`, `describe`'s words at the top of
            the turn's text; `both`; or `none`. Without `image` the observation's picture is plain
            grey, and prompts leave it out.
        image_size: `(height, width)` in pixels; default from the spec.
        render_mode: `"rgb_array"` or `None`.

    Attributes:
        episode_return: sum of the rewards of this episode so far.
        turn: actions executed in this episode so far, an invalid reply counting as one.
        instructions: what the prompt of this episode says once: task and reply format.
        reset_seed: the seed that began this episode; `None` where the generator went on.
        seed_split: the split that the last seed belongs to (`vlgym.env.seeding.split_of`); `None`
            without one.

    Raises:
        UserError: an argument is out of its range.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012
    __signature__: ClassVar[inspect.Signature]
    _kwargs: dict[str, Any]
    _arguments: dict[str, Any] | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Note the arguments of the constructor."""
        env = super().__new__(cls)
        env._kwargs = bind_arguments(cls, args, kwargs)
        return env

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show help the constructor's signature, not `__new__`'s; add the option `level`."""
        super().__init_subclass__(**kwargs)
        cls.__signature__ = signature_of(cls)
        if cls.level_arguments:
            cls.reset_options = {**cls.reset_options, LEVEL: level_option(len(cls.level_arguments))}

    def __init__(
        self,
        *,
        parser: str | Parser | None = None,
        planner: str = "online",
        invalid_action: str = "noop",
        invalid_penalty: float = 0.0,
        max_turns: int | None = None,
        level: int | None = None,
        modality: str = "image",
        image_size: tuple[int, int] | None = None,
        render_mode: str | None = None,
        vlgym_spec: EnvSpec | None = None,
    ) -> None:
        check_choice("invalid_action", invalid_action, INVALID_POLICIES)
        check_choice("modality", modality, MODALITIES)
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        check_choice("planner", planner, vlgym_spec.planners if vlgym_spec else PLANNERS)
        check_number("invalid_penalty", invalid_penalty, 0, hint="It is subtracted from the reward.")
        if max_turns is not None:
            check_number("max_turns", max_turns, 1)

        # A level changes other arguments, and only for an episode.
        if self.level_arguments:
            level = self._kwargs.get(LEVEL)  # a base that has a `level` of another kind does not pass it on
        self._level = None if level is None else read_level(self, level)
        self._usual: dict[str, Any] = {}  # in an episode with a level: the values without one
        self.vlgym_spec = vlgym_spec

        # The reply style follows from the card and the planner, where none is named.
        self.planner, self.modality = planner, modality
        if modality == "text":
            self.prompt = replace(self.prompt, in_words=True)  # type: ignore[misc]
        style = vlgym_spec.reply_styles[0] if vlgym_spec else "auto"
        if planner == "global" and style in ("auto", "tag", "json"):
            style = "plan"
        self.parser: Parser = get_parser(parser or style)
        if self.notation and getattr(self.parser, "numbered", False):
            numbers = f"parser={self.parser.name!r} numbers the legal actions"
            raise UserError(f"{numbers}, which this environment does not list.")
        self.invalid_action = invalid_action
        self.invalid_penalty = float(invalid_penalty)
        self.max_turns = max_turns or (vlgym_spec.max_turns if vlgym_spec else 100)

        # Spaces have one size from the beginning: vectors of environments copy them.
        default = self.natural_size() or (vlgym_spec or EnvSpec).image_size
        self.image_size = check_size("image_size", image_size or default)
        self.render_mode = render_mode
        picture = spaces.Box(0, 255, (*self.image_size, 3), np.uint8)
        self.observation_space = spaces.Dict({"image": picture, "text": MessageSpace()})
        self.action_space = ReplySpace(self.parser)

        # No episode has begun: a step before the first reset is refused.
        self.turn, self.episode_return = 0, 0.0
        self.reset_seed: int | None = None
        self.seed_split: str | None = None
        self._ended, self._closed = True, False
        self._forced = False  # an action that stood for an invalid reply ended the episode
        self._acted = False  # a legal action of the agent was executed
        self._failure: str | None = None  # of this seat's last reply, where no action was read from it
        self._events: list[dict[str, Any]] = []
        self._start: dict[str, Any] | None = None
        self.instructions = self._turn_text = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode. The same seed gives the same episode in any process, after any history.

        Raises:
            UserError: an unknown or wrong option, or the episode cannot begin; the one before goes
                on as it was.
        """
        options = plain_options(options)
        if self._arguments is None:
            self._arguments = self.arguments  # of the constructor, before an episode writes over them
        checked = self._read_options(options)

        # A failure leaves the episode before, with its generator.
        before = self._bookmark()
        try:
            super().reset(seed=seed)
            self.reset_seed = seed
            if seed is not None:
                self.seed_split = split_of(seed)
            self._begin(options, checked)
            return self._look()
        except Exception:
            self._go_back(before)
            raise

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Read the reply, act, and observe. Never raises on any string.

        Raises:
            gymnasium.error.ResetNeeded: the episode has ended, none was begun, or the environment
                is closed.
            UserError: `action` is not a string.
        """
        self._check_open()
        if self._ended:
            raise ResetNeeded("The episode has ended (or none was begun): call env.reset() first.")
        if not isinstance(action, str):
            kind = type(action).__name__
            raise UserError(f"An action is the model's reply, a string; got {kind}: {action!r:.80}.")

        # The reply becomes actions, and these an outcome.
        parsed = read_reply(self.parser, action, self.legal_actions(), self.match_action)
        executed, outcome, failure = self._execute(parsed)
        parsed = Parsed(parsed.actions, failure, parsed.span, None if failure else parsed.form)
        terminated, truncated = self._conclude(outcome, last=self.planner == "global")

        # The next turn is seen after the end is known.
        observation = self._observe()
        feedback = outcome.feedback or (write_feedback(failure, self.parser) if failure else "")
        info = self._info(parsed, executed, feedback, invalid=failure is not None)
        info["vlgym"]["point"] = outcome.point
        return observation, outcome.reward, terminated, truncated, info

    def render(self) -> Image | None:  # type: ignore[override]
        """Return the current image in mode `rgb_array`, else `None`."""
        self._check_open()
        return self.image() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Drop the episode and free resources; `reset` opens it again. A subclass calls this."""
        self._start, self._ended, self._closed = None, True, True
        super().close()

    def _check_open(self) -> None:
        if self._closed:
            raise ResetNeeded("The environment is closed: call env.reset() first.")

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments in force, defaults included, as plain data."""
        if self._arguments is None:
            self._arguments = arguments_in_force(self, VLEnv, self._kwargs)
        return copy.deepcopy(self._arguments)

    def solve(self) -> str | None:
        """Return the oracle's next reply (under the Global planner the whole plan), or `None`."""
        self._check_open()
        action = self.oracle()
        if action is None:
            return None
        thoughts = self.think(action)
        plan = [action] if self.planner == "online" else self._play_ahead()
        return write_reply(self.parser, plan, thoughts, self.legal_actions())

    def get_state(self) -> dict[str, Any]:
        """Return the exact state as JSON-able data; `set_state` restores it in any process.

        Raises:
            UserError: no episode was begun.
        """
        if self._start is None:
            raise UserError("get_state() needs an episode: call env.reset() first.")
        return seal_state({**self._position(), "saved": self.save()}, self._title(), self.arguments)

    def set_state(self, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Restore what `get_state` returned; return observation and info as `reset` does.

        An environment without `save` replays the episode from its start: it follows from generator
        and replies.

        Raises:
            UserError: it is damaged, or of another environment or other arguments; the episode
                before goes on.
        """
        content = unseal_state(state, self._title(), self.arguments)
        before = self._bookmark(whole=self._start is not None)
        try:
            return self._restore(content)
        except Exception as error:
            self._go_back(before)
            raise unfit(self._title(), error) from error

    def reseed(self, seed: int) -> None:
        """Begin the generator of the episode's further chance at a seed; the state stays as it is.

        `set_state` restores the generator: branches of one state that differ in luck are reseeded.
        The start's draws (a layout, a deck) are state. `get_state` keeps the seed.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        self._check_open()
        if self._start is None:
            raise ResetNeeded("reseed() needs an episode: call env.reset() first.")
        self._events.append({"luck": int(seed)})
        self.np_random.bit_generator.state = np.random.default_rng(seed).bit_generator.state

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle arguments, state and generators, no engine; `UserError` where one cannot be."""
        if protocol <= PICKLE_PROTOCOL:
            check_picklable(self._title(), {"class": type(self), **self._kwargs})
        return rebuild, self._parts()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """As a pickle; raise `UserError` where an argument cannot be copied."""
        check_picklable(self._title(), self._kwargs, partial(copy.deepcopy, memo=memo))
        return rebuild(*copy.deepcopy(self._parts(), memo))

    def _parts(self) -> tuple[Any, ...]:
        """Return the arguments of `rebuild`."""
        names = ("spec", "_np_random", "_np_random_seed", "_closed")
        attributes = {name: getattr(self, name) for name in names}
        state = None if self._start is None else self.get_state()
        return type(self), self._kwargs, attributes, self.action_space._np_random, state

    def _title(self) -> str:
        return self.vlgym_spec.id if self.vlgym_spec is not None else type(self).__name__

    def _position(self) -> dict[str, Any]:
        """Return the position in the episode, except the part that `save` returns."""
        rng = None if self._np_random is None else self._np_random.bit_generator.state
        counters = [getattr(self, name) for name in COUNTERS]
        return {"start": self._start, "events": self._events, "saved": None, "rng": rng, "counters": counters}

    def _restore(self, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        start = state["start"]
        self.np_random.bit_generator.state = start["rng"]
        self.reset_seed, self.seed_split = start.get("seed"), start.get("split")

        # Where the author saves nothing, the episode is replayed.
        if state["saved"] is not None:
            if self.level_arguments:
                self._read_options(start["options"])
            self.load(state["saved"])
            self._start, self._events, self._closed = start, state["events"], False
            self._write_instructions()
        else:
            self._begin(start["options"], self._read_options(start["options"]))
            for event in state["events"]:
                if "luck" in event:
                    self.reseed(event["luck"])
                    continue
                parsed = Parsed(tuple(event["actions"]), event["failure"])
                self._conclude(self._execute(parsed)[1], last=self.planner == "global")

        # Both ways end at the same place.
        self.np_random.bit_generator.state = state["rng"]
        self._set(dict(zip(COUNTERS, state["counters"], strict=True)))
        return self._look()

    def _bookmark(self, *, whole: bool = False) -> tuple[Any, ...]:
        """Return references for `_go_back`; with `whole` a copy of the state (`save`), too."""
        position = {**self._position(), "saved": self.save()} if whole else self._position()
        return self._np_random, self._np_random_seed, self.reset_seed, self.seed_split, position

    def _go_back(self, bookmark: tuple[Any, ...]) -> None:
        """Undo a failed reset: restore the episode before, else replay it, else end it."""
        self._np_random, self._np_random_seed, self.reset_seed, self.seed_split, state = bookmark
        if state["rng"] is not None:
            self._np_random.bit_generator.state = state["rng"]
        for way in (state, {**state, "saved": None}) if state["start"] is not None else ():
            with contextlib.suppress(Exception):  # the first error tells more
                self._restore(copy.deepcopy(way))
                return
        self._start, self._ended = None, True

    def _begin(self, options: dict[str, Any], checked: dict[str, Any]) -> None:
        self._start = {
            "rng": copy.deepcopy(self.np_random.bit_generator.state), "options": copy.deepcopy(options),
            "seed": self.reset_seed, "split": self.seed_split,
        }  # fmt: skip
        self._events, self._closed = [], False
        self._set(dict(zip(COUNTERS, (0, 0.0, False, False, False, None), strict=True)))
        begin_level(self, self.np_random, checked)
        self.start(self.np_random, checked)
        self._write_instructions()

    def _read_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Set the arguments of the episode's level, and return the options read."""
        if not self.level_arguments:
            return read_reset_options(self, options)

        # Other options are read on the level that is asked for; a refusal changes nothing.
        running = {name: getattr(self, name) for arguments in self.level_arguments for name in arguments}
        usual = self._usual or running
        try:
            level = read_level(self, options[LEVEL]) if LEVEL in options else self._level
            self._set({**usual, **({} if level is None else self.level_arguments[level])})
            checked = {**read_reset_options(self, options), LEVEL: level}
        except Exception:
            self._set(running)
            raise
        self._usual = {} if level is None else usual
        return checked

    def _set(self, arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            setattr(self, name, value)

    def _write_instructions(self) -> None:
        self.instructions = self._fill_instructions(self.task())

    def _fill_instructions(self, task: str) -> str:
        form, limit = self.parser.describe(), self.max_turns
        return clean_text(self.prompt.write_instructions(task=task, reply_format=form, max_turns=limit))

    def _turn_limit(self) -> int:
        return self.max_turns

    def _turn_number(self) -> int:
        return self.turn

    def _play_ahead(self) -> list[str]:
        state = copy.deepcopy({**self._position(), "saved": self.save()})
        plan: list[str] = []
        while not self._ended and (action := self.oracle()) is not None:
            plan.append(action)
            self._conclude(self._execute(Parsed((action,)))[1], last=False)
        self._restore(state)
        return plan

    def _execute(self, parsed: Parsed) -> tuple[list[str], Outcome, str | None]:
        """Act on a reply; return executed actions, the summed outcome and the failure code."""
        self._events.append({"actions": list(parsed.actions), "failure": parsed.failure})
        self._failure = parsed.failure
        if parsed.failure is not None:
            return self._fail(parsed.failure, [], 0.0)

        # A plan goes on to its first illegal action, or to the episode's end.
        executed: list[str] = []
        reward, outcome = 0.0, Outcome()
        for wanted in parsed.actions:
            action = self.match_action(wanted)
            if action is None:
                self._failure = "illegal_action"
                return self._fail(self._failure, executed, reward)
            outcome = self._act(action)
            self.turn += 1
            reward += outcome.reward
            executed.append(action)
            self._acted |= not outcome.illegal
            over = outcome.illegal or outcome.terminated or outcome.truncated
            if over or self.turn >= self._turn_limit():
                break

        # The rules may refuse a legal action, which counts as illegal.
        reward = float(reward - (self.invalid_penalty if outcome.illegal else 0.0))
        ends = bool(outcome.terminated or (outcome.illegal and self.invalid_action == "terminate"))
        total = replace(outcome, reward=reward, terminated=ends, truncated=bool(outcome.truncated))
        return executed, total, "illegal_action" if outcome.illegal else None

    def _act(self, action: str) -> Outcome:
        outcome = self.act(action)
        check_reward(outcome.reward, f"{self._title()}, turn {self.turn}")
        return outcome

    def _fail(self, failure: str, executed: list[str], reward: float) -> tuple[list[str], Outcome, str]:
        if self.invalid_action == "terminate":
            self.turn += 1
            return executed, Outcome(reward - self.invalid_penalty, terminated=True), failure
        if self.invalid_action == "noop":
            self.turn += 1
            cost = self.invalid_penalty - pay_stand_in(0.0, self.step_cost)
            return executed, Outcome(reward - cost), failure

        # `np_random` stays as it is: the next episode does not depend on this one's replies.
        start: Any = self._start
        action = draw_move(self.legal_actions(), start["rng"]["state"]["state"], self.turn)
        outcome = self._act(action)
        self.turn += 1
        earned = outcome.reward
        if self.invalid_action == "random":
            earned = pay_stand_in(earned, self.step_cost)
            self._forced = outcome.terminated or outcome.truncated
        total = float(reward + earned - self.invalid_penalty)
        return [*executed, action], Outcome(total, bool(outcome.terminated), bool(outcome.truncated)), failure

    def _conclude(self, outcome: Outcome, *, last: bool) -> tuple[bool, bool]:
        self.episode_return += outcome.reward
        terminated = outcome.terminated
        truncated = not terminated and (last or outcome.truncated or self.turn >= self._turn_limit())
        self._ended = terminated or truncated
        return terminated, truncated

    def _look(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return observation and info where no reply was read."""
        return self._observe(), self._info(Parsed(), [], "", invalid=False)

    def _observe(self) -> dict[str, Any]:
        legal = self.legal_actions()
        self.action_space.legal = tuple(legal)  # type: ignore[attr-defined]
        actions = [self.notation] if self.notation and legal else list_actions(self.parser, legal)
        written = self.prompt.write_turn(
            state=self.state_text(), actions=actions, turn=self._turn_number(), max_turns=self.max_turns
        )
        self._turn_text = clean_text(self.add_words(written, self.describe, self._failure))
        text = clean_text(f"{self.instructions}\n\n{self._turn_text}")
        return {"image": self.show(self.image), "text": text}

    def add_words(self, turn_text: str, describe: Callable[[], str], failure: str | None) -> str:
        """Put a line on a failure, and words in a modality of words, above a turn's text.

        Raises:
            UserError: there are no words.
        """
        # A paper's published form has no line on a failure.
        published = self.invalid_action == "published" or any(map(self._kwargs.get, ("compat", "protocol")))
        feedback = f"{write_feedback(failure, self.parser)}\n" if failure and not published else ""
        if self.modality not in ("text", "both"):
            return feedback + turn_text
        if not (words := describe()):
            missing = f"{self._title()} has no text description"
            raise UserError(f"{missing}: modality={self.modality!r} is unavailable.")
        place = IN_WORDS if self.modality == "text" else IN_PICTURE
        return f"{feedback}{place}: {words}\n{turn_text}"

    def show(self, draw: Callable[[], Image]) -> Image:
        """Return the picture, or a plain grey one where the modality has none."""
        if self.modality not in WITHOUT_PICTURE:
            return draw()
        return np.full((*self.image_size, 3), GREY_LEVEL, np.uint8)

    def _info(self, parsed: Parsed, executed: Sequence[str], feedback: str, *, invalid: bool) -> dict[str, Any]:
        info: dict[str, Any] = dict(self.extra_info())
        earned = self._acted or self.invalid_action == "published"
        info["success"] = bool(self.success()) and earned and not self._forced
        info["invalid_action"] = invalid
        if (score := self.score()) is not None:
            info["score"] = float(score)
        legal: Any = self.action_space.legal  # type: ignore[attr-defined]
        info["vlgym"] = {
            "turn": self.turn, "actions": list(executed), "parse": parsed.failure or "ok",
            "span": parsed.span, "form": parsed.form, "point": None,
            "legal_actions": [] if self.notation else list(legal), "feedback": feedback,
            "instructions": self.instructions, "turn_text": self._turn_text,
        }  # fmt: skip
        return info


VLEnv.__signature__ = signature_of(VLEnv)


def check_size(name: str, size: Sequence[int]) -> tuple[int, int]:
    """Return `(height, width)` as two integers; raise `UserError` on anything else."""
    valid = isinstance(size, Sequence | np.ndarray) and len(size) == 2
    if not (valid and all(isinstance(n, (int, np.integer)) and 16 <= n <= 4096 for n in size)):
        raise UserError(f"{name}={size!r} must be (height, width) in pixels, each from 16 to 4096.")
    return int(size[0]), int(size[1])
