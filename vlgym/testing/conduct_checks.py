"""Checks of who may do what: the oracle advises, legal actions act, only actions are paid."""

import ast
import inspect
import re
import sys
from dataclasses import replace

import numpy as np

from ..env import VLEnv
from ..env.adapter import GymAdapter
from ..env.game import Game
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
    write_garbage,
)
from .subject import CheckFailure, Subject, require, require_repeat

NONSENSE = ("fly to the moon", "qwertz", "?", "-17", "null", "do whatever wins")  # no environment's
MOST_WORDS = 150  # strings of the environment's source that are tried as replies
_READABLE = re.compile(r"[\w' -]{2,40}")


def check_conduct(subject: Subject) -> str:
    """The oracle advises legal actions and changes nothing. Asked twice it says the same, and its
    reply is read as that action.

    Sees: an oracle (or its thoughts) that moves, draws, counts, names an illegal action, or hides
    its action in thoughts; in two episodes, up to turn 16. Cannot see: advice that rests on what no
    player can know.
    """
    if subject.spec.oracle == "none":
        return "the spec states that there is no oracle"
    watched, plain = subject.make(), subject.make()
    turns, advice = min(16, subject.spec.max_turns), 0
    for seed, choose in zip(subject.seeds(2, first=60), (choose_oracle, choose_legal(1)), strict=True):
        one = play_episode(watched, seed, choose, turns, watch=_ask_twice)
        require_repeat(one, plain, seed, "an episode goes otherwise where the oracle is asked")
        advice += len(one) - 1
    return f"asked at {advice} turns, twice each, the oracle changed nothing and named legal actions"


def _ask_twice(env: VLEnv) -> None:
    advice = env.oracle()
    if advice is None:
        return
    again, name = env.oracle(), f"{advice!r:.60}"
    require(advice == again, f"asked twice, the oracle says {name} and {again!r:.60}")
    thoughts = env.think(advice)
    require(thoughts == env.think(advice), f"asked twice, the oracle thinks otherwise of {name}")

    # Open actions, such as code, are legal without being listed.
    legal, meant = env.legal_actions(), env.match_action(advice)
    open_ended = type(env).match_action is not Game.match_action and not _READABLE.fullmatch(advice)
    allowed = advice in legal or (open_ended and meant is not None)
    require(allowed, f"the oracle's action {name} is not legal")
    if env.planner == "online":
        reply = env.parser.format([advice], thoughts)
        read = env.parser.parse(reply, legal).actions
        same = len(read) == 1 and env.match_action(read[0]) == meant
        require(same, f"the oracle's reply {reply!r:.120} is not read as its action")


def check_garbage(subject: Subject) -> str:
    """Unreadable replies never raise, never pay and never end in success. With `noop` they move
    nothing. An action that does not exist is not legal. Nonsense at the end of a plan adds nothing
    to the pay of the moves before it.

    Sees: all that for 300 replies as failing models write them, for nonsense in the right format,
    for legal actions with letters added, and for three plans of two moves. Cannot see: one magic
    sentence (`words` tries those in the source), and the pay of longer plans.
    """
    env, rng, invalid = subject.make(), np.random.default_rng(11), 0
    observation, _ = env.reset(seed=subject.seed(0, "val"))
    for number in range(subject.garbage):
        legal = env.legal_actions()
        text = write_garbage(rng, legal)
        reply = f"reply {text!r:.120}"
        before = digest_picture(observation["image"])
        try:
            observation, reward, terminated, truncated, info = env.step(text)
        except Exception as error:
            raise CheckFailure(f"{reply} raised {type(error).__name__}: {error}") from error
        if info["invalid_action"]:
            invalid += 1
            require(reward <= 0, f"{reply} was invalid and paid {reward}")

            # Nothing moves; of several seats, the others play on.
            unread = info["vlgym"]["parse"] != "illegal_action"
            quiet = unread and env.invalid_action == "noop" and not isinstance(env, MultiVLEnv)
            still = before == digest_picture(observation["image"]) and legal == env.legal_actions()
            require(still or not quiet, f"the unreadable {reply} changed the picture or the legal actions")
        if terminated or truncated:
            observation, _ = env.reset(seed=subject.seed(number + 1, "val"))
    count = f"{invalid} of {subject.garbage}"
    require(invalid > 0.5 * subject.garbage, f"only {count} garbage replies counted as invalid")

    # Made-up actions in the right format are illegal, too.
    tried = [*NONSENSE, *(f"{action}zz" for action in env.legal_actions()[:20] if "\n" not in action)]
    for action in tried:
        taken = env.match_action(action) is not None
        require(not taken, f"the action {action!r:.60}, which does not exist, is taken for a legal one")
    _, reward, _, _, info = env.step(env.parser.format([NONSENSE[0]]))
    unpaid = info["invalid_action"] and reward <= 0
    require(unpaid, f"the action {NONSENSE[0]!r} was executed or paid")

    # A plan may end in nonsense: what came before it is paid, and no more.
    plans = _try_half_plans(subject)
    also = f"; {plans} plans that end in nonsense paid what their moves pay" if plans else ""
    return f"{count} garbage replies counted invalid, none raised, paid or moved anything{also}"


def _try_half_plans(subject: Subject) -> int:
    """Compare plans that end in nonsense with those without it; return how many could be."""
    if "global" not in subject.spec.planners:
        return 0
    env, rng, tried = subject.make(planner="global"), np.random.default_rng(12), 0
    for seed in subject.seeds(3, first=120):
        env.reset(seed=seed)
        legal = env.legal_actions()
        moves = [legal[int(i)] for i in rng.integers(len(legal), size=2)]
        spoilt = env.parser.format([*moves, NONSENSE[0]])
        if env.parser.parse(spoilt, legal).actions != (*moves, NONSENSE[0]):
            continue  # one action a reply, such as the code of a page

        # The moves alone, where the nonsense would still be read.
        _, due, over, _, info = env.step(env.parser.format(moves))
        over = over or info["invalid_action"] or env.turn >= env.max_turns
        if over or env.invalid_action != "noop":
            continue

        # The same moves with it.
        env.reset(seed=seed)
        _, paid, _, _, info = env.step(spoilt)
        due -= env.step_cost + env.invalid_penalty
        plan = f"the plan {spoilt!r:.120} ends in nonsense and"
        require(info["invalid_action"], f"{plan} is not counted as invalid")
        require(abs(paid - due) < 1e-9, f"{plan} paid {paid}; its moves pay {due}")
        tried += 1
    return tried


def check_words(subject: Subject) -> str:
    """Only actions are paid. Words of the environment's own source change nothing as a reply, as an
    action, or as thoughts before a legal action.

    Sees: a magic word in the source of the environment's module or of its parser. Cannot see: one
    that is computed, read from a file or kept in another module, or, in free text, has brackets.
    """
    env = subject.make()
    words = list_words(env)

    # Words as whole replies and as actions: none may pay or be taken for one.
    env.reset(seed=subject.seed(80))
    open_ended = type(env).match_action is not Game.match_action
    resets = 0
    for word in words:
        _, reward, terminated, truncated, info = env.step(word)
        unpaid = not info["invalid_action"] or (reward <= 0 and not info["success"])
        require(unpaid, f"the reply {word!r} is no action and paid {reward}")
        if terminated or truncated:
            resets += 1
            env.reset(seed=subject.seed(80 + resets))
        hidden, legal = env.match_action(word), env.legal_actions()
        listed = hidden is None or hidden in legal or match_legal(word, legal) is not None
        free = open_ended and not _READABLE.fullmatch(word)  # code or a search: any is an action
        wrong = f"the word {word!r} is taken for an action, but is not among the legal actions"
        require(listed or free, wrong)

    # Words as thoughts: the same actions have to lead to the same episode.
    silent = subject.make()
    for index, seed in enumerate(subject.seeds(3, first=90)):
        quiet = play_episode(silent, seed, choose_legal(90 + index), 8)
        talk = " ".join(filter(_READABLE.fullmatch, words[index::3]))
        spoken = [_speak(env, step.reply, talk, step.legal) for step in quiet[1:]]
        loud = play_episode(env, seed, repeat(spoken), len(spoken))
        difference = first_difference([*map(_unspanned, quiet)], [*map(_unspanned, loud)])
        require(difference is None, f"thoughts before the same actions change the episode: {difference}")
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
    """Return short strings of the source of an environment's classes and parser, sorted."""
    own = [cls for cls in type(env).__mro__ if not issubclass(VLEnv, cls) and cls is not GymAdapter]
    words: set[str] = set()
    for name in {cls.__module__ for cls in (*own, type(env.parser))}:
        try:
            tree = ast.parse(inspect.getsource(sys.modules[name]))
        except (OSError, TypeError, SyntaxError, KeyError):
            continue
        for node in ast.walk(tree):
            word = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(word, str) and 2 <= len(word) <= 40:
                words.add(word)
    return sorted(words)[:MOST_WORDS]
