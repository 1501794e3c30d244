"""VAGEN's form of an environment: episodes equal Gymnasium's, and each text has a mark for each picture."""

from __future__ import annotations

import asyncio

import gymnasium
import numpy as np
import pytest

from vlgym.env.seeding import episode_seed
from vlgym.integrations.vagen import Game


def check_marks(seen):
    """Check what VAGEN's `convert_obs_to_content` does."""
    pictures = seen.get("multi_modal_input", {}).get("<image>", [])
    assert seen["obs_str"].count("<image>") == len(pictures)
    assert "<video>" not in seen["obs_str"]
    return [np.asarray(picture) for picture in pictures]


@pytest.mark.parametrize("env_id", ["vlgym/NumberLine-v1", "vlgym/CanaryMemory-v0"])
def test_an_episode_of_vagens_is_gymnasiums(env_id):
    async def compare(number):
        game = Game({"env_id": env_id, "split": "val", "arguments": {"max_turns": 5}})
        rng = np.random.default_rng(number)
        env = gymnasium.make(env_id, max_turns=5, disable_env_checker=True)
        observation, info = env.reset(seed=episode_seed(env_id, "val", number))
        seen, _ = await game.reset(seed=number)
        assert await game.system_prompt() == {"obs_str": info["vlgym"]["instructions"]}
        over = False
        while True:
            (picture,) = check_marks(seen)
            assert np.array_equal(picture, observation["image"])
            assert seen["obs_str"] == "<image>" + info["vlgym"]["turn_text"]
            if over:
                break
            reply = f"<action>{rng.choice([*env.unwrapped.legal_actions(), 'nothing'])}</action>"
            reply = "no action" if rng.random() < 0.2 else reply
            observation, reward, terminated, truncated, info = env.step(reply)
            seen, *rest, told = await game.step(reply)
            over = terminated or truncated
            assert rest == [reward, over]
            assert (told["success"], told["truncated"]) == (info["success"], truncated)
            assert told["format_correct"] == (info["vlgym"]["parse"] == "ok")
        await game.close()
        env.close()

    for number in range(2):
        asyncio.run(compare(number))


def test_a_mark_of_vagens_in_a_text_stands_for_no_picture():
    game = Game({"env_id": "vlgym/NumberLine-v1"})
    asyncio.run(game.reset(seed=0))
    game.env.state_text = lambda: "<image> and <video>"
    seen, *_ = asyncio.run(game.step("nothing"))
    assert len(check_marks(seen)) == 1
    assert "(image) and (video)" in seen["obs_str"]
    asyncio.run(game.close())
