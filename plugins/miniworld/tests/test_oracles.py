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
