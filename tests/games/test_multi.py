"""Games of several agents: one seat's view, the table of all seats, one player for all seats."""

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from toy_games import Listener, Meet, Nim

import vlgym
from vlgym.env.prompts import PromptBuilder
from vlgym.errors import UserError
from vlgym.evaluation.plan import plan_ids
from vlgym.evaluation.run import run_evaluation
from vlgym.games.multi import Round
from vlgym.games.table import Table
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.rollout import Runner
from vlgym.play.trajectory import read_header, read_trajectories
from vlgym.types import Reply, Turn

NIM, MEET = "vlgym/Nim-v0", "vlgym/Meet-v0"
ONE, TWO = "<action>one</action>", "<action>two</action>"


def play_out(env: gymnasium.Env[Any, Any], seed: int, reply: str = ONE) -> list[Any]:
    """Play one reply to the end; return texts, rewards and flags."""
    observation, info = env.reset(seed=seed)
    seen: list[Any] = [(observation["text"], info)]
    ended = False
    while not ended:
        observation, reward, terminated, truncated, info = env.step(reply)
        seen.append((observation["text"], reward, terminated, truncated, info))
        ended = terminated or truncated
    return seen


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])  # noqa: S301
def test_a_copy_of_a_seat_goes_on_as_the_original(copied: Callable[[Any], Any]) -> None:
    env = gymnasium.make(NIM, seat=1, opponents=OraclePolicy())
    env.reset(seed=5)
    env.step(TWO)
    other = copied(env)
    assert other.unwrapped.get_state() == env.unwrapped.get_state()  # type: ignore[attr-defined]
    assert other.unwrapped._players[0] is not env.unwrapped._players[0]  # type: ignore[attr-defined]
    assert repr(other.step(ONE)[1:]) == repr(env.step(ONE)[1:])


@pytest.mark.parametrize("seat", [0, 1])
def test_the_oracle_beats_random_opponents_and_a_game_is_paid_once(seat: int) -> None:
    env = vlgym.make(NIM, seat=seat)
    returns = []
    for seed in range(16):
        env.reset(seed=seed)
        while not env._ended:
            env.step(env.solve() or "")
        assert env.episode_return == (1.0 if env.success() else -1.0) == env._table.returns[seat]
        returns.append(env.episode_return)
    assert sum(returns) >= 8


def test_without_a_seat_each_episode_draws_one_from_its_seed() -> None:
    env, other = (vlgym.make(NIM) for _ in range(2))
    play_out(other, 99)
    games = [play_out(env, seed) for seed in range(8)]
    assert games == [play_out(other, seed) for seed in range(8)]  # seats too, after another history
    assert {game[0][1]["seat"] for game in games} == {0, 1}


@pytest.mark.parametrize(("reply", "reason"), [
    ("one", "Your reply had no action. "),
    ("<action>six</action>", "The action in your reply is not a legal action. "),
])  # fmt: skip
def test_a_seat_alone_reads_what_was_wrong_with_its_reply(reply: str, reason: str) -> None:
    line = f"{reason}End with <action>ACTION</action>."
    env = vlgym.make(NIM, seat=0, opponents=ScriptedPolicy([ONE]), parser="tag")
    env.reset(seed=3)
    observation, _, _, _, info = env.step(reply)
    assert info["vlgym"]["turn_text"].split("\n")[0] == line == info["vlgym"]["feedback"]
    table = table_of(NIM, 3, parser="tag")
    table.step({0: reply})
    assert "our reply" not in table.turn_text(1)
    assert table.info(0)["vlgym"]["feedback"] == line
    table.step({1: ONE})
    other = table_of(NIM, 4, parser="tag")
    other.load(json.loads(json.dumps(table.save())))
    assert table.observe(0)["text"] == other.observe(0)["text"] == observation["text"]
    assert line in json.dumps(table.turn(0).messages, default=lambda image: "")
    table.step({0: ONE})
    assert "our reply" not in table.turn_text(0)


def test_one_player_for_all_seats_reads_it_at_the_seat_that_failed() -> None:
    env = vlgym.make(MEET, opponents="self")
    env.reset(seed=1)
    texts = [env.step(reply)[4]["vlgym"]["turn_text"] for reply in ("?", *["<action>stay</action>"] * 3)]
    assert ["Your reply had no action." in text for text in texts] == [False, False, True, False]


def test_the_next_game_does_not_depend_on_how_many_replies_were_unreadable() -> None:
    env, seen = vlgym.make(NIM), []
    for reply in (ONE, "?"):
        play_out(env, 5, reply)
        seen.append([env.reset()[0]["text"] for _ in range(4)])
    assert seen[0] == seen[1]


def test_where_it_is_asked_for_the_game_waits_for_a_readable_reply() -> None:
    env = vlgym.make(NIM, seat=0, invalid_action="noop")
    before = env.reset(seed=0)[0]["image"]
    observation, reward, _, _, info = env.step("what?")
    assert (observation["image"] == before).all()
    assert (info["invalid_action"], reward, env.turn) == (True, 0, 1)


def test_a_game_without_an_idle_action_cannot_be_put_off_and_pays_nothing_for_it() -> None:
    env, other = (vlgym.make(NIM, opponents="random") for _ in range(2))
    assert (env.invalid_action, vlgym.make(MEET).invalid_action) == ("random", "noop")
    paid = set()
    for seed in range(20):
        *_, (_, _, terminated, _, info) = play_out(env, seed, "what?")
        assert terminated
        _, restored = other.set_state(json.loads(json.dumps(env.get_state())))
        assert not info["success"]
        assert not restored["success"]
        assert env.won(info["seat"]) == other.won(info["seat"]) == (env.episode_return == 0)
        paid.add(env.episode_return)
    assert paid == {0.0, -1.0}  # 0.0: chance won


def test_the_idle_action_stands_for_an_unreadable_reply_and_the_game_does_not_wait() -> None:
    env = vlgym.make(MEET, seat=0)
    env.reset(seed=0)
    before = list(env.places)
    _, reward, _, _, info = env.step("what?")
    assert info["invalid_action"]
    assert info["vlgym"]["actions"] == ["stay"]
    assert reward <= 0
    assert env.places != before  # the others have moved
    assert not info["success"]
    env.won = lambda seat: True  # the others have won for it
    assert not env.step("what?")[4]["success"]
    assert env.step("<action>stay</action>")[4]["success"]


def test_a_policy_holds_a_seat_and_sees_that_seats_prompt_and_history() -> None:
    other = Listener()
    env = vlgym.make(NIM, seat=0, opponents={1: other})
    env.reset(seed=1)
    card = env.cards[1]
    env.step(ONE)
    turn = other.heard[0]
    assert f"Your card is {card}." in turn.text
    assert (turn.legal, turn.env_id) == (("one", "two"), NIM)


def test_a_state_is_restored_without_asking_the_opponents_again() -> None:
    other = Listener()
    env = vlgym.make(NIM, seat=1, opponents=other)
    env.reset(seed=2)
    env.step(ONE)
    state, pile = json.loads(json.dumps(env.get_state())), env.pile
    env.reset(seed=8)
    count = len(other.heard)
    env.set_state(state)
    assert (env.pile, len(other.heard)) == (pile, count)
    assert len(env._table.history[0]) == len([e for e in env._table.log if "0" in e["moves"]])


WRONG = [
    ({"seat": 5}, "seat=5: vlgym/Nim-v0 has the seats 0, 1."),
    ({"seat": True}, "seat=True must be int"),
    ({"opponents": "strongest"}, "opponents='strongest' is not one of random, oracle, search."),
    ({"opponents": {1: "random"}}, "opponents={...} names seats, so say which is yours"),
    ({"seat": 0, "opponents": {2: "random"}}, "opponents: seat=2: vlgym/Nim-v0 has the seats 0, 1."),
    ({"seat": 0, "opponents": {0: "random", 1: "random"}}, "opponents gives a player to seat 0, which is yours"),
    ({"seat": 0, "opponents": {}}, "opponents has no player for seat 1"),
    ({"seat": 0, "opponents": {1: "rondom"}}, "opponents[1]='rondom' is not one of random, oracle, search."),
    ({"seat": 0, "opponents": 7}, "opponents=7 must be random, oracle, search or a policy"),
]


@pytest.mark.parametrize(("env_id", "arguments", "message"), [
    *[(NIM, *row) for row in WRONG],
    (NIM, {"opponents": "self"},
     "one player all seats of vlgym/Nim-v0: its seats play against each other"),
    (MEET, {"opponents": "self", "seat": 1},
     "one player all seats of vlgym/Meet-v0: leave out seat=1"),
    (MEET, {"opponents": "oracle"}, "vlgym/Meet-v0 has no such player; it has random"),
])  # fmt: skip
def test_wrong_seats_and_opponents_are_refused(env_id: str, arguments: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        vlgym.make(env_id, **arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("env_id", "arguments", "message"), [
    ("vlgym/Walk-v0", {}, r"Walk-v0 is for one agent. Of several: .*vlgym/Meet-v0, .*vlgym/Nim-v0"),
    (NIM, {"seat": 0}, "seat is for one agent's view"),
    (NIM, {"invalid_action": "terminate"}, "would end the game for all"),
])  # fmt: skip
def test_a_table_has_open_seats(env_id: str, arguments: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        vlgym.open_table(env_id, **arguments)


def table_of(env_id: str, seed: int, **kwargs: Any) -> Table:
    table = vlgym.open_table(env_id, **kwargs)
    table.reset(seed=seed)
    return table


def test_at_a_table_an_unreadable_reply_becomes_a_random_legal_move_and_is_counted() -> None:
    table = table_of(NIM, 4, invalid_penalty=0.25)
    pile = table.game.pile
    done = table.step({0: "<think>maybe <action>one</action>"})
    assert table.game.pile in (pile - 1, pile - 2)
    assert (done.rewards, table.invalid, table.movers) == ((-0.25, 0.0), [1, 0], (1,))
    info = table.info(0)
    assert (info["invalid_action"], info["vlgym"]["parse"]) == (True, "no_action")
    assert not table.info(1)["invalid_action"]


def test_gains_before_a_first_move_are_taken_back_if_it_is_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    make_moves = Nim.make_moves

    def pay_the_other(self: Nim, moves: Any) -> Round:
        mover, done = self.mover, make_moves(self, moves)
        return done if done.terminated or mover else Round((0.0, 0.5))

    monkeypatch.setattr(Nim, "make_moves", pay_the_other)
    env = vlgym.make(NIM, seat=1, opponents=ScriptedPolicy([ONE]))
    for seed in range(3):
        table = table_of(NIM, seed)
        env.reset(seed=seed)
        table.step({0: ONE})
        assert table.returns[1] == 0.5
        table.step({})
        assert table.returns[1] == 0.0
        assert env.step("?")[1] <= 0
        silent = play_out(env, seed, "?")
        assert all(turn[1] <= 0 for turn in silent[1:])
        assert play_out(env, seed, ONE)[1][1] >= 0.5


def test_a_gain_that_was_not_paid_wins_no_game_after_a_move_of_its_own() -> None:
    table = table_of(NIM, 0)
    table.game.won = lambda seat: seat == 0
    table.book(0, 1.0, moved=True, failed=True)
    table.step({0: ONE})
    assert not table.success[0]
    table.book(0, 0.5, moved=False, failed=False)
    table.step({1: ONE})
    assert table.success[0]


@pytest.mark.parametrize("invalid_action", ["noop", "random", "published"])
def test_an_argument_for_unreadable_replies_means_the_same_at_a_table(invalid_action: str) -> None:
    policy = ScriptedPolicy(["<action>left</action>"])
    env = vlgym.make(MEET, seat=1, opponents=policy, invalid_action=invalid_action)
    table = table_of(MEET, 3, invalid_action=invalid_action)
    seen = play_out(env, 3, "?")
    while not table.over:
        table.step({0: "<action>left</action>", 2: "<action>left</action>"})
    assert [turn[-1]["vlgym"]["actions"] for turn in seen[1:]] == [[entry["moves"]["1"]] for entry in table.log]
    assert env.episode_return == table.returns[1]
    assert seen[-1][-1]["success"] == table.success[1]


def test_a_table_state_goes_on_as_the_game_would_have() -> None:
    table, other = table_of(MEET, 7), table_of(MEET, 8)
    table.step({0: "<action>left</action>", 1: "?"})
    other.load(json.loads(json.dumps(table.save())))
    assert [other.info(seat) for seat in range(3)] == [table.info(seat) for seat in range(3)]
    assert other.info(0)["vlgym"]["span"] == (8, 12)
    for each in (table, other):
        each.step({})
    assert table.observe(0)["text"] == other.observe(0)["text"]
    assert (table.game.places, table.game.wind, table.invalid) == (other.game.places, other.game.wind, other.invalid)


def test_a_table_is_truncated_when_a_seat_has_spent_its_turns() -> None:
    table = table_of(MEET, 0)
    for _ in range(8):
        table.step({})
    assert (table.over, table.truncated, table.terminated) == (True, True, False)
    with pytest.raises(gymnasium.error.ResetNeeded):
        table.step({})


def test_a_seat_that_does_not_move_can_only_wait_and_does_nothing() -> None:
    table = table_of(NIM, 0)
    assert table.legal(1) == ["wait"]
    assert "It is not your turn." in table.observe(1)["text"]
    pile = table.game.pile
    table.step({0: ONE, 1: TWO})
    assert table.game.pile == pile - 1
    assert table.invalid == [0, 0]


def test_the_move_of_another_at_once_is_not_seen_before_one_answers() -> None:
    seen = []

    class Looker(RandomPolicy):
        def reply(self, turns: Sequence[Turn]) -> list[Reply]:
            seen.append([list(turn.env.table.game.places) for turn in turns])
            return super().reply(turns)

    env = vlgym.make(MEET, seat=0, opponents=Looker())
    env.reset(seed=0)
    places = list(env.places)
    env.step("<action>right</action>")
    assert isinstance(env, Meet)
    assert seen[0] == [places, places]  # one question for both seats


def test_a_reseeded_game_keeps_its_deal_and_changes_the_random_moves_of_the_others() -> None:
    env, other = (vlgym.make(NIM, seat=0, opponents="random").unwrapped for _ in range(2))
    env.reset(seed=3)
    state, piles, cards = env.get_state(), [], env.cards
    for seed in (1, 1, 2, 3, 4, 5):
        env.set_state(state)
        env.reseed(seed)
        env.step(ONE)
        other.set_state(env.get_state())
        assert (other.cards, other.pile) == (env.cards, env.pile) == (cards, env.pile)
        for each in (env, other):
            each.step(ONE)
        assert other.pile == env.pile
        piles.append(env.pile)
    assert piles[0] == piles[1]
    assert len(set(piles)) > 1


def say(action: str) -> str:
    return f"<action>{action}</action>"


def begin(places: list[int], **arguments: Any) -> Meet:
    """Return a meeting that all seats play, with its agents in some cells."""
    env: Any = vlgym.make(MEET, opponents="self", **arguments)
    env.reset(seed=1)
    env.places = places
    return env


def test_seats_answer_in_turn_and_the_last_move_of_a_round_pays_the_mean() -> None:
    env = begin([0, 1, 2])
    seats, rewards = [env.seat_now], []
    for action in ("right", "stay", "left"):
        assert env.places == [0, 1, 2]  # no seat sees a move of the round that is not over
        _, reward, terminated, truncated, info = env.step(say(action))
        seats.append(info["seat"])
        rewards.append(reward)
        assert (terminated, truncated) == (False, False)
    assert (seats, rewards, env.places) == ([0, 1, 2, 0], [0.0, 0.0, 1.0], [1, 1, 1])


@pytest.mark.parametrize("invalid_action", ["noop", "random"])
def test_a_round_with_an_unreadable_reply_pays_no_gain(invalid_action: str) -> None:
    env = begin([1, 1, 1], invalid_action=invalid_action)
    env.moves = lambda seat: ["stay"]  # so that the random action is this one, too
    env.step("?")
    env.step(say("stay"))
    assert env.step(say("stay"))[1] == 0.0
    assert [env.step(say("stay"))[1] for _ in range(3)] == [0.0, 0.0, 1.0]


def test_a_state_in_the_middle_of_a_round_is_restored() -> None:
    env = begin([0, 1, 2])
    env.reset(seed=4)
    env.step(say("left"))
    other = vlgym.make(MEET, opponents="self")
    other.set_state(json.loads(json.dumps(env.get_state())))
    for action in ("right", "stay", "left"):
        mine, its = env.step(say(action)), other.step(say(action))
        assert (mine[0]["text"], mine[1:]) == (its[0]["text"], its[1:])
        assert (mine[0]["image"] == its[0]["image"]).all()


def test_the_history_of_a_prompt_holds_the_turns_of_its_own_seat_alone() -> None:
    env, policy = vlgym.make(MEET, opponents="self"), Listener()
    runner = Runner([env], episodes=1, builder=PromptBuilder(history_turns=2, history_images=3))
    pictures: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    while not runner.done:
        seat = env.seat_now
        pictures[seat].append(env.image())
        runner.step(policy)
        images = [part["image"] for m in policy.heard[-1].messages for part in m["content"] if "image" in part]
        expected = pictures[seat][-3:]
        assert len(images) == len(expected)
        assert all((one == other).all() for one, other in zip(images, expected, strict=True))


def test_an_evaluation_records_it_by_name_and_every_seat_replies(tmp_path: Path) -> None:
    parts = plan_ids([MEET], episodes=2, arguments={"opponents": "self", "max_turns": 2})
    run_evaluation(parts, RandomPolicy(), tmp_path, num_envs=1)
    assert read_header(tmp_path)["parts"][MEET]["arguments"]["opponents"] == "self"
    assert [len(episode) for episode in read_trajectories(tmp_path)] == [3 * 2] * 2
