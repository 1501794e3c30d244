"""Checks of who may do what: the oracle advises and does nothing, only legal actions act, only actions are paid.

One function for each property: it returns its evidence in a line, or raises `CheckFailure`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import replace

import numpy as np

from ..env import VLEnv
from ..env.adapter import GymAdapter
from ..env.game import Game
from ..env.seeding import episode_seed
from ..games.multi import MultiVLEnv
from ..parsers import match_legal
from .playing import (
    StepResult,
    choose_legal,
    choose_oracle,
    digest_picture,
    first_difference,
    play_episode,
    repeat,
    seeds_of,
    write_garbage,
)
from .subject import CheckFailure, Subject, require, require_repeat

NONSENSE = ("fly to the moon", "qwertz", "?", "-17", "null", "do whatever wins")
"""Actions that no environment has."""

MOST_WORDS = 150
"""Strings of the environment's source that are tried as replies."""

_READABLE = re.compile(r"[\w' -]{2,40}")


def check_conduct(subject: Subject) -> str:
    """The oracle advises legal actions and changes nothing. An episode goes the same way whether it is asked or not.

    Asked twice it says the same, and its reply is read as that action.

    Sees: an oracle (or its thoughts) that moves something, draws from the episode's generator, keeps a count, names
    what is not legal, or writes thoughts that hide its action; in two episodes, up to turn 16. Cannot see: advice that
    rests on what no player can know, which oracles are there for.
    """
    if subject.spec.oracle == "none":
        return "the spec states that there is no oracle"
    watched, plain = subject.make(), subject.make()
    turns = min(16, subject.spec.max_turns)
    advice = 0
    for index, seed in enumerate(seeds_of(subject.spec.id, "train", 2, first=60)):
        choose = choose_oracle if index == 0 else choose_legal(index)
        one = play_episode(watched, seed, choose, turns, watch=_ask_twice)
        require_repeat(one, plain, seed, "an episode goes otherwise where the oracle is asked")
        advice += len(one) - 1
    watched.close()
    plain.close()
    return f"asked at {advice} turns, twice each, the oracle changed nothing and named legal actions"


def _ask_twice(env: VLEnv) -> None:
    advice = env.oracle()
    if advice is None:
        return
    again = env.oracle()
    require(advice == again, f"asked twice, the oracle says {advice!r:.60} and {again!r:.60}")
    require(env.think(advice) == env.think(advice), f"asked twice, the oracle thinks otherwise of {advice!r:.60}")
    open_ended = type(env).match_action is not Game.match_action and not _READABLE.fullmatch(advice)
    listed = advice in env.legal_actions()
    require(
        listed or (open_ended and env.match_action(advice) is not None),
        f"the oracle's action {advice!r:.60} is not legal",
    )
    if env.planner == "online":
        reply = env.parser.format([advice], env.think(advice))
        read = env.parser.parse(reply, env.legal_actions()).actions
        meant = env.match_action(advice)
        require(
            len(read) == 1 and env.match_action(read[0]) == meant,
            f"the oracle's reply {reply!r:.120} is not read as its action",
        )


def check_garbage(subject: Subject) -> str:
    """Unreadable replies never raise, never pay and never end in success.

    They move nothing where the environment's `invalid_action` is `noop` and no other seat plays. An action that does
    not exist is not legal. Under the Global planner nonsense at the end of a plan adds nothing to what the moves before
    it pay.

    Sees: all that for 300 replies of the kinds models write when they fail, for nonsense in the right format, and for
    legal actions with letters added, one action a reply; and three plans of two moves that end in nonsense. Cannot see:
    one magic sentence (`words` tries those in the source), and what longer plans pay.
    """
    env = subject.make()
    random_source = np.random.default_rng(11)
    invalid = 0
    observation, _ = env.reset(seed=episode_seed(subject.spec.id, "val", 0))
    for number in range(subject.garbage):
        legal = env.legal_actions()
        text = write_garbage(random_source, legal)
        before = digest_picture(observation["image"])
        try:
            observation, reward, terminated, truncated, info = env.step(text)
        except Exception as error:
            raise CheckFailure(f"reply {text!r:.120} raised {type(error).__name__}: {error}") from error
        if info["invalid_action"]:
            invalid += 1
            require(reward <= 0, f"reply {text!r:.120} was invalid and paid {reward}")
            quiet = info["vlgym"]["parse"] != "illegal_action" and env.invalid_action == "noop"
            quiet = quiet and not isinstance(env, MultiVLEnv)  # the others play on
            still = before == digest_picture(observation["image"]) and legal == env.legal_actions()
            require(still or not quiet, f"the unreadable reply {text!r:.120} changed the picture or the legal actions")
        if terminated or truncated:
            observation, _ = env.reset(seed=episode_seed(subject.spec.id, "val", number + 1))

    # Made-up actions in the right format are illegal, too.
    require(invalid > 0.5 * subject.garbage, f"only {invalid} of {subject.garbage} garbage replies counted as invalid")
    tried = [*NONSENSE, *(f"{action}zz" for action in env.legal_actions()[:20] if "\n" not in action)]
    taken = [action for action in tried if env.match_action(action) is not None]
    require(not taken, f"the action {(taken or [''])[0]!r:.60}, which does not exist, is taken for a legal one")
    _, reward, _, _, info = env.step(env.parser.format([NONSENSE[0]]))
    require(info["invalid_action"] and reward <= 0, f"the action {NONSENSE[0]!r} was executed or paid")
    env.close()

    # A plan may end in nonsense: what came before it is paid, and no more.
    plans = _try_half_plans(subject)
    also = f"; {plans} plans that end in nonsense paid what their moves pay" if plans else ""
    return f"{subject.garbage} garbage replies, {invalid} counted invalid, none raised, paid or moved anything{also}"


def _try_half_plans(subject: Subject) -> int:
    """Compare plans that end in nonsense with the same plans without it; return how many could be compared."""
    if "global" not in subject.spec.planners:
        return 0
    env, tried = subject.make(planner="global"), 0
    random_source = np.random.default_rng(12)
    for seed in seeds_of(subject.spec.id, "train", 3, first=120):
        env.reset(seed=seed)
        legal = env.legal_actions()
        moves = [legal[int(i)] for i in random_source.integers(len(legal), size=2)]
        spoilt = env.parser.format([*moves, NONSENSE[0]])
        if env.parser.parse(spoilt, legal).actions != (*moves, NONSENSE[0]):
            continue  # one action a reply, such as the code of a page
        _, due, over, _, info = env.step(env.parser.format(moves))
        if over or info["invalid_action"] or env.turn >= env.max_turns or env.invalid_action != "noop":
            continue
        env.reset(seed=seed)
        _, paid, _, _, info = env.step(spoilt)
        due -= env.step_cost + env.invalid_penalty
        require(info["invalid_action"], f"the plan {spoilt!r:.120} ends in nonsense and is not counted as invalid")
        require(
            abs(paid - due) < 1e-9, f"the plan {spoilt!r:.120} ends in nonsense and paid {paid}; its moves pay {due}"
        )
        tried += 1
    env.close()
    return tried


def check_words(subject: Subject) -> str:
    """Only actions are paid. Words of the environment's own source, written as a reply, as an action, or into the
    thoughts before a legal action, change nothing.

    Sees: a magic word that stands in the source of the environment's module or of its parser. Cannot see: a
    magic word that is computed, read from a file or kept in another module, or, in free text, has brackets or the like.
    """
    words = list_words(subject.make())

    # Words as whole replies and as actions: none may pay or be taken for one.
    env = subject.make()
    env.reset(seed=episode_seed(subject.spec.id, "train", 80))
    open_ended = type(env).match_action is not Game.match_action
    resets = 0
    for word in words:
        _, reward, terminated, truncated, info = env.step(word)
        require(
            not info["invalid_action"] or (reward <= 0 and not info["success"]),
            f"the reply {word!r} is no action and paid {reward}",
        )
        if terminated or truncated:
            resets += 1
            env.reset(seed=episode_seed(subject.spec.id, "train", 80 + resets))
        hidden = env.match_action(word)
        free = open_ended and not _READABLE.fullmatch(word)  # code or a search: any is an action
        require(
            free
            or hidden is None
            or hidden in env.legal_actions()
            or match_legal(word, env.legal_actions()) is not None,
            f"the word {word!r} is taken for an action, but is not among the legal actions",
        )

    # Words as thoughts: the same actions have to lead to the same episode.
    talking, silent = env, subject.make()
    for index in range(3):
        choose = choose_legal(90 + index)
        talk = " ".join(word for number, word in enumerate(words) if number % 3 == index and _READABLE.fullmatch(word))
        quiet = play_episode(silent, episode_seed(subject.spec.id, "train", 90 + index), choose, 8)
        spoken = [_speak(talking, step.reply, talk, step.legal) for step in quiet[1:]]
        loud = play_episode(talking, episode_seed(subject.spec.id, "train", 90 + index), repeat(spoken), len(quiet) - 1)
        difference = first_difference([_unspanned(step) for step in quiet], [_unspanned(step) for step in loud])
        require(difference is None, f"thoughts before the same actions change the episode: {difference}")
    talking.close()
    silent.close()
    return f"{len(words)} words of the source change nothing, as replies, actions or thoughts"


def _speak(env: VLEnv, reply: str, talk: str, legal: tuple[str, ...]) -> str:
    """Return the reply with thoughts before its action, if it is then read as the same action."""
    actions = env.parser.parse(reply, legal).actions
    loud = env.parser.format(actions, talk)
    return loud if env.parser.parse(loud, legal).actions == actions else reply


def _unspanned(step: StepResult) -> StepResult:
    details = {name: value for name, value in step.info["vlgym"].items() if name != "span"}
    return replace(step, info={**step.info, "vlgym": details})


def list_words(env: VLEnv) -> list[str]:
    """Return short strings of the source of an environment's classes and parser, docstrings left out, sorted."""
    own = [cls for cls in type(env).__mro__ if not issubclass(VLEnv, cls) and cls is not GymAdapter]
    words: set[str] = set()
    for name in {cls.__module__ for cls in (*own, type(env.parser))}:
        try:
            tree = ast.parse(inspect.getsource(sys.modules[name]))
        except (OSError, TypeError, SyntaxError, KeyError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 2 <= len(node.value) <= 40:
                words.add(node.value)
    return sorted(words)[:MOST_WORDS]
