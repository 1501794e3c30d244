"""The oracles win from wherever the agent has strayed to."""

import numpy as np
import pytest

import vlgym

SMALL = (24, 24)


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


@pytest.mark.parametrize("name", ["FourRooms", "PutNext"])
def test_the_oracle_wins_after_twenty_random_turns(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SMALL)
    lost = [seed for seed in range(2) if not play_oracle(env, seed, strayed=20)[1]["success"]]
    env.close()
    assert lost == []


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


def test_the_oracle_wins_under_domain_randomisation():
    env = vlgym.make("vlgym/OneRoom-v0", image_size=SMALL, domain_rand=True)
    lost = [seed for seed in range(2) if not play_oracle(env, seed)[1]["success"]]
    env.close()
    assert lost == []
