"""Blind players: how they choose and learn, and what a certificate makes of it."""

import random
from dataclasses import replace
from typing import Any

import pytest
from toys import Coin, Walk, installed, make_entry, make_spec

from vlgym.cli.app import main
from vlgym.env.seeding import episode_seed
from vlgym.errors import PluginError, UserError
from vlgym.evaluation import evaluate
from vlgym.evaluation.policy_names import make_policy
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.registry import get_registry
from vlgym.registry.making import build
from vlgym.registry.registry_file import read_registry
from vlgym.sight import blind_learner
from vlgym.sight.blind import BlindPlayer, Searcher
from vlgym.sight.blind_gap import find_blind_share
from vlgym.sight.blind_learner import LEARNERS, TABLE, count_training, learn
from vlgym.sight.blind_policies import BlindPolicy, choose_player, load_players, make_constant
from vlgym.testing import EnvConformance, Subject, certify
from vlgym.testing.measure import JUDGED, find_constants, list_learners, measure_blind
from vlgym.testing.sight_checks import check_blind
from vlgym.types import Outcome, Turn

HANDED: list[tuple[Any, ...]] = []


class Spy(BlindPlayer):
    name = "spy"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.turns = 0

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        self.turns += 1
        HANDED.append((self, self.turns, type(text), {type(each) for each in legal}, text, legal, vars(self)))
        return self.rng.choice(legal)


class Nameless(BlindPlayer):
    pass


def play(policy: BlindPolicy, episodes: int = 3) -> list[list[Any]]:
    runner = Runner([Walk(vlgym_spec=make_spec())], split="val", episodes=episodes)
    return list(run_episodes(runner, policy))


def test_a_player_is_handed_plain_texts_and_nothing_else() -> None:
    HANDED.clear()
    episodes = play(BlindPolicy("spy", Spy))
    records = [record for episode in episodes for record in episode]
    assert [handed[4] for handed in HANDED] == [record.text for record in records]
    for player, _, kind, kinds, _, legal, memory in HANDED:
        assert (kind, kinds, legal) == (str, {str}, ("left", "right"))
        assert memory.keys() == {"rng", "turns"}
        assert not any(hasattr(player, name) for name in ("env", "turn", "image", "seed"))


def test_each_episode_has_a_player_of_its_own_whose_chance_is_that_of_the_seed() -> None:
    HANDED.clear()
    first = [[record.reply for record in episode] for episode in play(BlindPolicy("spy", Spy))]
    turns = [turn + 1 for episode in first for turn in range(len(episode))]
    assert [handed[1] for handed in HANDED] == turns
    assert len({id(handed[0]) for handed in HANDED}) == 3
    assert first == [[record.reply for record in episode] for episode in play(BlindPolicy("spy", Spy))]
    assert len({tuple(replies) for replies in first}) > 1
    HANDED.clear()
    policy, env = BlindPolicy("spy", Spy), Walk(vlgym_spec=make_spec())
    for turn in (0, 1, 0):  # begun again
        policy.reply([Turn([], env, "vlgym/Walk-v0", 7, turn, text="Walk.", legal=("left",))])
    assert [handed[1] for handed in HANDED] == [1, 2, 1]


def test_a_turn_without_a_text_and_an_answer_that_is_none_are_refused() -> None:
    env = Walk(vlgym_spec=make_spec())
    with pytest.raises(UserError, match="needs the turn's text"):
        make_constant("left").reply([Turn([], env, "vlgym/Walk-v0")])
    wrong = BlindPolicy("wrong", lambda rng: type("Wrong", (BlindPlayer,), {"choose": lambda *_: 3})(rng))
    with pytest.raises(UserError, match="'wrong' chose int"):
        wrong.reply([Turn([], env, "vlgym/Walk-v0", text="Walk.", legal=("left",))])


def test_the_searcher_prefers_what_it_has_not_tried_here_then_what_the_text_names() -> None:
    searcher = Searcher(random.Random(0))
    room = ("look", "open drawer", "open fridge", "go north")

    def choose(*legal: str) -> str:
        return searcher.choose(f"Bring the egg from the fridge. Legal: {', '.join(legal)}", legal)

    order = ["open fridge", "look", "open drawer", "go north", "open fridge"]
    assert [choose(*room) for _ in range(5)] == order
    assert choose(*room, "take milk", "take egg") == "take egg"
    assert choose(*room, "take milk", "take egg", "wait") == "take egg"
    assert searcher.choose("", ()) == ""
    searcher = Searcher(random.Random(0))
    assert searcher.choose("nothing", ("a", "b")) == "a"
    assert searcher.choose("nothing", ("a", "b", "c")) == "c"  # which the last action made possible


def test_policies_are_chosen_on_val_and_judged_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.testing.measure.CHOOSING_TURNS", 80)
    spec = make_spec(blind=(f"{__name__}:Spy",))
    assert find_constants(spec, lambda: Walk(vlgym_spec=spec)) == ["left", "right"]
    splits, tried = [], []
    with installed(spec):

        def play(policy: Any, split: str, episodes: int) -> Any:
            splits.append(split)
            report = evaluate(spec.id, policy, split=split, episodes=episodes)
            tried.append(report)
            return report

        judged: list[str] = []

        def judge(policy: Any) -> dict[str, Any]:
            judged.append(policy.name)
            returned = {"searcher": 3.0, "spy": 2.0}.get(policy.name, 1.0)
            return {"return": returned, "se": 0.5, "success": 1 / returned, "episodes": 9}

        floor = measure_blind(spec, lambda: Walk(vlgym_spec=spec), play, judge)
    assert set(splits) == {"val"}
    chosen = tried[2:]  # after the two constants
    assert [each.policy for each in chosen[:3]] == ["random", "idle", "garbage"]
    assert {"searcher", "spy"} <= {report.policy for report in chosen}
    assert any(report.policy.startswith("always ") for report in chosen)
    plain, players = chosen[:3], chosen[3:]
    due = [max(plain, key=lambda each: getattr(each, name)).policy for name in ("mean_return", "success")]
    for name in ("mean_return", "success"):
        due += [each.policy for each in sorted(players, key=lambda each: -getattr(each, name))[:JUDGED]]
    assert judged == list(dict.fromkeys(due))
    assert len(players) > JUDGED
    assert floor["return"] == max({"searcher": 3.0, "spy": 2.0}.get(name, 1.0) for name in due)
    assert (floor["success"], floor["success_policy"]) == (1.0, due[1])


@pytest.mark.parametrize(
    "place", ["no_such_module:Spy", f"{__name__}:Missing", "test_blind_players:Nameless", "toys:Walk"]
)
def test_a_blind_player_that_cannot_be_had_is_refused_by_name(place: str) -> None:
    with pytest.raises(PluginError, match=place):
        load_players(make_spec(blind=(place,)))


FIGURES = {"return": 0.25, "se": 0.0, "success": 0.625, "episodes": 9, "policy": "a", "success_policy": "b"}
FINED = {"return": -5.0, "se": 0.1, "success": 0.25, "episodes": 9}


@pytest.mark.parametrize(("changes", "others", "share"), [
    ({}, {}, 0.5),  # success 0.625 between 0.25 and 1
    ({"return": 0.85}, {}, 0.8), ({"return": -3.0, "success": 0.0}, {}, 0),
    ({"return": -1.0, "success": 0.25}, {"floor": FINED}, 4 / 6),  # -1 between -5 and 1
    ({}, {"ceiling": None}, None), ({}, {"blind": None}, None),
])  # fmt: skip
def test_the_blind_share_is_the_greater_and_never_made_up(changes, others, share):
    entry = make_entry(make_spec(), **{"blind": {**FIGURES, **changes}, **others})
    assert find_blind_share(entry) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(("title", "best", "name"), [
    ("NumberLine-v1", "searcher", "searcher"), ("NumberLine-v1", "always +", "always +"),
    ("NumberLine-v1", "random", "random"), ("NumberLine-v1", None, "fixed moves"),
    ("Blackjack-v0", None, "searcher"), ("Blackjack-v0", "a player that is gone", "searcher"),
])  # fmt: skip
def test_the_player_is_recorded_or_the_cards(title: str, best: str | None, name: str) -> None:
    entry: dict[str, Any] = {"blind": {"success_policy": best}} if best else {}
    assert choose_player(get_registry().get(f"vlgym/{title}"), entry).name == name
    assert choose_player(None, None).name == Searcher.name
    assert isinstance(choose_player(None, {"blind": {"success_policy": "random"}}), RandomPolicy)


def test_by_its_name_it_plays_what_the_registry_names() -> None:
    entry = read_registry()["vlgym/Blackjack-v0"]
    best = choose_player(get_registry().get("vlgym/Blackjack-v0"), entry)
    assert best.name == entry["blind"]["success_policy"] == "always stand"
    policies = make_policy("blind", {}), best
    returns = [evaluate("vlgym/Blackjack-v0", policy, episodes=6).mean_return for policy in policies]
    assert returns[0] == returns[1]


SPEC = make_spec()


class Silent(Walk):
    """The target is in the picture only."""

    def task(self) -> str:
        return "Go to the red cell."


class Whisper(Silent):
    """The feedback of a step says where the target lies."""

    def act(self, action: str) -> Outcome:
        done = super().act(action)
        return Outcome(done.reward, done.terminated, feedback=f"it lies {self.oracle()}")


class OneWay(Silent):
    """The list of legal actions says where the target lies."""

    def legal_actions(self) -> list[str]:
        return ["left", "right"] if self.target < 0 else ["right", "left"]


class Unlisted(Silent):
    """Each target is at the right, and the actions are explained, not listed."""

    notation = "a direction"

    def start(self, rng: Any, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.target = abs(self.target)


def judge(env_class: type[Walk], name: str) -> float:
    """Return the success on test of what a learner has learnt on train."""
    policy = BlindPolicy(name, learn(SPEC, lambda: env_class(vlgym_spec=SPEC), name))
    runner = Runner([env_class(vlgym_spec=SPEC)], split="test", episodes=60)
    episodes = list(run_episodes(runner, policy))
    return sum(episode[-1].reward for episode in episodes) / len(episodes)


@pytest.mark.parametrize(("env_class", "name", "least", "most"), [
    (Walk, "learnt table", 0.9, 1), (OneWay, "learnt table", 0.9, 1),
    (Whisper, "learnt table", 0.9, 1), (Silent, "learnt table", 0, 0.6),
    (Walk, "learnt list", 0, 0.6), (Unlisted, "learnt list", 0.9, 1),
])  # fmt: skip
def test_only_what_is_told_is_learnt(monkeypatch, env_class, name, least, most):
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 300)
    assert least <= judge(env_class, name) <= most


def test_learning_sees_train_alone_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 12)
    seeds: list[int | None] = []

    class Watched(Walk):
        def start(self, rng: Any, options: dict[str, Any]) -> None:
            seeds.append(self.reset_seed)
            super().start(rng, options)

    memories = []
    for name in [*LEARNERS, *LEARNERS]:
        seeds.clear()
        make: Any = learn(SPEC, lambda: Watched(vlgym_spec=SPEC), name)
        memories.append(make(random.Random(0)).memory.rows)
        assert seeds == [episode_seed(SPEC.id, "train", number) for number in range(12)]
    assert memories[:2] == memories[2:]
    assert memories[0] != memories[1]


def test_a_long_or_slow_environment_has_a_smaller_budget() -> None:
    assert count_training(make_spec(max_turns=1)) == blind_learner.LEARNING_EPISODES
    assert count_training(make_spec(max_turns=500)) == blind_learner.LEARNING_TURNS // 500
    assert count_training(make_spec(max_turns=1, figure_episodes=100)) == blind_learner.SLOW_EPISODES


def test_a_learner_of_the_registry_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 300)
    with installed(SPEC):
        policy = choose_player(SPEC, {"blind": {"success_policy": TABLE}})
        assert policy.name == TABLE
        assert evaluate(SPEC.id, policy, split="test", episodes=20).success > 0.9


def test_a_slow_replaced_version_is_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.testing.measure.learn", lambda spec, make, name: None)
    old = replace(SPEC, replaced_by="vlgym/Walk-v1")
    assert [player.name for player in list_learners(old, build)] == list(LEARNERS)
    assert list_learners(replace(old, system_requirements=("chromium",)), build) == []


class Told(Coin):
    """The task names the action that wins."""

    def oracle(self) -> str:
        return "heads"


class Jump(Silent):
    """One action leads to each cell."""

    def legal_actions(self) -> list[str]:
        return [str(cell) for cell in range(-5, 6)]

    def act(self, action: str) -> Outcome:
        self.position = int(action)
        return Outcome(float(self.success()), terminated=True)

    def oracle(self) -> str | None:
        return str(self.target)


TOLD = make_spec("toys/Told-v0", f"{__name__}:Told", reward_range=(-1.0, 6.0))
SHOWN = make_spec("toys/Shown-v0", f"{__name__}:Jump", max_turns=1)


def test_a_text_that_names_the_answer_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    kit = type("TestTold", (EnvConformance,), {"env_id": TOLD.id, "_subjects": {}})()
    with installed(TOLD):
        certificate = certify(TOLD.id, only=["blind"])
        assert main(["check", TOLD.id, "--only", "blind"]) == 0
        with pytest.warns(UserWarning, match="toys/Told-v0: blind: without the picture"):
            kit.test_contract(TOLD.id, "blind")
    [result] = certificate.results
    assert (result.passed, result.warning, certificate.passed, certificate.warnings) == (True, True, True, 1)
    assert "reaches 1.00 of the way from random play to the oracle" in result.evidence
    assert certificate.to_dict()["checks"][0]["warning"] is True
    out = capsys.readouterr().out
    assert "  warn blind" in out
    assert "0 of 1 properties hold, 1 warned of" in out


def test_where_only_the_picture_tells_the_answer_nothing_is_warned_of() -> None:
    with installed(SHOWN):
        [result] = certify(SHOWN.id, only=["blind"]).results
    assert (result.passed, result.warning) == (True, False)
    assert "of the way from random play to the oracle" in result.evidence


def test_without_an_oracle_there_is_no_way_to_measure() -> None:
    assert "no oracle" in check_blind(Subject(replace(SHOWN, oracle="none")))
