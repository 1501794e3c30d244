"""Rules, by hand: moves, rewards and names of each game, openings and levels; then pictures."""

import json
import math

import numpy as np
import pytest
import vlgym_pettingzoo.spiel as spiel
from playing import at, begin, finish, move, say
from vlgym_pettingzoo.base import GREEN, GREY
from vlgym_pettingzoo.board_games import _SHIP, name, place
from vlgym_pettingzoo.kitchen import COOKING, Kitchen
from vlgym_pettingzoo.plugin import vlgym_envs
from vlgym_pettingzoo.walkers import distance

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.games.several import SKILL
from vlgym.games.table import Table


def test_the_exact_player_of_tic_tac_toe_never_loses_and_blocks() -> None:
    table = begin("TicTacToe")
    say(table, "a3", "b2", "b3")
    assert table.game.advise(1) == "c3"  # else X has the row
    table = begin("TicTacToe")
    say(table, "b3")
    assert table.game.advise(1) in ("a3", "c3", "b2", "b1")  # the other squares lose
    returns = [finish(table, ["oracle", "random"][:: 1 - 2 * seat], seat)[seat] for seat in (0, 1)]
    assert min(returns) >= 0


def test_discs_pile_up_and_four_in_a_row_win_connect_four_as_the_search_sees() -> None:
    table = begin("ConnectFour")
    say(table, *["column 4"] * 6)
    assert "column 4" not in table.legal(0)
    table.reset(seed=0)
    say(table, *["column 1", "column 2"] * 3)
    assert table.game.advise(0) == table.game.search(0) == "column 1"
    assert say(table, "column 1") == [(1.0, -1.0)]
    assert (table.terminated, table.game.won(0), table.game.won(1)) == (True, True, False)


def test_who_reaches_the_last_row_wins_breakthrough_as_the_search_sees() -> None:
    table = begin("Breakthrough")
    say(table, "c5-c4", "a2-a3", "c4-c3", "a3-a4", "c3xb2", "f2-f3")
    assert table.game.advise(0) in ("b2xa1", "b2xc1")
    assert say(table, "b2xa1") == [(1.0, -1.0)]


def test_kuhn_poker_pays_a_call_double_and_a_fold_the_ante() -> None:
    table = begin("KuhnPoker", hands=2)
    higher = 0 if table.game.card_of(0) > table.game.card_of(1) else 1
    assert say(table, "bet", "call")[-1][higher] == 2.0
    assert table.movers == (1,)  # the other begins the second hand
    assert say(table, "bet", "fold")[-1] == (-1.0, 1.0)
    assert table.terminated


def test_the_pot_of_leduc_holdem_follows_calls_and_raises() -> None:
    table = begin("LeducHoldem", hands=1)
    assert table.game.pay_in() == [1, 1]
    say(table, "raise", "raise")
    assert table.game.pay_in() == [3, 5]
    assert "raise" not in table.legal(0)
    say(table, "call", "raise")
    assert len(table.game.dealt) == 3
    assert table.game.pay_in() == [9, 5]
    assert say(table, "fold")[-1] == (5.0, -5.0)


def test_hanabi_pays_both_for_a_card_that_fits_and_hints_name_cards() -> None:
    table = begin("Hanabi")
    cards = [slot.card for slot in table.game.view(1).others[0]]
    colour, _ = one = next(card for card in cards if card[1] == 1)
    assert say(table, f"play {cards.index(one) + 1}") == [(1.0, 1.0)]
    assert table.game.view(0).fireworks[colour] == 1


def test_shots_of_battleship_hit_where_ships_lie_and_sinking_more_wins() -> None:
    table = begin("Battleship")
    targets = [{cell for ship in table.game.ships_of(1 - seat) for cell in ship} for seat in (0, 1)]
    assert [len(cells) for cells in targets] == [9, 9]
    aims = [f"{'abcdef'[c]}{r + 1}" for r, c in sorted(targets[0])]
    misses = [f"{'abcdef'[c]}{r + 1}" for r in range(6) for c in range(6) if (r, c) not in targets[1]]
    rewards = say(table, *[shot for pair in zip(aims, misses, strict=False) for shot in pair][: 2 * 9 - 1])
    assert rewards[-1] == (3.0, -3.0)
    assert table.terminated


def test_a_soup_needs_three_onions_time_a_dish_and_the_hatch() -> None:
    kitchen, pot = Kitchen("galley", [(1, 3), (2, 4)], ["up", "down"]), (0, 3)
    for _ in range(3):
        kitchen.held[0] = "onion"
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
    for moves, places in (
        (("right", "left"), [(1, 1), (1, 3)]), (("right", "stay"), [(1, 2), (1, 3)]),
        (("right", "left"), [(1, 2), (1, 3)]), (("right", "right"), [(1, 3), (1, 4)]),
    ):  # fmt: skip
        kitchen.play(dict(enumerate(moves)))
        assert kitchen.places == places


def test_two_who_use_one_pot_at_once_get_in_each_others_way() -> None:
    kitchen = Kitchen("island", [(1, 4), (1, 4)], ["up", "up"], ["onion", "onion"])
    kitchen.play({0: "use", 1: "use"})
    assert kitchen.held == ["onion", "onion"]


HUNT = {"monster": (0, 4), "apples": [(0, 1), (4, 0)]}


def test_a_thought_names_the_ways_that_lead_to_a_square() -> None:
    game = begin("MonsterHunt").game
    for goal in game.cells():
        words = game.way_to(1, goal).split()
        assert set(words[1::2] or ["stay"]) == set(game.nearer(1, goal))
        assert sum(map(int, words[:-1:2])) == distance(game.places[1], goal)


def test_an_apple_pays_two_and_grows_elsewhere() -> None:
    table = at("MonsterHunt", places=[(0, 0), (4, 4)], **HUNT)
    assert move(table, "right", "stay") == (2.0, 0.0)
    assert (0, 1) not in table.game.apples
    assert table.game.apples[1] == (4, 0)


def test_the_monster_goes_to_the_nearest_and_who_meets_it_alone_pays_and_is_put_elsewhere() -> None:
    table = at("MonsterHunt", places=[(0, 2), (4, 4)], **HUNT)
    assert move(table, "stay", "stay") == (0.0, 0.0)
    assert table.game.monster == (0, 3)
    assert move(table, "stay", "stay") == (-2.0, 0.0)
    assert table.game.monster == (0, 2) != table.game.places[0]


def test_two_who_meet_the_monster_on_one_square_earn_five_each() -> None:
    table = at("MonsterHunt", places=[(1, 3), (1, 3)], **HUNT)
    assert move(table, "up", "up") == (5.0, 5.0)
    assert table.game.places == [(0, 3), (0, 3)]
    assert table.game.monster != (0, 3)


def test_a_wall_stops_a_move_and_chance_draws_the_nearest_of_two_who_are_as_near() -> None:
    prey = set()
    for seed in range(12):
        table = at("MonsterHunt", places=[(0, 0), (0, 4)], monster=(0, 2), apples=[(4, 0), (4, 4)])
        table.game.chance_rng = np.random.default_rng(seed)
        move(table, "left", "up")
        assert table.game.places == [(0, 0), (0, 4)]
        prey.add(table.game.monster)
    assert prey == {(0, 1), (0, 3)}


@pytest.mark.parametrize(("places", "actions", "rewards", "moved"), [
    ([(0, 1), (1, 0)], ("left", "up"), (2.0, 1.0), (True, False)),
    ([(4, 3), (3, 4)], ("right", "down"), (1.0, 2.0), (False, True)),
    ([(0, 1), (4, 3)], ("left", "right"), (0.0, 0.0), (True, True)),
    ([(0, 1), (2, 2)], ("left", "stay"), (0.0, 0.0), (False, False)),
    ([(2, 2), (2, 2)], ("stay", "stay"), (0.0, 0.0), (False, False)),
])  # fmt: skip
def test_a_block_pays_two_who_stand_on_it_and_different_blocks_pay_nobody(places, actions, rewards, moved):
    table = at("BattleOfTheColors", places=places, blocks=[(0, 0), (4, 4)])
    assert move(table, *actions) == rewards
    assert tuple(block != was for block, was in zip(table.game.blocks, [(0, 0), (4, 4)], strict=True)) == moved


def test_a_coin_of_the_others_colour_costs_the_other_two() -> None:
    for drawn, paid in ((1, (1.0, -2.0)), (0, (1.0, 0.0))):
        table = at("CoinGame", places=[(0, 0), (3, 3)], coin=(0, 1), drawn=drawn)
        assert move(table, "right", "stay") == paid


def test_a_folded_card_is_shown_to_its_owner_alone() -> None:
    table = begin("KuhnPoker", hands=2)
    say(table, "bet", "fold")
    before = table.game.before
    assert not before.shown
    pictures = [table.game.draw(seat) for seat in (0, 1)]
    before.cards[1] = next(card for card in range(3) if card not in before.cards)
    assert np.array_equal(pictures[0], table.game.draw(0))
    assert not np.array_equal(pictures[1], table.game.draw(1))


@pytest.mark.parametrize(("title", "openings"), [("ConnectFour", 36), ("Breakthrough", 36), ("TicTacToe", 6)])
def test_test_games_open_in_many_ways_and_none_as_a_train_game(title: str, openings: int) -> None:
    table = vlgym.open_table(f"vlgym/{title}-v0")
    starts: dict[str, set[str]] = {"train": set(), "val": set(), "test": set()}
    for split, boards in starts.items():
        for index in range(40):
            table.reset(seed=episode_seed(table.game.title, split, index))
            assert table.movers == (0,)
            boards.add(str(table.game.state))
    assert len(starts["test"]) >= openings
    assert not starts["test"] & (starts["train"] | starts["val"])


def test_the_search_draws_from_the_episodes_seed_and_a_restored_game_goes_on_with_it() -> None:
    table, other = (vlgym.open_table("vlgym/ConnectFour-v0") for _ in range(2))
    moves = set()
    for seed in range(12):
        table.reset(seed=seed)
        moves.add(table.game.search(table.movers[0]))
    assert len(moves) > 1
    other.load(json.loads(json.dumps(table.save())))
    assert (str(other.game.state), other.game.salt) == (str(table.game.state), table.game.salt)


@pytest.mark.parametrize("title", ["TicTacToe", "Breakthrough", "ChessEndings"])
def test_no_list_of_legal_moves_tells_the_position(title: str) -> None:
    env = vlgym.make(f"vlgym/{title}-v0", opponents="random")
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
    turn = table.turn(table.movers[0])
    assert turn.legal == ()
    assert turn.text in set().union(*texts.values())


def test_a_level_sets_the_opponents_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    monkeypatch.setattr(spiel, "search", lambda state, count, salt: (counts.append(count), state.legal_actions()[0])[1])
    env = vlgym.make("vlgym/ConnectFour-v0")
    for level, simulations in ((0, 2), (4, 200), (None, 50)):
        counts.clear()
        _, info = env.reset(seed=1, options={} if level is None else {"level": level})
        env.step(env.unwrapped.parser.format(info["vlgym"]["legal_actions"][:1]))
        assert set(counts) == {simulations}


def test_breakthroughs_board_has_the_levels_side_in_rules_names_and_picture() -> None:
    env = vlgym.make("vlgym/Breakthrough-v0", opponents="random")
    for level, side in (*enumerate((5, 6, 6, 7, 8)), (None, 6)):
        env.reset(seed=3, options={} if level is None else {"level": level})
        lines = str(env.state).splitlines()
        assert (len(lines), lines[0][0], len(lines[0]), env.board_side) == (side + 1, str(side), side + 1, side)
        last = "abcdefgh"[side - 1]
        assert max(max(move[0], move[3]) for move in env.moves(env.seat_now)) <= last


def test_a_table_plays_the_level_that_is_asked_for_and_restores_it() -> None:
    table, sides = vlgym.open_table("vlgym/Breakthrough-v0"), []
    for seed, options in ((0, {"level": 4}), (1, {})):
        table.reset(seed=seed, options=options)
        sides.append((str(table.game.state)[0], table.save()))
    table.load(sides[0][1])
    assert [*(side for side, _ in sides), str(table.game.state)[0]] == ["8", "6", "8"]


FEW = ("KuhnPoker", "KitchenPair", "ChessEndings")  # in turn, at once, with another bar
GAMES = [
    pytest.param(spec.id, marks=() if spec.title in FEW else pytest.mark.exhaustive)
    for spec in vlgym_envs()
    if SKILL in spec.skills
]
BAR = 10  # units from the left edge, where no bar has words or marks


def bar_of(table: Table, seat: int) -> tuple[int, ...]:
    """Return the colour of the turn bar in a seat's picture."""
    picture = table.game.draw(seat)
    row = 12 if table.game.title == "vlgym/ChessEndings-v0" else 376
    return tuple(int(level) for level in picture[row * picture.shape[0] // 384, BAR])


@pytest.mark.parametrize("env_id", GAMES)
def test_the_bar_is_green_in_the_pictures_of_those_who_move(env_id: str) -> None:
    table = vlgym.open_table(env_id)
    table.reset(seed=0)
    for seat, space in enumerate(table.spaces):
        space.seed(seat)
    for _ in range(3):
        for seat in range(table.game.seats):
            assert bar_of(table, seat) == (GREEN if seat in table.movers else GREY)
        table.step({seat: table.spaces[seat].sample() for seat in table.movers})


@pytest.mark.parametrize("env_id", GAMES)
def test_the_oracles_thought_names_what_the_picture_alone_shows(env_id: str) -> None:
    """After the same moves the thoughts of several games differ in more than their actions."""
    table, thoughts = vlgym.open_table(env_id, image_size=(64, 64)), set()
    for seed in range(4):
        table.reset(seed=seed)
        for space in table.spaces:
            space.seed(seed)
        for _ in range(2):
            table.step({seat: table.spaces[seat].sample() for seat in table.movers})
        seat = table.movers[0]
        action = table.game.advise(seat)
        thoughts.add((seat, table.game.explain(seat, action).replace(action, "")))
    assert max(sum(seat == each for each, _ in thoughts) for seat in range(table.game.seats)) > 1


def test_battleships_thought_tells_hits_from_water() -> None:
    table = begin("Battleship")
    while len(table.game.shots_of(0)) < 12:
        table.step({seat: table.game.advise(seat) or "" for seat in table.movers})
    hits, water = table.game.explain(0, "a1").partition(";")[0].removeprefix("hits ").split(", water ")
    ships = {name(cell) for ship in table.game.ships_of(1) for cell in ship}
    assert set(hits.split()) <= ships
    assert ships.isdisjoint(water.split())


def test_ships_that_touch_are_told_apart() -> None:
    table = begin("Battleship", image_size=(768, 768))
    layouts = (
        [place("horizontally", 0, 0, 2), place("horizontally", 0, 2, 4)],
        [place("horizontally", 0, 0, 4), place("horizontally", 0, 4, 2)],
    )
    pictures = []
    for ships in layouts:
        table.game.ships_of = lambda seat, own=ships: own if seat == 0 else []
        pictures.append(table.game.draw(0))
    assert all((picture == _SHIP).all(axis=2).any() for picture in pictures)
    assert not np.array_equal(*pictures)


def test_the_rocks_of_tag_lie_apart() -> None:
    table = begin("MPETag")
    for seed in range(30):
        table.reset(seed=seed)
        one, other = table.game.engine.world.landmarks
        assert math.dist(one.state.p_pos, other.state.p_pos) > one.size + other.size


def test_the_words_of_a_board_are_its_rows() -> None:
    table = begin("TicTacToe")
    say(table, "b2")
    assert table.game.describe_view(1) == "the board (x X, o O, . empty), last move b2\n3...\n2.x.\n1...\n abc"


def test_a_table_shows_each_turns_own_picture_or_its_words_by_the_modality() -> None:
    plain, worded = (begin("TicTacToe", 1, modality=each) for each in ("image", "text"))
    while not plain.over:
        (seat,) = plain.movers
        picture, words = (table.turn(seat).messages[-1]["content"] for table in (plain, worded))
        assert np.array_equal(picture[0]["image"], plain.game.draw(seat))
        assert [part["type"] for part in words] == ["text"]
        assert worded.game.describe_view(seat) in words[0]["text"]
        assert worded.game.describe_view(seat) not in picture[1]["text"]
        for table in (plain, worded):
            table.step({seat: table.game.parser.format([table.legal(seat)[0]])})


def test_the_bar_is_grey_when_the_game_is_over() -> None:
    table = begin("TicTacToe")
    while not table.over:
        table.step({})
    assert [bar_of(table, seat) for seat in (0, 1)] == [GREY, GREY]
