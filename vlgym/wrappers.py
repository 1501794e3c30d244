"""Numbers: an environment whose actions are the indices of its legal actions."""

import operator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from .errors import UserError, check_number
from .registry.making import unwrap

DEFAULT_ACTIONS = 100  # more than any first-party environment was seen to offer (SeeCard-v0: 52)


class Numbers(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Takes the index of a legal action, and shows the picture alone.

    `info["action_mask"]`, `[n] int8`, is 1 at each index that `legal_actions()` has, and everywhere
    if it has none (the game is over). Any other index is a reply without an action.

    Args:
        n: size of the action space, the same in every turn.

    Raises:
        UserError: more than `n` actions are legal, or an action is no whole number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], n: int = DEFAULT_ACTIONS, text: bool = False) -> None:
        RecordConstructorArgs.__init__(self, n=n, text=text)
        gymnasium.Wrapper.__init__(self, env)
        check_number("n", n, 1)
        self.n, self.text = n, text
        self.action_space = spaces.Discrete(n)
        if not text:
            self.observation_space = env.observation_space["image"]  # type: ignore[index]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._show(observation), {**info, "action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        try:
            index = operator.index(action)
        except TypeError:
            raise UserError(f"An action is a whole number below {self.n}; got {action!r:.80}.") from None
        inner = unwrap(self.env)
        legal = inner.legal_actions()

        # An index without an action is an empty reply, as the environment's rule for these decides.
        reply = inner.parser.format([legal[index]]) if 0 <= index < len(legal) else ""
        observation, reward, terminated, truncated, info = self.env.step(reply)
        return self._show(observation), reward, terminated, truncated, {**info, "action_mask": self.action_masks()}

    def action_masks(self) -> NDArray[np.int8]:
        """Return the mask; sb3-contrib asks for it by this name."""
        legal = len(unwrap(self.env).legal_actions())
        if legal > self.n:
            raise UserError(f"{legal} actions are legal, and n={self.n}: give Numbers(env, n={legal}) or more.")
        return (np.arange(self.n) < (legal or self.n)).astype(np.int8)

    def _show(self, observation: dict[str, Any]) -> Any:
        return observation if self.text else observation["image"]
