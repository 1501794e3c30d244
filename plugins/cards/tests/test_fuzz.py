"""10,000 garbage replies per environment: nothing raises, and nothing that is not a legal action is ever paid."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlgym.env import VLEnv

TITLES = ("NumberLine", "EZPoints", "Points24", "Blackjack")
PER_EXAMPLE, EXAMPLES = 25, 400

FRAGMENTS = [
    "<action>",
    "</action>",
    "<action></action>",
    '{"action":',
    '"action": ',
    '{"action": "',
    '"}',
    "}",
    "thoughts",
    "\n",
    " ",
    "\x00",
    "\u202e",
    "stand",
    "hit",
    "+",
    "-",
    "=",
    "10",
    "1 0",
    "++",
    "24",
    "12",
    "<action>+-</action>",
    "<action>stand, hit</action>",
    "<action>99</action>",
    "<action>10 + 2 =</action>",
    '{"action": ["="]}',
    '{"action": 5}',
    "__import__('os')",
    "9**9**9**9",
    "\U0001f0a1",
    "a" * 3000,
    "<action>" * 50,
]
REPLY = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=5).map(
        lambda parts: f"<action>{''.join(parts)}</action>"
    ),
)


def drive(env: VLEnv, replies: list[str], seed: int) -> int:
    """Answer with each reply in turn, beginning again after each end; number of invalid turns."""
    env.reset(seed=seed)
    invalid = 0
    for reply in replies:
        _, reward, terminated, truncated, info = env.step(reply)
        invalid += info["invalid_action"]
        if info["vlgym"]["parse"] != "ok":
            assert info["invalid_action"]
            assert reward <= 0, f"{reply!r} was paid {reward}"
            assert not info["success"]
        if terminated or truncated:
            env.reset()
    return invalid


@pytest.mark.parametrize("title", TITLES)
def test_garbage_raises_nothing_and_is_never_paid(make_env: Callable[..., VLEnv], title: str) -> None:
    env = make_env(title, image_size=(56, 112)) if title == "NumberLine" else make_env(title)
    count = invalid = 0

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.lists(REPLY, min_size=PER_EXAMPLE, max_size=PER_EXAMPLE), st.integers(0, 2**32))
    def fuzz(replies: list[str], seed: int) -> None:
        nonlocal count, invalid
        invalid += drive(env, replies, seed)
        count += len(replies)

    fuzz()
    assert count >= 10_000
    assert invalid >= 0.8 * count


@pytest.mark.parametrize("title", TITLES)
def test_garbage_raises_nothing_under_the_published_rules(make_env: Callable[..., VLEnv], title: str) -> None:
    env = make_env(title, compat="rl4vlm")

    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(REPLY, min_size=PER_EXAMPLE, max_size=PER_EXAMPLE), st.integers(0, 2**32))
    def fuzz(replies: list[str], seed: int) -> None:
        env.reset(seed=seed)
        for reply in replies:
            _, reward, terminated, truncated, info = env.step(reply)
            low, high = env.vlgym_spec.reward_range
            assert low <= reward <= high
            assert len(info["vlgym"]["actions"]) == 1
            if terminated or truncated:
                env.reset()

    fuzz()
