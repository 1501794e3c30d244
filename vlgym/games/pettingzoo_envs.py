"""PettingZoo's two kinds of environment over a `Table`; `several` imports this when one is made."""

from typing import Any

import gymnasium
import numpy as np
from pettingzoo import AECEnv, ParallelEnv

from ..errors import UserError, check_choice
from ..types import Image
from .table import Table

Observation = dict[str, Any]
Infos = dict[str, dict[str, Any]]


class _View:
    """Base of both interfaces: names, spaces, pictures."""

    def __init__(self, table: Table, render_mode: str | None) -> None:
        if render_mode == "human":
            raise UserError("render_mode='human': there is no window. Take rgb_array, or watch a game by `vlgym ui`.")
        check_choice("render_mode", render_mode, (None, "rgb_array"))
        self.table, self.render_mode, game = table, render_mode, table.game
        together = isinstance(self, ParallelEnv) or game.at_once
        self.metadata = {"name": game.title, "render_modes": ["rgb_array"], "is_parallelizable": together}
        height, width = game.image_size
        self.state_space = gymnasium.spaces.Box(0, 255, (height, game.seats * width, 3), np.uint8)

        # An agent's name has its seat.
        self.possible_agents = [f"player_{seat}" for seat in range(game.seats)]
        self.agents: list[str] = []
        self._seats = {name: seat for seat, name in enumerate(self.possible_agents)}
        self.observation_spaces = dict.fromkeys(self.possible_agents, table.game.observation_space)
        self.action_spaces = {name: table.spaces[seat] for name, seat in self._seats.items()}

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Image and text, as in every environment."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Any reply; a sample holds a legal action."""
        return self.action_spaces[agent]

    def render(self) -> Image | None:
        """Return the pictures of `state`, for people: it shows every hand."""
        return None if self.render_mode is None or not self.agents else self.state()

    def state(self) -> Image:
        """Return the pictures of all seats side by side, `[H, seats x W, 3] uint8`."""
        if not self.table.begun:
            raise gymnasium.error.ResetNeeded("No game was begun: call reset() first.")
        game = self.table.game
        return np.concatenate([game.draw(seat) for seat in range(game.seats)], axis=1)

    def close(self) -> None:
        self.table.game.close()

    def __str__(self) -> str:
        return self.table.game.title


class ParallelGame(_View, ParallelEnv[str, Observation, str]):
    """A game in which every agent answers at every step. See `vlgym.parallel_env`."""

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], Infos]:
        self.table.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._see(self.agents)

    def step(
        self, actions: dict[str, str]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Execute the replies of those who move; an agent that gives none has answered unreadably."""
        for agent in actions:
            check_choice("agent", agent, self.possible_agents)
        agents, table = self.agents, self.table
        done = table.step({self._seats[agent]: reply for agent, reply in actions.items()})

        # All agents get their last values; then none is left of a game that is over.
        if table.over:
            self.agents = []
        observations, infos = self._see(agents)
        rewards = {agent: done.rewards[self._seats[agent]] for agent in agents}
        ended, cut = (dict.fromkeys(agents, end) for end in (table.terminated, table.truncated))
        return observations, rewards, ended, cut, infos

    def _see(self, agents: list[str]) -> tuple[dict[str, Observation], Infos]:
        seats = {agent: self._seats[agent] for agent in agents}
        observations = {agent: self.table.observe(seat) for agent, seat in seats.items()}
        return observations, {agent: self.table.info(seat) for agent, seat in seats.items()}


class AecGame(_View, AECEnv[str, Observation, str]):
    """A game in which one agent answers at a time. See `vlgym.aec_env`."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.table.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._replies: dict[int, str] = {}
        self._report()

    def observe(self, agent: str) -> Observation:
        return self.table.observe(self._seats[agent])

    def step(self, action: str | None) -> None:
        """Take the reply of `agent_selection`; of an agent whose game is over it must be `None`."""
        if not self.agents:
            raise gymnasium.error.ResetNeeded("The game is over: call reset() first.")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)  # type: ignore[arg-type]
            return
        if not isinstance(action, str):
            raise UserError(f"The reply of {agent} must be a string, not {type(action).__name__}: {action!r:.80}")

        # The round is executed with the last reply of those who move at once.
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._replies[self._seats[agent]] = action
        if all(seat in self._replies for seat in self.table.movers):
            done = self.table.step(self._replies)
            self._replies = {}
            self.rewards = {agent: done.rewards[self._seats[agent]] for agent in self.agents}
            self._report()
        else:
            self._select()
        self._accumulate_rewards()

    def _report(self) -> None:
        table = self.table
        self.terminations = dict.fromkeys(self.agents, table.terminated)
        self.truncations = dict.fromkeys(self.agents, table.truncated)
        self.infos = {agent: table.info(self._seats[agent]) for agent in self.agents}
        self._select()

    def _select(self) -> None:
        waiting = [seat for seat in self.table.movers if seat not in self._replies]
        self.agent_selection = self.possible_agents[waiting[0]] if waiting else self.agents[0]
