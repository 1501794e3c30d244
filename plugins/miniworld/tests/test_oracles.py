"""The oracles win, from the start and from wherever the agent has strayed to, and say the same twice."""

import numpy as np
import pytest

import vlgym

SMALL = (24, 24)
MAIN = ("Hallway", "OneRoom", "FourRooms", "WallGap")
TITLES = tuple(
    spec.title
    for spec in vlgym.get_registry().specs.values()
    if spec.family == "miniworld" and spec.id.endswith("-v0")  # the newer versions: test_starts.py
)
OTHERS = tuple(title for title in TITLES if title not in (*MAIN, "Maze", "CollectHealth"))


def play_oracle(env, seed=None, strayed=0):
    """Play one episode; return the replies and the last info."""
    if seed is not None:
        _, info = env.reset(seed=seed)
    replies, ended = [], False
    wander = np.random.default_rng(seed)
    while not ended:
        if len(replies) < strayed:
            reply = env.parser.format([env.legal_actions()[int(wander.integers(3))]])
        else:
            reply = env.solve()
            assert reply is not None, f"no way after {len(replies)} turns, seed {seed}"
        _, _, terminated, truncated, info = env.step(reply)
        replies.append(reply)
        ended = terminated or truncated
    return replies, info


@pytest.mark.parametrize("name", MAIN)
def test_the_oracle_wins_ten_of_ten_seeds_of_the_main_ids(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SMALL)
    lost = [seed for seed in range(10) if not play_oracle(env, seed)[1]["success"]]
    env.close()
    assert lost == []


@pytest.mark.parametrize("name", OTHERS)
def test_the_oracle_wins_the_first_seeds_of_every_other_id(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SMALL)
    lost = [seed for seed in range(3) if not play_oracle(env, seed)[1]["success"]]
    env.close()
    assert lost == []


def test_the_oracle_finds_the_box_in_the_large_maze():
    env = vlgym.make("vlgym/Maze-v0", image_size=SMALL)
    _, info = play_oracle(env, seed=1)
    env.close()
    assert info["success"]


def test_the_oracle_stays_alive_among_the_health_kits():
    env = vlgym.make("vlgym/CollectHealth-v0", image_size=SMALL, max_turns=300)
    replies, info = play_oracle(env, seed=0)
    env.close()
    assert info["success"]
    assert len(replies) == 300


@pytest.mark.parametrize("name", ["OneRoom", "FourRooms", "MazeS3", "PickupObjects", "PutNext"])
def test_the_oracle_wins_after_twenty_random_turns(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SMALL)
    lost = [seed for seed in range(3) if not play_oracle(env, seed, strayed=20)[1]["success"]]
    env.close()
    assert lost == []


def test_the_oracle_says_the_same_in_two_environments_and_when_asked_twice():
    first, second = (vlgym.make("vlgym/FourRooms-v0", image_size=SMALL) for _ in range(2))
    first.reset(seed=4)
    second.reset(seed=9)
    second.reset(seed=4)
    for _ in range(25):
        reply = first.solve()
        assert first.solve() == reply
        assert second.solve() == reply
        first.step(reply)
        second.step(reply)
    first.close()
    second.close()


def test_a_plan_is_kept_while_the_agent_follows_it(monkeypatch):
    from vlgym_miniworld import oracles

    searches = []
    real = oracles.search
    monkeypatch.setattr(oracles, "search", lambda *args: searches.append(1) or real(*args))
    env = vlgym.make("vlgym/OneRoom-v0", image_size=SMALL)
    env.reset(seed=0)
    for _ in range(6):
        env.step(env.solve())
    assert len(searches) == 1
    turn = "turn right" if "left" in env.solve() else "turn left"
    env.step(f"<action>{turn}</action>")
    env.solve()
    env.close()
    assert len(searches) == 2


def test_putnext_drops_a_wrong_box_first():
    env = vlgym.make("vlgym/PutNext-v0", image_size=SMALL)
    env.reset(seed=0)
    world = env.world
    world.agent.carrying = next(e for e in world.entities if getattr(e, "color", "") == "blue")
    assert env.oracle() == "drop"
    assert env.state_text() == "You carry the blue box."
    env.close()


@pytest.mark.parametrize("name", ["OneRoom", "WallGap"])
def test_the_oracle_wins_under_domain_randomisation(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SMALL, domain_rand=True)
    lost = [seed for seed in range(3) if not play_oracle(env, seed)[1]["success"]]
    env.close()
    assert lost == []


def test_thoughts_say_where_the_way_leads():
    env = vlgym.make("vlgym/OneRoom-v0", image_size=SMALL)
    env.reset(seed=0)
    assert env.think("turn left") == "The way to the red box leads to the left."
    assert env.solve().startswith("The way to the red box leads ")
    env.close()
