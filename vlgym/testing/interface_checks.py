"""Checks of the interface: card, spaces, prompt, parsers, vectors, splits, and the record."""

import inspect
import itertools
import re
import time
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random

from ..env import VLEnv
from ..env.reset_options import WRONG_FOR_ALL
from ..env.seeding import SPLITS, split_of
from ..errors import UserError
from ..parsers import PARSERS, get_parser, match_legal
from ..registry import get_registry
from ..registry.recorded import hash_texts
from ..registry.registry_file import compare_registries
from ..types import Parser
from .playing import choose_legal, digest_picture, play_episode
from .subject import CheckFailure, Subject, require

LENGTHS = (2_000, 4_000, 8_000, 16_000)  # in characters
MOST_GROWTH = 9.0  # largest ratio of the times at a length and at a quarter; quadratic time has 16
SUSPECT = 6.0  # ratio of two single times beyond which a string is measured at every length
WORTH_S = 0.02  # time below which a ratio says nothing
ENDLESS_S = 0.05  # no reply of at most 40 characters may take it: it doubles every few characters

_PIECE = re.compile(r"</?\w+>|\w+|\s|[^\w\s]+")
_COMMON = (*' \n<>{}"\\`~[(;,', "\t ", "a", "</", "\u00e9")
_ENDS = ("", "`", "!", "\n!", ">", '"')


def find_slow_shape(parser: Parser, legal: Sequence[str] = ()) -> str:
    """Return the first of some thousand strings whose time grows too fast, in words; else nothing."""
    for shape in write_shapes(parser, legal):
        # Exponential time shows in short strings.
        if any(_time(parser, legal, shape, length) > ENDLESS_S for length in range(16, 44, 4)):
            return f"{shape!r} took {ENDLESS_S} s for at most 40 characters"

        # Most shapes are fast at the longest even if quadratic, or linear by two times.
        short = _time(parser, legal, shape, LENGTHS[1])
        if short < WORTH_S / 16 or _time(parser, legal, shape, LENGTHS[-1]) <= max(WORTH_S, SUSPECT * short):
            continue

        # Twice, and the faster: the machine may have been busy.
        seconds = [min(_time(parser, legal, shape, length) for _ in range(2)) for length in LENGTHS]
        pairs = zip(seconds[2:], seconds, strict=False)
        growth = max(long / max(short, 1e-6) if long > WORTH_S else 1.0 for long, short in pairs)
        if growth > MOST_GROWTH:
            return f"{shape!r} took {seconds[-1]:.2f} s, {growth:.0f} times as long as at a quarter of the length"
    return ""


def write_shapes(parser: Parser, legal: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (prefix, piece to be repeated, end) of the parser's format and common characters."""
    reply = parser.format([legal[0]] if legal else [], "I think.")
    pieces = dict.fromkeys(piece for piece in _PIECE.findall(reply) if not piece.isspace())
    marks = list(pieces)[:12]
    lines = [line for line in dict.fromkeys(reply.splitlines()) if line][:3]
    units = dict.fromkeys((*_COMMON, *marks, *(f"{piece}\n" for piece in (*marks, *lines))))
    beginnings = [reply[: reply.find(mark) + len(mark)] for mark in marks[:6]]
    prefixes = dict.fromkeys(("", *marks[:6], *beginnings))
    yield from itertools.product(prefixes, units, _ENDS)


def check_parser_time(subject: Subject) -> str:
    """The time of a parser that is not the core's grows no faster than a reply's length."""
    own = [style for style in subject.spec.reply_styles if style not in PARSERS]
    if not own:
        return "all are the core's, which its own tests measure"
    env = subject.make()
    env.reset(seed=subject.seed(0))
    legal = env.legal_actions()
    for style in own:
        slow = find_slow_shape(get_parser(style), legal)
        require(not slow, f"{style}: prefix, repeated piece and end {slow}; a parser must be linear")
    return f"linear in the reply's length up to {LENGTHS[-1]:,} characters: {', '.join(own)}"


def _time(parser: Parser, legal: Sequence[str], shape: tuple[str, str, str], length: int) -> float:
    prefix, piece, end = shape
    text = (prefix + piece * length)[: length - len(end)] + end
    begun = time.thread_time()
    parser.parse(text, legal)
    return time.thread_time() - begun


CARD_HEADINGS = ("Goal", "Observation", "Actions", "Reward", "Endings", "References")


def check_card(subject: Subject) -> str:
    """The class docstring is a complete card, and the spec's reply styles exist.

    Sees: missing headings, another prompt version than the spec's, parsers that cannot be loaded.
    Cannot see: a wrong card.
    """
    env = subject.make()
    doc = inspect.getdoc(type(env)) or ""
    missing = [heading for heading in CARD_HEADINGS if f"{heading}:" not in doc]
    require(not missing, f"the class docstring lacks {', '.join(missing)}")
    version, stated = env.prompt.version, subject.spec.prompt_version
    require(version == stated, f"prompt version {version} is not the spec's {stated}")
    for style in subject.spec.reply_styles:
        get_parser(style)
    return f"card has {', '.join(CARD_HEADINGS)}; parsers {', '.join(subject.spec.reply_styles)} load"


def check_gymnasium(subject: Subject) -> str:
    """`gymnasium.utils.env_checker.check_env` passes.

    Sees: results of a wrong form or outside their spaces, a `reset` without seed or options. Cannot
    see: effects of later turns.
    """
    env = subject.make(render_mode="rgb_array")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True)
    except Exception as error:
        raise CheckFailure(f"check_env: {type(error).__name__}: {error}") from error
    return f"check_env passed with {len(caught)} warning(s)"


def check_parsers(subject: Subject) -> str:
    """Every legal action round-trips through every reply style. Thoughts may go before.

    Sees: an action that a parser of the spec reads as another or not at all, in three episodes of
    30 turns. Cannot see: actions that do not occur there.
    """
    env = subject.make()
    choose, actions = choose_legal(1, garbage_every=5), set[str]()
    for seed in subject.seeds(3):
        steps = play_episode(env, seed, choose, 30)
        actions.update(*(step.legal for step in steps if not step.ended))

    # Each is read as itself among all.
    legal, thoughts = sorted(actions), ("", 'I see <a "wall"> {here}; so:')
    for style, action, thought in itertools.product(subject.spec.reply_styles, legal, thoughts):
        parser = get_parser(style)
        read = parser.parse(parser.format([action], thought), legal)
        matched = match_legal(read.actions[0], legal) if len(read.actions) == 1 else None
        require(matched == action, f"{style}: {action!r} came back as {read}")
    return f"{len(actions)} actions round-trip through {', '.join(subject.spec.reply_styles)}"


def check_prompt(subject: Subject) -> str:
    """The text states the legal actions and the reply format. It lies in its space, and holds task
    and state as they are written, but for white space and what no model is told.

    Sees: a legal action or a format that no model is told of, and words in any alphabet that arrive
    otherwise or are cut off, in 10 turns of each reply style. Cannot see: a text that is wrong.
    """
    checked, written = 0, list[tuple[str, str]]()

    def note(env: VLEnv) -> None:
        written.append((env.task(), env.state_text()))

    for style in subject.spec.reply_styles:
        env = subject.make(parser=style)
        space: Any = env.observation_space
        written.clear()
        steps = play_episode(env, subject.seed(1), choose_legal(2, garbage_every=5), 10, watch=note)
        for step, words in zip(steps, written, strict=False):
            text, details = step.text, step.info["vlgym"]
            require(space["text"].contains(text), "a text lies outside the observation space")
            whole = details["instructions"] in text and details["turn_text"] in text
            require(whole, "the text is not instructions + turn text")

            # The actions, their format, and the author's words.
            stated = [env.notation] if env.notation else step.legal
            absent = [action for action in stated if action not in text]
            require(not absent, f"the text does not state the legal action(s) {absent[:3]}")
            formatted = env.parser.describe() in text
            require(formatted, f"the text does not state the reply format of {style}")
            lost = [each for each in words if _strip(each) not in _strip(text)]
            require(not lost, f"the text does not hold the words {lost[:1]!r:.200} as they are written")
            checked += 1
        env.close()
    return f"{checked} texts state all legal actions, the reply format, and the author's words"


def _strip(text: str) -> str:
    """Leave out white space and what no model is told."""
    untold = ("Cc", "Cs", "Co")
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) not in untold)


def check_reset_options(subject: Subject) -> str:
    """`reset` refuses unknown options and wrong values. A refusal leaves the episode as it was, and
    the card names every option.

    Sees: an option that is ignored, a wrong value that is taken or changes the running episode.
    Cannot see: a right value of another effect than the card says (`probes` may play it).
    """
    env = subject.make()
    env.reset(seed=subject.seed(0))
    before, declared = env.get_state(), env.reset_options
    wrong = [("no_such_option", 1)]
    for name, option in declared.items():
        wrong += [(name, value) for value in (*WRONG_FOR_ALL, *option.wrong)]
    for name, value in wrong:
        given = f"reset option {name}={value!r}"
        try:
            env.reset(seed=1, options={name: value})
        except UserError as error:
            require(name in str(error), f"the error for {given} does not name it: {error}")
        else:
            raise CheckFailure(f"reset accepted the option {name}={value!r} without an error")
        require(env.get_state() == before, f"the refused {given} changed the running episode")

    # A user learns of options from the card.
    docs = " ".join(cls.__doc__ or "" for cls in type(env).__mro__)
    unnamed = ", ".join(name for name in declared if f"`{name}`" not in docs)
    require(not unnamed, f"the class docstring does not name the reset option(s) {unnamed}")
    return f"{len(wrong)} wrong options refused; declared: {', '.join(declared) or 'none'}"


def check_recorded(subject: Subject) -> str:
    """Everything is as registry.yaml records it. Card, prompt, parser, behaviour and pictures are
    compared.

    Sees: any change of texts, rewards, flags or info in the episodes of the fingerprint, and
    pictures of something else. Cannot see: a rule that none of these reaches; an error that was
    recorded.
    """
    known = get_registry().known.get(subject.spec.id)
    if known is None:
        return "registry.yaml does not know this id, so there is nothing to compare"
    if subject.kwargs:
        return "not compared: registry.yaml records the environment without further arguments"
    env, spec = subject.make(), subject.spec
    live = {"spec": spec, **hash_texts(env), **subject.behaviour.to_entry()}
    differences = compare_registries({spec.id: known}, {spec.id: live})
    fix = f"Where that is meant: vlgym registry --id {spec.id}"
    require(not differences, " ".join([*differences, fix]))
    return "card, prompt, parser, fingerprint and pictures are those of registry.yaml"


def check_vector(subject: Subject) -> str:
    """Sync and async vectors give what single environments give. Both autoreset modes do.

    Sees: instances that disturb one another, in one process or across a fork, within 6 turns.
    Cannot see: more than two at once.
    """
    seeds, episodes = subject.seeds(2), []
    for index, seed in enumerate(seeds):
        env = subject.make()
        episodes.append(play_episode(env, seed, choose_legal(index, garbage_every=5), 6))
        env.close()
    starts, *turns = zip(*episodes, strict=False)  # a turn of both, to the end of the shorter

    # Both kinds of vector in both modes: each copies and resets in another way.
    for mode, autoreset in itertools.product(("sync", "async"), ("SAME_STEP", "DISABLED")):
        options = {"autoreset_mode": gymnasium.vector.AutoresetMode[autoreset]}
        vector = gymnasium.make_vec(subject.spec.id, 2, mode, vector_kwargs=options, **subject.kwargs)
        where = f"{mode}, {autoreset}:"
        try:
            observation, _ = vector.reset(seed=seeds)  # type: ignore[arg-type]
            same_text = list(observation["text"]) == [start.text for start in starts]
            require(same_text, f"{where} reset texts differ")
            for due in turns:
                replies = tuple(step.reply for step in due)
                observation, rewards, *flags, _ = vector.step(replies)
                for index, step in enumerate(due):
                    ends = [bool(flag[index]) for flag in flags]
                    alike = np.isclose(rewards[index], step.reward)
                    alike = alike and ends == [step.terminated, step.truncated]
                    require(alike, f"{where} turn {step.turn} differs")
                    same_text = step.ended or observation["text"][index] == step.text
                    require(same_text, f"{where} text of turn {step.turn} differs")
        finally:
            vector.close()
    agree = "sync and async agree with single environments"
    return f"{agree} over {len(turns)} turns, SAME_STEP and DISABLED"


def check_splits(subject: Subject) -> str:
    """Splits share no seed, and their episodes begin differently. The whole seed counts.

    Sees: a seed that is shortened or ignored, and a split with one start. Cannot see: two splits
    that share levels which are drawn in another way.
    """
    seeds = {split: subject.seeds(1000, split=split) for split in SPLITS}
    require(len(set().union(*seeds.values())) == 1000 * len(SPLITS), "seeds overlap")
    env = subject.make()
    for split in subject.spec.splits:
        starts = set()
        for seed in seeds[split][:8]:
            taken = split_of(seed)
            require(taken == split, f"seed {seed} of {split} is taken for one of {taken}")
            observation, _ = env.reset(seed=seed)
            starts.add((observation["text"], digest_picture(observation["image"])))

            # A shortened seed would begin the episodes of another split.
            begun = env.get_state()["start"]["rng"] == np_random(seed)[0].bit_generator.state
            wrong = "reset() does not begin with that seed's generator, so splits may mix"
            require(begun, f"{split} seed {seed}: {wrong}")
            if len(starts) > 1:
                break
        require(len(starts) > 1, f"8 seeds of {split} all begin in the same state")
    begun = f"episodes of {', '.join(subject.spec.splits)} begin with their seed's generator"
    return f"1,000 seeds of each split, none shared; {begun}"
