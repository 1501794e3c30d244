"""Goal conditions and the oracle's next command in small worlds, by hand."""

from vlgym_alfworld.game import HEAT, LOOK, PICK, PICK_TWO, Goal, met_conditions
from vlgym_alfworld.oracle import advise
from worlds import make_world


def hot(*names: str) -> dict[str, frozenset[str]]:
    return {"clean": frozenset(), "hot": frozenset(names), "cool": frozenset(), "sliced": frozenset()}


def test_pick_is_met_by_any_object_of_the_type_in_any_receptacle_of_the_type():
    assert met_conditions(Goal(PICK, "Mug", "DiningTable"), make_world()) == (True,)
    assert met_conditions(Goal(PICK, "Pen", "Cabinet"), make_world()) == (False,)


def test_heat_counts_in_place_treated_and_both_in_one_object():
    goal = Goal(HEAT, "Mug", "DiningTable")
    assert met_conditions(goal, make_world()) == (True, False, False)
    assert met_conditions(goal, make_world(states=hot("mug 1"))) == (True, True, False)
    assert met_conditions(goal, make_world(states=hot("mug 2"))) == (True, True, True)


def test_pick_two_counts_objects_in_the_same_receptacle():
    goal = Goal(PICK_TWO, "Mug", "DiningTable")
    assert met_conditions(goal, make_world()) == (True, False)
    both = {"mug 1": "diningtable 1", "mug 2": "diningtable 1"}
    assert met_conditions(goal, make_world(holder=both)) == (True, True)
    tables = {"diningtable 1": "diningtable", "diningtable 2": "diningtable"}
    apart = make_world(holder={"mug 1": "diningtable 1", "mug 2": "diningtable 2"}, receptacle_kinds=tables)
    assert met_conditions(goal, apart) == (True, False)


def test_look_counts_the_held_object_and_a_lit_lamp_where_the_agent_stands():
    goal = Goal(LOOK, "Pen", toggle="DeskLamp")
    assert met_conditions(goal, make_world()) == (False, False)
    held = make_world(held="pen 1", toggled=frozenset({"desklamp 1"}))
    assert met_conditions(goal, held) == (True, False)
    there = make_world(held="pen 1", toggled=frozenset({"desklamp 1"}), agent_at="at desk")
    assert met_conditions(goal, there) == (True, True)


def test_the_oracle_opens_what_is_closed_before_it_takes():
    goal = Goal(PICK, "Mug", "Desk")
    world = make_world(holder={"mug 1": "cabinet 1"}, agent_at="at cabinet")
    advice = advise(goal, world, ["open cabinet 1", "look"])
    assert advice is not None
    assert advice.command == "open cabinet 1"


def test_the_oracle_lays_a_wrong_object_aside_first_and_says_move_or_put_as_the_game_does():
    goal = Goal(PICK, "Mug", "Cabinet")
    world = make_world(held="pen 1", holder={"mug 2": "diningtable 1"})
    for spelling in ("move pen 1 to diningtable 1", "put pen 1 in/on diningtable 1"):
        advice = advise(goal, world, ["look", spelling])
        assert advice is not None
        assert advice.command == spelling
