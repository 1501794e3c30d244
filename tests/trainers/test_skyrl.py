"""SkyRL gym: its own `make` plays Gymnasium's episodes, message by message."""

import base64
import io

import gymnasium
import numpy as np
import pytest
from PIL import Image

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

pytest.importorskip("skyrl_gym", reason="needs an environment of its own: make trainers")
import skyrl_gym
from skyrl_gym.metrics import aggregate_for_environment

from vlgym.integrations.skyrl import make_rows

EPISODES, TURNS = 6, 5
IDS = ("vlgym/NumberLine-v1", "vlgym/CanaryMemory-v0", "vlgym/OneRoomS6Fast-v1")


@pytest.fixture(autouse=True)
def _registered():
    skyrl_gym.register(id="vlgym", entry_point="vlgym.integrations.skyrl:Game")
    yield
    skyrl_gym.envs.deregister("vlgym")


def read(messages):
    (message,) = messages
    picture, text = message["content"]
    assert (message["role"], picture["type"], text["type"]) == ("user", "image_url", "text")
    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data))), text["text"]


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_of_skyrls_is_gymnasiums(env_id, record_property):
    rng, turns, metrics = np.random.default_rng(0), 0, []
    rows = make_rows(env_id, EPISODES, split="val", first=2, max_turns=TURNS)
    for number, row in enumerate(rows):
        extras = {key: row[key] for key in row.keys() - {"prompt", "env_class"}} | {"max_turns": 99}
        game = skyrl_gym.make(row["env_class"], env_config={}, extras=extras)
        env = gymnasium.make(env_id, max_turns=TURNS, disable_env_checker=True)
        observation, info = env.reset(seed=episode_seed(env_id, "val", number + 2))
        messages, _ = game.init(row["prompt"])
        text, done = observation["text"], False
        while not done:
            picture, words = read(messages)
            assert np.array_equal(picture, observation["image"])
            assert words == text
            reply = f"<action>{rng.choice([*env.unwrapped.legal_actions(), 'nothing'])}</action>"
            observation, reward, terminated, truncated, info = env.step(reply)
            out = game.step(reply)
            text, done, turns = info["vlgym"]["turn_text"], terminated or truncated, turns + 1
            messages = out.pop("observations")
            ends = {"success": info["success"], "terminated": terminated, "truncated": truncated}
            assert out == {"reward": reward, "done": done, "metadata": ends}
        assert messages == []
        metrics.append(game.get_metrics())
        assert metrics[-1]["success"] == info["success"]
        game.close()
        env.close()
    assert aggregate_for_environment("vlgym", metrics)["turns"] == turns / EPISODES
    record_property("comparison", f"SkyRL, {env_id}: {EPISODES} episodes, {turns} turns, 0 differences")


def test_an_episode_ends_at_skyrls_limit_of_turns():
    (row,) = make_rows("vlgym/NumberLine-v1", 1)
    game = skyrl_gym.make("vlgym", extras={**row, "max_turns": 2})
    game.init(row["prompt"])
    assert not game.step("nothing")["done"]
    last = game.step("nothing")
    assert (last["done"], last["metadata"]["truncated"], last["observations"]) == (True, True, [])
    game.close()


def test_a_row_without_an_environment_is_refused():
    with pytest.raises(UserError, match="needs the column env_id"):
        skyrl_gym.make("vlgym", extras={"max_turns": 2})
