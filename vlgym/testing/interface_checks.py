"""Checks of the interface: card, spaces, prompt, parsers, vectorisation, splits, and what registry.yaml records.

One function for each property: it returns its evidence in a line, or raises `CheckFailure`.
"""

from __future__ import annotations

import inspect
import itertools
import re
import time
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random

from ..env.reset_options import WRONG_FOR_ALL
from ..env.seeding import SPLITS, episode_seed, split_of
from ..errors import UserError
from ..parsers import PARSERS, get_parser, match_legal
from ..registry import get_registry
from ..registry.recorded import hash_texts
from ..registry.registry_file import compare_registries
from ..types import Parser
from .playing import choose_legal, digest_picture, play_episode, seeds_of
from .subject import CheckFailure, Subject, require

LENGTHS = (2_000, 4_000, 8_000, 16_000)
"""Lengths in characters."""

MOST_GROWTH = 9.0
"""Largest ratio of the times at a length and at a quarter of it: 4 for linear time, 16 for quadratic."""

SUSPECT = 6.0
"""Ratio of two single times beyond which a string is measured at every length."""

WORTH_S = 0.02
"""Time below which a ratio says nothing."""

ENDLESS_S = 0.05
"""Time that no reply of at most 40 characters may take: it doubles with every few characters more."""

_PIECE = re.compile(r"</?\w+>|\w+|\s|[^\w\s]+")
_COMMON = (" ", "\n", "\t ", "a", "<", ">", "</", "{", "}", '"', "\\", "`", "~", "[", "(", ";", ",", "\u00e9")
_ENDS = ("", "`", "!", "\n!", ">", '"')


@dataclass(frozen=True)
class Slowest:
    """The string that took longest for its length.

    Attributes:
        shape: prefix, repeated piece and end.
        seconds: processor time at each of `LENGTHS`, as far as it was measured; one alone: at 40 characters at most.
    """

    shape: tuple[str, str, str]
    seconds: tuple[float, ...]

    @property
    def growth(self) -> float:
        """Largest ratio of the times at a length and at a quarter of it; 1 where all are too short to tell."""
        if len(self.seconds) < 2:
            return float("inf")
        pairs = zip(self.seconds[2:], self.seconds, strict=False)
        return max((long / max(short, 1e-6) for long, short in pairs if long > WORTH_S), default=1.0)

    @property
    def linear(self) -> bool:
        """True if the time grows in proportion to the length."""
        return self.growth <= MOST_GROWTH


def measure_parser(parser: Parser, legal: Sequence[str] = ()) -> Slowest:
    """Return the slowest of some thousand strings: one whose time grows too fast, where there is one, else any."""
    slowest, most = ("", "", ""), 0.0
    for shape in write_shapes(parser, legal):
        # Exponential time shows in short strings.
        if any(_time(parser, legal, shape, length) > ENDLESS_S for length in range(16, 44, 4)):
            return Slowest(shape, (ENDLESS_S,))

        # Most shapes are short enough at the longest even if quadratic, or grow in proportion: two times tell.
        short = _time(parser, legal, shape, LENGTHS[1])
        if short < WORTH_S / 16:
            continue
        long = _time(parser, legal, shape, LENGTHS[-1])
        if long > max(WORTH_S, SUSPECT * short) and not (measured := _measure_shape(parser, legal, shape)).linear:
            return measured
        slowest, most = max((slowest, most), (shape, long), key=lambda one: one[1])
    return _measure_shape(parser, legal, slowest) if most else Slowest(slowest, (0.0,) * len(LENGTHS))


def _measure_shape(parser: Parser, legal: Sequence[str], shape: tuple[str, str, str]) -> Slowest:
    seconds: list[float] = []
    for length in LENGTHS:
        # Twice, and the faster: the machine may have been busy.
        seconds.append(min(_time(parser, legal, shape, length) for _ in range(2)))
        if len(seconds) > 2 and not (measured := Slowest(shape, tuple(seconds))).linear:
            return measured
    return Slowest(shape, tuple(seconds))


def write_shapes(parser: Parser, legal: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (prefix, piece to be repeated, end) for the pieces of the parser's own format and common characters."""
    reply = parser.format([legal[0]] if legal else [], "I think.")
    marks = list(dict.fromkeys(piece for piece in _PIECE.findall(reply) if not piece.isspace()))[:12]
    lines = [line for line in dict.fromkeys(reply.splitlines()) if line][:3]
    units = list(dict.fromkeys((*_COMMON, *marks, *(f"{mark}\n" for mark in marks), *(f"{line}\n" for line in lines))))
    prefixes = list(dict.fromkeys(("", *marks[:6], *(reply[: reply.find(mark) + len(mark)] for mark in marks[:6]))))
    yield from itertools.product(prefixes, units, _ENDS)


def write_string(shape: tuple[str, str, str], length: int) -> str:
    """Return the string of a shape with `length` characters."""
    prefix, piece, end = shape
    room = max(0, length - len(prefix) - len(end))
    return prefix + (piece * (room // len(piece) + 1))[:room] + end


def check_parser_time(subject: Subject) -> str:
    """The time of a parser that is not the core's grows no faster than a reply's length."""
    own = [style for style in subject.spec.reply_styles if style not in PARSERS]
    if not own:
        return "all are the core's, which its own tests measure"
    env = subject.make()
    env.reset(seed=episode_seed(subject.spec.id, "train", 0))
    legal = env.legal_actions()
    env.close()
    names = []
    for style in own:
        parser = get_parser(style)
        slowest = measure_parser(parser, legal)
        if not slowest.linear:
            raise CheckFailure(
                f"{style}: prefix, repeated piece and end {slowest.shape!r} took {slowest.seconds[-1]:.2f} s, "
                f"{slowest.growth:.0f} times as long as at a quarter of the length; a parser must be linear"
            )
        names.append(parser.name)
    return f"linear in the reply's length up to {LENGTHS[-1]:,} characters: {', '.join(names)}"


def _time(parser: Parser, legal: Sequence[str], shape: tuple[str, str, str], length: int) -> float:
    text = write_string(shape, length)
    begun = time.thread_time()
    parser.parse(text, legal)
    return time.thread_time() - begun


CARD_HEADINGS = ("Goal", "Observation", "Actions", "Reward", "Endings", "References")


def check_card(subject: Subject) -> str:
    """The class docstring is a complete card, and the spec's reply styles exist.

    Sees: missing headings, a prompt of another version than the spec's, parsers that cannot be loaded. Cannot see: a
    card that says what is not so.
    """
    env = subject.make()
    doc = inspect.getdoc(type(env)) or ""
    missing = [heading for heading in CARD_HEADINGS if f"{heading}:" not in doc]
    require(not missing, f"the class docstring lacks {', '.join(missing)}")
    require(
        env.prompt.version == subject.spec.prompt_version,
        f"prompt version {env.prompt.version} is not the spec's {subject.spec.prompt_version}",
    )
    for style in subject.spec.reply_styles:
        get_parser(style)
    env.close()
    return f"card has {', '.join(CARD_HEADINGS)}; parsers {', '.join(subject.spec.reply_styles)} load"


def check_gymnasium(subject: Subject) -> str:
    """`gymnasium.utils.env_checker.check_env` passes.

    Sees: results of a wrong form or outside their spaces, a `reset` without seed or options. Cannot see: what only
    later turns do.
    """
    env = subject.make(render_mode="rgb_array")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True)
    except Exception as error:
        raise CheckFailure(f"check_env: {type(error).__name__}: {error}") from error
    finally:
        env.close()
    return f"check_env passed with {len(caught)} warning(s)"


def check_parsers(subject: Subject) -> str:
    """Every legal action round-trips through every reply style. The actions are those that occur in play, with and
    without thoughts.

    Sees: an action that a parser of the spec reads as another or not at all, in three episodes of 30 turns. Cannot see:
    actions that do not occur there.
    """
    env = subject.make()
    choose = choose_legal(1, garbage_every=5)
    episodes = [play_episode(env, seed, choose, 30) for seed in seeds_of(subject.spec.id, "train", 3)]
    env.close()
    actions = {action for episode in episodes for step in episode if not step.ended for action in step.legal}
    for style in subject.spec.reply_styles:
        parser = get_parser(style)
        for action in actions:
            for thoughts in ("", 'I see <a "wall"> {here}; so:'):
                read = parser.parse(parser.format([action], thoughts), sorted(actions))
                matched = match_legal(read.actions[0], sorted(actions)) if len(read.actions) == 1 else None
                require(matched == action, f"{style}: {action!r} came back as {read}")
    return f"{len(actions)} actions round-trip through {', '.join(subject.spec.reply_styles)}"


def check_prompt(subject: Subject) -> str:
    """The text states the legal actions and the reply format. It states every legal action, or the notation of all, and
    the observation lies in its space. It holds task and state as they are written, but for white space, control
    characters, surrogates and private-use characters.

    Sees: a legal action or a format that no model is told of, and words in any alphabet that arrive otherwise or are
    cut off, in 10 turns of each reply style. Cannot see: a text that tells wrong things.
    """
    checked, written = 0, list[tuple[str, ...]]()
    for style in subject.spec.reply_styles:
        env = subject.make(parser=style)
        space: Any = env.observation_space
        written.clear()
        choose, seed = choose_legal(2, garbage_every=5), episode_seed(subject.spec.id, "train", 1)
        steps = play_episode(env, seed, choose, 10, watch=lambda env: written.append((env.task(), env.state_text())))
        for step, words in zip(steps, written, strict=False):
            require(space["text"].contains(step.text), "a text lies outside the observation space")
            stated = [env.notation] if env.notation else step.legal
            absent = [action for action in stated if action not in step.text]
            require(not absent, f"the text does not state the legal action(s) {absent[:3]}")
            require(env.parser.describe() in step.text, f"the text does not state the reply format of {style}")
            details = step.info["vlgym"]
            whole = details["instructions"] in step.text and details["turn_text"] in step.text
            require(whole, "the text is not instructions + turn text")
            lost = [each for each in words if _strip(each) not in _strip(step.text)]
            require(not lost, f"the text does not hold the words {lost[:1]!r:.200} as they are written")
            checked += 1
        env.close()
    return f"{checked} texts state all legal actions, the reply format, and the words that are written"


def _strip(text: str) -> str:
    """Leave out white space and what no model is told."""
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cs", "Co"))


def check_reset_options(subject: Subject) -> str:
    """`reset` refuses unknown options and wrong values. It is tried with a wrong value of each declared option, and
    leaves the episode as it was.

    The card names every option.

    Sees: an option that is ignored, a wrong value that is taken or changes the running episode. Cannot see: a right
    value that does something else than its card says (`probes` may play it).
    """
    env = subject.make()
    episode = subject.spec.id, "train", 0
    env.reset(seed=episode_seed(*episode))
    before = env.get_state()
    wrong = [("no_such_option", 1)]
    wrong += [(name, value) for name, option in env.reset_options.items() for value in (*WRONG_FOR_ALL, *option.wrong)]
    for name, value in wrong:
        try:
            env.reset(seed=1, options={name: value})
        except UserError as error:
            require(name in str(error), f"the error for reset option {name}={value!r} does not name it: {error}")
        else:
            raise CheckFailure(f"reset accepted the option {name}={value!r} without an error")
        require(env.get_state() == before, f"the refused reset option {name}={value!r} changed the running episode")
    docs = " ".join(cls.__doc__ or "" for cls in type(env).__mro__)
    unnamed = [name for name in env.reset_options if f"`{name}`" not in docs]
    require(not unnamed, f"the class docstring does not name the reset option(s) {', '.join(unnamed)}")
    env.close()
    return f"{len(wrong)} wrong options refused; declared: {', '.join(env.reset_options) or 'none'}"


def check_recorded(subject: Subject) -> str:
    """Everything is as registry.yaml records it. Card, prompt, parser, behaviour and pictures are compared, where it
    knows the id.

    Sees: any change of texts, rewards, flags or info in the episodes that are played (random and the oracle's on every
    split, replies of every kind in every style, and the spec's probes), and pictures that show something else. Cannot
    see: a rule that none of these episodes reaches; what was wrong already when it was recorded.
    """
    registry = get_registry()
    known = registry.known.get(subject.spec.id)
    if known is None:
        return "registry.yaml does not know this id, so there is nothing to compare"
    if subject.kwargs:
        return "not compared: registry.yaml records the environment without further arguments"
    env = subject.make()
    live = {"spec": subject.spec, **hash_texts(env), **asdict(subject.behaviour())}
    env.close()
    differences = compare_registries({subject.spec.id: known}, {subject.spec.id: live})
    fix = f"Where that is meant: vlgym registry --id {subject.spec.id}"
    require(not differences, " ".join([*differences, fix]))
    return "card, prompt, parser, fingerprint and pictures are those of registry.yaml"


def check_vector(subject: Subject) -> str:
    """Sync and async vectors give what single environments give. They do so in both autoreset modes.

    Sees: instances that disturb one another, in one process or across a fork, within 6 turns. Cannot see: more than two
    at once.
    """
    steps = 6
    seeds = [episode_seed(subject.spec.id, "train", index) for index in range(2)]
    episodes = []
    for index, seed in enumerate(seeds):
        env = subject.make()
        episodes.append(play_episode(env, seed, choose_legal(index, garbage_every=5), steps))
        env.close()

    # Both kinds of vector in both modes: each copies and resets in another way.
    length = min(map(len, episodes))
    for mode in ("sync", "async"):
        for autoreset in (gymnasium.vector.AutoresetMode.SAME_STEP, gymnasium.vector.AutoresetMode.DISABLED):
            vector = gymnasium.make_vec(
                subject.spec.id,
                num_envs=2,
                vectorization_mode=mode,
                vector_kwargs={"autoreset_mode": autoreset},
                **subject.kwargs,
            )
            try:
                observation, _ = vector.reset(seed=seeds)  # type: ignore[arg-type]
                starts = [episode[0].text for episode in episodes]
                require(list(observation["text"]) == starts, f"{mode}: reset texts differ")
                for turn in range(1, length):
                    observation, reward, terminated, truncated, _ = vector.step(
                        tuple(episode[turn].reply for episode in episodes)
                    )
                    for index, due in enumerate(episode[turn] for episode in episodes):
                        flags = bool(terminated[index]), bool(truncated[index])
                        same = np.isclose(reward[index], due.reward) and flags == (due.terminated, due.truncated)
                        require(same, f"{mode}, {autoreset}: turn {turn} differs")
                        same_text = due.ended or observation["text"][index] == due.text
                        require(same_text, f"{mode}, {autoreset}: text of turn {turn} differs")
            finally:
                vector.close()
    return f"sync and async agree with single environments over {length - 1} turns, SAME_STEP and DISABLED"


def check_splits(subject: Subject) -> str:
    """Splits share no seed, and their episodes begin differently. An episode's generator is made from the whole seed.

    Sees: a seed that is shortened or ignored, and a split with one start. Cannot see: two splits that share levels
    which are drawn in another way.
    """
    seeds = {split: [episode_seed(subject.spec.id, split, index) for index in range(1000)] for split in SPLITS}
    require(len({seed for values in seeds.values() for seed in values}) == 1000 * len(SPLITS), "seeds overlap")
    env = subject.make()
    for split in subject.spec.splits:
        starts = set()
        for seed in seeds[split][:8]:
            require(split_of(seed) == split, f"seed {seed} of {split} is taken for one of {split_of(seed)}")
            observation, _ = env.reset(seed=seed)
            starts.add((observation["text"], digest_picture(observation["image"])))
            expected = np_random(seed)[0].bit_generator.state
            begun = env.get_state()["start"]["rng"]
            require(
                begun == expected,
                f"{split} seed {seed}: reset() does not begin with that seed's generator, so splits may mix",
            )
            if len(starts) > 1:
                break
        require(len(starts) > 1, f"8 seeds of {split} all begin in the same state")
    env.close()
    names = ", ".join(subject.spec.splits)
    return f"1,000 seeds of each split, none shared; episodes of {names} begin with their seed's generator"
