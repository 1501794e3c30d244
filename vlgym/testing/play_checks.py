"""Checks that play: determinism, states, copies, oracle, random play, rewards, results, endings."""

import contextlib
import copy
import itertools
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import OrderEnforcing

from ..env.states import CONTENT, seal_state
from ..errors import UserError
from ..evaluation import Report
from ..games.multi import MultiVLEnv
from ..intervals import binomial_p
from ..play.policies import IdlePolicy, OraclePolicy, RandomPolicy
from .playing import GARBAGE, Deadline, GarbagePolicy, choose_idle, choose_legal, choose_oracle, play_episode, same
from .subject import CheckFailure, Subject, require, require_repeat

DEPTHS = (0, 1, 2, 3, 4, 5, 6, 10, 14, 18)  # turns after which a state is saved
GO_ON = (0, 4, 18)  # those after which the episode is played on
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),  # noqa: S301 - made here
    "deep copy": copy.deepcopy,
}
COPY_TURNS = 4

HISTORY = 40  # episodes after which the first must still be the same
HISTORY_TURNS = 600  # turns of these episodes, together
HISTORY_SECONDS = 4.0  # time after which no other is begun; at least 6 are played


def check_determinism(subject: Subject) -> str:
    """The same seed gives the same episode, pixels included. It does so in a fresh instance and
    after another history.

    Sees: chance outside the episode's generator, in three episodes (random play, the oracle's, one
    without a readable reply) up to turn 40. Cannot see: what no episode reaches.
    """
    first, second = subject.make(), subject.make()
    play_episode(second, subject.seed(7), choose_legal(7), 5)
    turns = 0
    for index, choose in enumerate((choose_legal(0, garbage_every=5), choose_oracle, choose_idle)):
        seed = subject.seed(index)
        one = play_episode(first, seed, choose, 40)
        require_repeat(one, second, seed, f"seed {index}")
        turns += len(one) - 1

    # A constant environment repeats itself, too.
    sample = subject.sample
    starts, count = {(episode[0].text, episode[0].picture) for episode in sample}, f"{len(sample)} seeds"
    require(len(starts) > 1, f"{count} all begin in the same state: the seed has no effect")
    return f"3 seeds replayed identically over {turns} turns; {count} gave {len(starts)} starts"


def check_history(subject: Subject) -> str:
    """An episode is the same after 40 others. It is so in the same instance and in a new one.

    Sees: what changes with the number of episodes, up to 40 (fewer where an episode is slow: the
    evidence says how many). Cannot see: later changes.
    """
    env = subject.make()
    seed = subject.seed(100)
    choose = choose_oracle if subject.spec.oracle != "none" else choose_legal(100, garbage_every=5)
    before = play_episode(env, seed, choose, 20)

    # Other episodes in between.
    turns, deadline, played = HISTORY_TURNS // HISTORY, Deadline(HISTORY_SECONDS), 0
    while played < HISTORY and (played < 6 or not deadline.over):
        play_episode(env, subject.seed(101 + played), choose_legal(played), turns)
        played += 1
    for place, other in (("the same instance", env), ("a new instance", subject.make())):
        require_repeat(before, other, seed, f"after {played} episodes, in {place}")
    return f"the same after {played} episodes, in the same instance and in a new one"


def check_state(subject: Subject) -> str:
    """A state saved at any turn goes on identically. It may pass through JSON.

    Sees: anything forgotten that shows, at each of the first 6 turns and after 10, 14 and 18, and
    in the 12 turns after some of them; a state of another environment, of other arguments or
    damaged that is taken. Cannot see: what never shows.
    """
    env, other = subject.make(), subject.make()
    played, restored, size = 0, 0, 0
    for depth in DEPTHS:
        steps = _reach(subject, env, depth)
        if steps[-1].ended:
            continue
        at = f"turn {steps[-1].turn}:"
        text = json.dumps(env.get_state())
        restored, size = restored + 1, max(size, len(text))

        # The used instance says the same, and saves the same.
        other.reset(seed=1)
        observation, info = other.set_state(json.loads(text))
        require((observation["image"] == env.image()).all(), f"{at} the image differs after set_state")
        require(observation["text"] == steps[-1].text, f"{at} the text differs after set_state")
        difference = _differing(info, steps[-1].info)
        require(not difference, f"{at} after set_state info differs in {difference}")
        again = json.dumps(other.get_state())
        require(again == text, f"{at} a state that was restored is saved otherwise")

        # Refusals and further turns take long: at a few depths.
        if depth == 4:
            _require_refusals(subject, other, json.loads(text))
        if depth in GO_ON:
            played += _play_on(env, other, choose_legal(depth + 1, garbage_every=5))
    return f"{restored} states of up to {size} bytes restored; {played} further turns identical"


def _reach(subject: Subject, env: Any, depth: int) -> list[Any]:
    """Play `depth` turns of an episode that does not end before, if there is one."""
    for index in range(8):
        choose = choose_idle if index >= 6 else choose_legal(index, garbage_every=3 if index > 2 else 5)
        steps = play_episode(env, subject.seed(3 + index), choose, depth)
        if not steps[-1].ended:
            break
    return steps


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return the keys in which two infos differ, except those that only `step` knows."""
    names = {*one, *other} - {"vlgym", "invalid_action"}
    wrong = [name for name in sorted(names) if one.get(name) != other.get(name)]
    details = ("turn", "legal_actions", "instructions", "turn_text")
    wrong += [name for name in details if one["vlgym"][name] != other["vlgym"][name]]
    return ", ".join(wrong)


def _require_refusals(subject: Subject, env: Any, state: dict[str, Any]) -> None:
    """Other and damaged states are refused, and the episode goes on as it was."""
    env_id, arguments, counters = subject.spec.id, state["env"]["arguments"], state["counters"]
    content = {name: state[name] for name in CONTENT}
    wrong = {
        "nothing": {},
        "a state without its events": {name: state[name] for name in state if name != "events"},
        "a state with another turn": {**state, "counters": [counters[0] + 1, *counters[1:]]},
        "a state of another environment": seal_state(content, "vlgym/Other-v0", arguments),
        "a state of other arguments": seal_state(content, env_id, {**arguments, "max_turns": 3}),
        "a state without its start": seal_state({**content, "start": None}, env_id, arguments),
        "a state that saves something else": seal_state({**content, "saved": {"?": 1}}, env_id, arguments),
    }

    # An error that is no `UserError` would reach a user as a traceback.
    before = env.get_state()
    for name, each in wrong.items():
        try:
            env.set_state(each)
        except UserError as error:
            require("\n" not in str(error), f"{name} is refused in more than one line")
        except Exception as error:
            kind = type(error).__name__
            raise CheckFailure(f"{name} raises {kind} instead of UserError: {error}") from error
        else:
            raise CheckFailure(f"{name} is restored without an error")
        require(env.get_state() == before, f"{name} was refused, but changed the running episode")


def _play_on(env: Any, other: Any, choose: Any) -> int:
    for turn in range(12):
        text = choose(env, turn)
        one, two = env.step(text), other.step(text)
        require(same(one[:4], two[:4]), f"turn {turn} after the restore differs")
        difference = _differing(one[4], two[4]) or "vlgym"
        require(one[4] == two[4], f"info of turn {turn} after the restore differs: {difference}")
        if one[2] or one[3]:
            return turn + 1
    return 12


def check_copies(subject: Subject) -> str:
    """A pickle and a deep copy go on as the original. They do so for every seat and in a wrapper,
    sample alike, and outlive a closed original.

    Sees: what is forgotten, or shared with an engine, before the first episode and in its second
    turn, over 4 turns and at the next start. Cannot see: what another process lacks.
    """
    first: Any = subject.make()
    any_seat = isinstance(first, MultiVLEnv) and first.seat is None and not first._alone
    seats: list[Any] = list(range(first.seats)) if any_seat else [None]
    turns, seed = 0, subject.seed(300)
    for seat, (way, copied) in itertools.product(seats, COPIES.items()):
        env = OrderEnforcing(subject.make(**({} if seat is None else {"seat": seat})))
        where = f"{way}{'' if seat is None else f' of seat {seat}'}"

        # Before the first episode, then in the second turn of one.
        other = copied(env)
        alike = same(env.reset(seed=seed), other.reset(seed=seed))
        require(alike, f"{where}: the first episode differs")
        other.close()
        env.action_space.seed(1)
        env.step(GARBAGE)
        other = copied(env)
        turns += _play_twins(env, other, where)

        # The copy outlives the original.
        env.close()
        other.step(other.action_space.sample())
        other.close()
    return f"pickles and deep copies of {len(seats)} seat(s) go on alike over {turns} turns"


def _play_twins(env: Any, other: Any, where: str) -> int:
    """Play both with the same samples, to the start of the next episode; return the turns."""
    turns, ended = 0, env.unwrapped._ended
    while turns < COPY_TURNS and not ended:
        turns, reply = turns + 1, env.action_space.sample()
        require(reply == other.action_space.sample(), f"{where}: it samples another reply")
        one, two = env.step(reply), other.step(reply)
        require(same(one, two), f"{where}: turn {turns} after it differs")
        ended = one[2] or one[3]
    require(same(env.reset(), other.reset()), f"{where}: the next episode differs")
    return turns


def check_oracle(subject: Subject) -> str:
    """The oracle, where the spec has one, wins its stated share. It plays seeds of val and of test.

    Sees: an oracle that loses, a split that cannot be solved. Cannot see: a rare seed that it
    loses: 30 and 20 are played, fewer of long or slow episodes.
    """
    promised, parts = subject.spec.oracle_success, []
    if subject.spec.oracle == "none":
        env = subject.make()
        env.reset(seed=0)
        require(env.solve() is None, "the spec says oracle='none', but solve() answers")
        return "the spec states that there is no oracle"

    # On test few episodes may be lost by chance.
    for split in subject.splits():
        report = subject.play(OraclePolicy(fallback=True), split)
        reached = report.success >= promised - 1e-9
        wins = reached or (split == "test" and not is_unlikely(report, promised))
        share = f"{report.success:.3f} of {report.episodes}"
        require(wins, f"oracle succeeded in {share} episodes of {split}, the spec promises {promised}")
        parts.append(f"{share} in {split}, return {report.mean_return:.3f}")
    return f"oracle success {'; '.join(parts)} (promised {promised})"


def check_floor(subject: Subject) -> str:
    """Random play stays under its bound and the oracle's return. It plays seeds of val and of test.

    Sees: a split that is trivial. Cannot see: another simple policy that wins.
    """
    parts, bound = [], subject.spec.random_success_below
    for split in subject.splits():
        report = subject.play(RandomPolicy(), split)
        success, earned = f"{report.success:.3f}", report.mean_return

        # Few episodes may succeed by chance.
        enough = split == "val" or report.episodes >= 10
        by_chance = report.episodes < 30 and not is_unlikely(report, bound, above=True)
        under = not enough or report.success < bound or by_chance
        require(under, f"random success {success} on {split} is not below {bound}")
        if subject.spec.oracle != "none":
            best = subject.play(OraclePolicy(fallback=True), split).mean_return
            above = f"random return {earned:.3f} on {split} is not below the oracle's {best:.3f}"
            require(earned < best, above)
        parts.append(f"{split} {success}, return {earned:.3f}, {report.episodes} episodes")
    return f"random success {'; '.join(parts)}"


def check_silence(subject: Subject) -> str:
    """A policy without readable replies never succeeds. It earns at most the return of random play
    plus a quarter of the oracle's lead over it.

    Sees: an unreadable reply that costs less than the legal moves do, in up to 30 episodes of val
    (test, where there is none). Cannot see: what few episodes do not tell from luck.
    """
    if not subject.splits():
        return "there is no split to judge on"
    split, parts = subject.splits()[0], []
    random = subject.play(RandomPolicy(), split)
    for policy in (IdlePolicy(), GarbagePolicy()):
        report = subject.play(policy, split)
        require(not report.success, f"{policy.name} replies succeed in {report.success:.3f} of the episodes")

        # Three standard errors are left to luck.
        if subject.spec.oracle != "none":
            best = subject.play(OraclePolicy(fallback=True), split)
            bound = random.mean_return + 0.25 * (best.mean_return - random.mean_return)
            bound += 3 * math.hypot(report.return_se, random.return_se)
            require(
                report.mean_return <= bound,
                f"{policy.name} replies return {report.mean_return:.3f}, random play "
                f"{random.mean_return:.3f} and the oracle {best.mean_return:.3f}: silence pays",
            )
        parts.append(f"{policy.name} {report.mean_return:.3f}")
    return f"{' and '.join(parts)}, random {random.mean_return:.3f}, without a success"


def is_unlikely(report: Report, share: float, *, above: bool = False) -> bool:
    """True if at most this many successes have a probability below 1 in 1,000 under a true share.

    Args:
        above: at least this many, instead of at most.
    """
    n, won = report.episodes, round(report.success * report.episodes)
    return (binomial_p(won, n, share) if above else binomial_p(n - won, n, 1 - share)) < 1e-3


def check_rewards(subject: Subject) -> str:
    """Every observed reward lies in the stated range. An episode's end is reached.

    Sees: rewards out of range, NaN, and episodes that are too long, in the games of random policy
    and oracle on val and test. Cannot see: rewards that those two do not earn.
    """
    spec = subject.spec
    for split in subject.splits():
        subject.play(RandomPolicy(), split)
        if spec.oracle != "none":
            subject.play(OraclePolicy(fallback=True), split)

    # The record of all that was played so far.
    records = subject.records()
    rewards = [record.reward for record in records]
    require(not any(map(math.isnan, rewards)), "a reward is NaN")
    (low, high), least, most = spec.reward_range, min(rewards), max(rewards)
    require(low - 1e-9 <= least and most <= high + 1e-9, f"rewards {least}..{most} leave [{low}, {high}]")
    longest = max(record.turn for record in records) + 1
    require(longest <= spec.max_turns, f"an episode took {longest} turns, the spec says {spec.max_turns}")
    return f"{len(rewards)} rewards in [{least:.3f}, {most:.3f}]; longest episode {longest} turns"


def check_turn_limit(subject: Subject) -> str:
    """An episode of unreadable replies is truncated at the turn limit, not terminated. With
    `invalid_action` `terminate` the first one terminates it; instead of `random`, `noop` is tested.

    Sees: an end too early or too late, and a step after it, up to turn 25. Cannot see: other
    limits.
    """
    limit = min(subject.spec.max_turns, 25)
    env = subject.make(max_turns=limit)
    if env.invalid_action in ("random", "published"):  # a random action may end the episode by the rules
        env = subject.make(max_turns=limit, invalid_action="noop")
    at_once = env.invalid_action == "terminate"
    env.reset(seed=5)
    for turn in range(1 if at_once else limit):
        _, _, terminated, truncated, info = env.step(GARBAGE)
        require(not info["success"], "unreadable replies ended in success")
        if at_once:
            why = "invalid_action is 'terminate', but an unreadable reply did not terminate the episode"
            require(terminated, why)
            continue
        if isinstance(env, MultiVLEnv) and terminated:  # the others play on
            break
        require(not terminated, f"turn {turn} of unreadable replies terminated the episode")
        require(truncated == (turn == limit - 1), f"truncated={truncated} at turn {turn + 1} of {limit}")

    # The end stays the end.
    with contextlib.suppress(ResetNeeded):
        env.step(GARBAGE)
        require(False, "stepping after the end did not raise ResetNeeded")
    ended = "terminated by the first unreadable reply" if at_once else f"truncated after exactly {limit} turns"
    return f"{ended}; stepping on raises ResetNeeded"


LONG = 12  # turns over which results are compared with one another


def check_values(subject: Subject) -> str:
    """Rewards, flags, info and legal actions have valid values. They are Python's own numbers,
    JSON, and different, non-empty strings.

    Sees: numpy scalars, NaN, infinities, sets, arrays or objects in info, no or doubled legal
    actions, in about 200 turns. Cannot see: later turns, and other arguments.
    """
    steps = [step for episode in subject.sample for step in episode]
    for step in steps:
        where = f"at turn {step.turn}"
        values: list[tuple[str, type, Any]] = [
            ("the reward", float, step.reward),
            ("info['score']", float, step.info.get("score", 0.0)),
            ("terminated", bool, step.terminated),
            ("truncated", bool, step.truncated),
            ("info['success']", bool, step.info.get("success")),
            ("info['invalid_action']", bool, step.info.get("invalid_action")),
        ]
        for name, kind, value in values:
            wrong = f"{name} {where} is {type(value).__name__} {value!r:.40}"
            require(type(value) is kind, f"{wrong}, not a {kind.__name__}")
            require(math.isfinite(value), wrong)
        try:
            json.dumps(step.info, allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"info {where} is not JSON: {error}")

        # An episode that goes on offers actions.
        if not step.ended:
            require(step.legal, f"there is no legal action {where}")
            require(len(set(step.legal)) == len(step.legal), f"a legal action {where} is listed twice")
            for action in step.legal:
                require(isinstance(action, str) and action.strip(), f"the legal action {action!r} {where} is no text")
    return f"{len(steps)} results hold plain numbers, and an info that is JSON"


def check_endings(subject: Subject) -> str:
    """An episode ends as terminated or as truncated, not both, and stays ended. It is truncated
    before `max_turns` only where the spec says `truncates_early`.

    Sees: both flags at once, a truncation of legal play before its time, a step after the end; a
    `close` that leaves out the base class's. Cannot see: a `terminated` that comes too early.
    """
    env, seeds = subject.make(), subject.seeds(3, first=40)
    limit = env.max_turns
    played = [play_episode(env, seed, choose_legal(index), min(limit, 60)) for index, seed in enumerate(seeds)]
    env.reset(seed=seeds[0])
    env.close()
    with contextlib.suppress(ResetNeeded):
        env.step(GARBAGE)
        require(False, "a closed environment takes a step: close() must call super().close()")

    # The ends of these episodes, and of those that policies played.
    lasts: list[Any] = [episode[-1] for episode in (*subject.sample, *played)]
    for last in lasts:
        at = last.info["vlgym"]["turn"]
        early = last.truncated and at < limit and not subject.spec.truncates_early
        require(not early, f"an episode was truncated at turn {at} of {limit}")
    for turn in (*lasts, *subject.records()):
        require(not (turn.terminated and turn.truncated), "terminated and truncated are both set at an end")
    ends = sum(last.ended for last in lasts)
    return f"{ends} endings, each with one flag; legal play is not truncated before its limit"


def check_fresh(subject: Subject) -> str:
    """Observations and infos of different calls share no memory. They do not change later.

    Sees: an array, list, dict or set that two of the first 12 results share, and one that changes
    afterwards. Cannot see: later turns.
    """
    env, choose = subject.make(), choose_legal(2, garbage_every=5)
    results: list[tuple[Any, Any]] = []
    copies: list[tuple[Any, str]] = []

    def note(observation: Any, info: Any) -> None:
        results.append((observation["image"], info))
        copies.append((observation["image"].copy(), json.dumps(info, default=str)))

    note(*env.reset(seed=2))
    for turn in range(LONG):
        observation, _, terminated, truncated, info = env.step(choose(env, turn))
        note(observation, info)
        if terminated or truncated:
            break

    # No two results share anything.
    for (one, (image, info)), (two, (later, later_info)) in itertools.combinations(enumerate(results), 2):
        turns = f"of turns {one} and {two} share"
        require(not np.shares_memory(image, later), f"the images {turns} memory")
        mutable = _list_mutable(info)
        names = {mutable[key] for key in mutable.keys() & _list_mutable(later_info).keys()}
        require(not names, f"the infos {turns} a {', a '.join(sorted(names))}")

    # Each is as it was, and none is the environment's own.
    for number, ((image, info), (first, text)) in enumerate(zip(results, copies, strict=True)):
        after = f"of turn {number} changed afterwards"
        require(np.array_equal(image, first), f"the image {after}")
        require(json.dumps(info, default=str) == text, f"the info {after}")
    results[-1][0][:] = 0
    own = np.array_equal(copies[-1][0], env.image())
    require(own, "writing into an image changed the environment's own")
    return f"images and infos of {len(results)} calls are fresh and stay as they were"


def _list_mutable(value: Any) -> dict[int, str]:
    """Return the `id` of every dict, list, set and array within `value`, with its type."""
    containers: dict[int, str] = {}
    if isinstance(value, (dict, list, set, np.ndarray)):
        containers[id(value)] = type(value).__name__
    if isinstance(value, dict):
        for item in value.values():
            containers.update(_list_mutable(item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            containers.update(_list_mutable(item))
    return containers
