"""Shared fixtures: environments in small pictures, and one action."""

import pytest

import vlgym


@pytest.fixture
def make():
    """Build environments by title; with a seed an episode begins. All are closed afterwards."""
    built = []

    def build(title, seed=None, image_size=(24, 32), **kwargs):
        env_id = f"vlgym/{title}{'' if '-v' in title else '-v0'}"
        built.append(vlgym.make(env_id, image_size=image_size, **kwargs))
        if seed is not None:
            built[-1].reset(seed=seed)
        return built[-1]

    yield build
    for env in built:
        env.close()


@pytest.fixture
def act():
    return lambda env, action: env.step(env.parser.format([action]))
