"""Rules, by hand: moves, rewards and names of each game."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from vlgym_pettingzoo.kitchen import COOKING, Kitchen

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.games.table import Table


def at(title: str, seed: int = 0, **kwargs: Any) -> Table:
    table = vlgym.open_table(f"vlgym/{title}-v0", **kwargs)
    table.game.opening = 0  # the games that begin after random moves: from the first one
    table.reset(seed=seed)
    return table


def say(table: Table, *actions: str) -> list[tuple[float, ...]]:
    """Let whoever moves play these actions in turn; return the rewards."""
    return [table.step({table.movers[0]: f"<action>{action}</action>"}).rewards for action in actions]


def test_three_crosses_in_a_row_win_tic_tac_toe() -> None:
    table = at("TicTacToe")
    assert say(table, "a3", "b2", "b3", "c1", "c3")[-1] == (1.0, -1.0)
    assert table.terminated
    assert table.game.won(0)
    assert not table.game.won(1)


def test_the_exact_player_of_tic_tac_toe_never_loses_and_blocks() -> None:
    table = at("TicTacToe")
    say(table, "a3", "b2", "b3")
    assert table.game.advise(1) == "c3"  # else X has the row
    for seed in range(4):
        env = vlgym.make("vlgym/TicTacToe-v0", seat=seed % 2)
        env.reset(seed=seed)
        while not env._ended:
            env.step(env.solve() or "")
        assert env.episode_return >= 0


def test_discs_pile_up_and_four_in_a_row_win_connect_four() -> None:
    table = at("ConnectFour")
    rewards = say(table, *["column 1", "column 2"] * 3, "column 1")
    assert rewards[-1] == (1.0, -1.0)
    table = at("ConnectFour")
    say(table, *["column 4"] * 6)
    assert "column 4" not in table.legal(0)


@pytest.mark.parametrize("title", ["ConnectFour", "Breakthrough"])
def test_the_search_takes_a_win_in_one(title: str) -> None:
    table = at(title)
    if title == "ConnectFour":
        say(table, *["column 1", "column 2"] * 3)
        assert table.game.advise(0) == table.game.search(0) == "column 1"
    else:
        say(table, "c5-c4", "a2-a3", "c4-c3", "a3-a4", "c3xb2", "f2-f3")
        assert table.game.advise(0) in ("b2xa1", "b2xc1")


def test_kuhn_poker_pays_a_call_double_and_a_fold_the_ante() -> None:
    table = at("KuhnPoker", hands=2)
    higher = 0 if table.game.card_of(0) > table.game.card_of(1) else 1
    assert say(table, "bet", "call")[-1][higher] == 2.0
    assert table.movers == (1,)  # the other begins the second hand
    assert say(table, "bet", "fold")[-1] == (-1.0, 1.0)
    assert table.terminated


def test_the_pot_of_leduc_holdem_follows_calls_and_raises() -> None:
    table = at("LeducHoldem", hands=1)
    assert table.game.pay_in() == [1, 1]
    say(table, "raise", "raise")
    assert table.game.pay_in() == [3, 5]
    assert "raise" not in table.legal(0)
    say(table, "call", "raise")
    assert len(table.game.dealt) == 3
    assert table.game.pay_in() == [9, 5]
    assert say(table, "fold")[-1] == (5.0, -5.0)


def test_hanabi_pays_both_for_a_card_that_fits_and_hints_name_cards() -> None:
    table = at("Hanabi")
    view = table.game.view(1)
    for place, held in enumerate(view.others[0], 1):
        if held.card is not None and held.card[1] == 1:
            assert say(table, f"play {place}")[-1] == (1.0, 1.0)
            assert table.game.view(0).fireworks[held.card[0]] == 1
            return
    pytest.fail("seed 0 has no 1 in the first hand; choose another seed")


def test_shots_of_battleship_hit_where_ships_lie_and_sinking_more_wins() -> None:
    table = at("Battleship")
    targets = [{cell for ship in table.game.ships_of(1 - seat) for cell in ship} for seat in (0, 1)]
    assert [len(cells) for cells in targets] == [9, 9]
    aims = [f"{'abcdef'[c]}{r + 1}" for r, c in sorted(targets[0])]
    misses = [f"{'abcdef'[c]}{r + 1}" for r in range(6) for c in range(6) if (r, c) not in targets[1]]
    rewards = say(table, *[shot for pair in zip(aims, misses, strict=False) for shot in pair][: 2 * 9 - 1])
    assert rewards[-1] == (3.0, -3.0)
    assert table.terminated


def test_a_soup_needs_three_onions_time_a_dish_and_the_hatch() -> None:
    kitchen = Kitchen("galley", [(1, 1), (2, 4)], ["up", "down"])
    pot = (0, 3)
    for _ in range(3):
        kitchen.held[0], kitchen.places[0], kitchen.facing[0] = "onion", (1, 3), "up"
        kitchen.play({0: "use", 1: "stay"})
    assert kitchen.pots[pot].full
    for _ in range(COOKING - 1):
        assert not kitchen.pots[pot].ready
        kitchen.play({0: "stay", 1: "stay"})
    assert kitchen.pots[pot].ready
    kitchen.held[0] = "dish"
    kitchen.play({0: "use", 1: "stay"})
    assert kitchen.held[0] == "soup"
    kitchen.places[0], kitchen.facing[0] = (1, 4), "right"
    assert kitchen.play({0: "use", 1: "stay"}) == 1
    assert (kitchen.served, kitchen.held[0]) == (1, "")


def test_cooks_neither_stand_on_one_cell_nor_pass_through_each_other() -> None:
    kitchen = Kitchen("galley", [(1, 1), (1, 3)], ["up", "up"])
    kitchen.play({0: "right", 1: "left"})
    assert kitchen.places == [(1, 1), (1, 3)]
    kitchen.play({0: "right", 1: "stay"})
    kitchen.play({0: "right", 1: "left"})
    assert kitchen.places == [(1, 2), (1, 3)]
    kitchen.play({0: "right", 1: "right"})
    assert kitchen.places == [(1, 3), (1, 4)]


def test_two_who_use_one_pot_at_once_get_in_each_others_way() -> None:
    kitchen = Kitchen("island", [(1, 4), (1, 4)], ["up", "up"], ["onion", "onion"])
    kitchen.play({0: "use", 1: "use"})
    assert kitchen.held == ["onion", "onion"]


def test_a_coin_of_the_others_colour_costs_the_other_two() -> None:
    table = at("CoinGame")
    game = table.game
    game.places, game.coin, game.drawn = [(0, 0), (3, 3)], (0, 1), 1
    done = table.step({0: "<action>right</action>", 1: "<action>stay</action>"})
    assert done.rewards == (1.0, -2.0)
    game.places, game.coin, game.drawn = [(0, 0), (3, 3)], (0, 1), 0
    assert table.step({0: "<action>right</action>"}).rewards == (1.0, 0.0)
    assert table.info(1)["invalid_action"]


def test_a_folded_card_is_shown_to_its_owner_alone() -> None:
    table = at("KuhnPoker", hands=2)
    say(table, "bet", "fold")
    before = table.game.before
    assert not before.shown
    pictures = [table.game.draw(seat) for seat in (0, 1)]
    before.cards[1] = next(card for card in range(3) if card not in before.cards)
    assert np.array_equal(pictures[0], table.game.draw(0))
    assert not np.array_equal(pictures[1], table.game.draw(1))


@pytest.mark.parametrize(("title", "openings"), [("ConnectFour", 90), ("Breakthrough", 90), ("TicTacToe", 6)])
def test_test_games_open_in_many_ways_and_none_as_a_train_game(title: str, openings: int) -> None:
    table = vlgym.open_table(f"vlgym/{title}-v0")
    starts = {}
    for split in ("train", "val", "test"):
        boards = []
        for index in range(100):
            table.reset(seed=episode_seed(f"vlgym/{title}-v0", split, index))
            assert table.movers == (0,)
            boards.append(str(table.game.state))
        starts[split] = set(boards)
    assert len(starts["test"]) >= openings
    assert not starts["test"] & (starts["train"] | starts["val"])


def test_the_search_draws_from_the_episodes_seed_and_a_restored_game_goes_on_with_it() -> None:
    table, moves = at("ConnectFour"), set()
    for seed in range(12):
        table.reset(seed=seed)
        moves.add(table.game.search(0))
    assert len(moves) > 1
    table = vlgym.open_table("vlgym/ConnectFour-v0")
    table.reset(seed=episode_seed("vlgym/ConnectFour-v0", "test", 3))
    other = vlgym.open_table("vlgym/ConnectFour-v0")
    other.load(json.loads(json.dumps(table.save())))
    assert str(other.game.state) == str(table.game.state)
    assert other.game.salt == table.game.salt


@pytest.mark.parametrize("title", ["TicTacToe", "Breakthrough", "ChessEndings"])
def test_neither_text_nor_info_nor_a_turn_tells_the_position_by_a_list_of_legal_moves(title: str) -> None:
    env = vlgym.make(f"vlgym/{title}-v0", opponents="random").unwrapped
    texts: dict[str, set[str]] = {}
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        for _ in range(3):
            assert info["vlgym"]["legal_actions"] == []
            texts.setdefault(info["vlgym"]["instructions"], set()).add(observation["text"])
            observation, _, terminated, _, info = env.step(env.action_space.sample())
            assert not info["invalid_action"]
            if terminated:
                break
    assert {len(each) for each in texts.values()} == {1}
    table = vlgym.open_table(f"vlgym/{title}-v0")
    table.reset(seed=0)
    (seat,) = table.movers
    assert table.turn(seat).legal == () == tuple(table.info(seat)["vlgym"]["legal_actions"])
    assert table.turn(seat).text in set().union(*texts.values())
    assert len(table.legal(seat)) > 1
    env.close()
