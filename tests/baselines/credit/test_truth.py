"""The truth: rules, dynamic programming, branches and the environment itself agree."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import vlgym
from baselines.credit.episodes import act, branch, noisy_oracle, play, sample_truth
from baselines.credit.lines import draw_starts, move, noisy, play_lines, solve, true_gradient
from vlgym.registry.making import unwrap

UNIFORM = np.full((6, 6), 0.5)


def make(env_id: str, **kwargs: Any) -> Any:
    return unwrap(vlgym.make(f"vlgym/{env_id}", modality="none", **kwargs))


@pytest.mark.parametrize(("gamma", "value", "advantage"), [(1.0, -2.8252, 1.6240), (0.9, -1.9720, 1.2437)])
def test_a_state_of_number_line_has_its_exact_value(gamma, value, advantage):
    v, q = solve((np.array([2]), np.array([[4]])), UNIFORM, gamma)
    assert v[10, 0, 0, 2] == pytest.approx(value, abs=5e-5)
    assert q[10, 0, 0, 2] - v[10, 0, 0, 2] == pytest.approx([-advantage, advantage], abs=5e-5)
    current, target = np.indices((6, 6)).reshape(2, -1)  # all draws of both, the equal ones moved on
    target = np.where(current == target, (target + 1) % 5, target)
    v, _ = solve((current, target[:, None]), UNIFORM, 1.0)
    assert v[10, 0, np.arange(36), current].mean() == pytest.approx(-2.4829, abs=5e-5)


def test_the_rules_of_number_line_are_the_environments_move_for_move():
    env, rng = make("NumberLine-v0", targets=3), np.random.default_rng(0)
    for seed in range(20):
        env.reset(seed=seed)
        over = False
        while not over:
            number, left, action = 3 - len(env.later), env.max_turns - env.turn, rng.integers(2)
            after, reward, reached = move(*map(np.array, (env.target, env.current, action)))
            _, paid, over = act(env, "-+"[action])
            assert (paid, env.current) == (reward, after)
            assert over == (left == 1 or (reached and number == 3))


def test_episodes_in_tensors_have_the_frequencies_and_returns_of_their_values():
    played = play_lines(draw_starts(2, 0, 1), noisy(0.5), size=20_000, seed=0, gamma=0.9)
    episodes = played.episodes
    value, advantages = float(episodes.values[0, 0, 0]), played.truth.halves[0]
    assert float(episodes.returns.mean()) == pytest.approx(value, abs=0.03)
    assert float(played.truth.halves[0][episodes.mask].mean()) == pytest.approx(0, abs=0.01)
    gae = episodes.to_go - episodes.values
    for action in range(2):  # the mean of what followed an action less V is its advantage
        own = episodes.actions[0, :, 0] == action
        assert float(gae[0, own, 0].mean()) == pytest.approx(float(advantages[0, own, 0][0]), abs=0.05)


def test_the_true_gradient_is_the_derivative_of_the_value():
    drawn, logits, step = draw_starts(2, 0, 1), np.log(noisy(0.5) / (1 - noisy(0.5))), 1e-4
    plus = 1 / (1 + np.exp(-logits))
    gradient = true_gradient(play_lines(drawn, plus, size=20_000, seed=0), plus) / 20_000
    expected = torch.zeros(36).double()
    for place in range(36):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved.flat[place] += sign * step
            ends.append(solve(drawn, 1 / (1 + np.exp(-moved)), 1.0)[0][20, 0, 0, drawn[0][0]])
        expected[place] = (ends[0] - ends[1]) / (2 * step)
    assert torch.allclose(gradient, expected, atol=0.02)
    assert float(expected.abs().max()) > 0.3


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
Outcomes = list[tuple[float, float, str | None]]  # probability, reward and next board; None is the end


def has_line(board: str, sign: str) -> bool:
    """True if a sign has three squares in a line."""
    return any(all(board[at] == sign for at in line) for line in LINES)


def tic_tac_toe(board: str) -> dict[str, Outcomes]:
    """Rules of TicTacToe for the player who moves now, `x`, against a random player `o`.
    A board has nine signs, `x`, `o` or `.`; actions are the numbers of the squares."""
    outcomes: dict[str, Outcomes] = {}
    for square in (at for at in range(9) if board[at] == "."):
        mine = board[:square] + "x" + board[square + 1 :]
        theirs = [mine[:at] + "o" + mine[at + 1 :] for at in range(9) if mine[at] == "."]
        if has_line(mine, "x") or not theirs:
            outcomes[str(square)] = [(1.0, float(has_line(mine, "x")), None)]
            continue
        outcomes[str(square)] = [
            (1 / len(theirs), -float(has_line(each, "o")), None if has_line(each, "o") or "." not in each else each)
            for each in theirs
        ]
    return outcomes


def solver(policy: Callable[[str], Mapping[str, float]], gamma: float) -> Callable[[str], tuple[float, dict]]:
    """A function that returns V of a board, and Q of its squares: Q(s, a) = E[r + gamma V(s')] and
    V(s) = sum_a pi(a|s) Q(s, a)."""

    @cache
    def solve(board: str) -> tuple[float, dict[str, float]]:
        q = {
            action: sum(p * (r + (gamma * solve(after)[0] if after else 0.0)) for p, r, after in outcomes)
            for action, outcomes in tic_tac_toe(board).items()
        }
        return sum(share * q[action] for action, share in policy(board).items()), q

    return solve


def board_of(env: Any) -> str:
    """The board as `tic_tac_toe` writes it, from the squares a1 to c3."""
    state, mine = str(env.state).replace("\n", ""), "xo"[env.player_of(env.seat_now)]
    return "".join("." if sign == "." else "x" if sign == mine else "o" for sign in state)


def test_branches_agree_with_dynamic_programming_within_their_errors():
    uniform = lambda board: dict.fromkeys(tic_tac_toe(board), 1 / board.count("."))  # noqa: E731
    solve_board, policy = solver(uniform, 0.9), noisy_oracle(1.0)
    env, eyes = make("TicTacToe-v0", opponents="random"), make("TicTacToe-v0", opponents="random")
    episodes, turns = play(env, eyes, policy, groups=4, size=1, seed=0, gamma=0.9)
    truth = sample_truth(env, episodes, turns, policy, branches=40, most=2)
    scores: list[float] = []
    for place in (place for place in turns if not truth.halves[0][place].isnan()):
        state, action = turns[place]
        env.set_state(state)
        board = board_of(env)
        value, gains = solve_board(board)
        act(env, action)
        (square,) = (at for at in range(9) if board[at] == "." and board_of(env)[at] == "x")
        error = truth.errors[:, *place].clamp(min=0.02)
        scores += ((truth.halves[:, *place] - (gains[str(square)] - value)) / error).tolist()
    assert len(scores) >= 12
    assert np.abs(scores).max() < 3.5
    assert 0.3 < np.mean(np.square(scores)) < 2


def test_branches_of_a_state_meet_other_luck_and_one_seed_meets_the_same():
    env = make("TicTacToe-v0", opponents="random", seat=0)
    first = lambda env: (env.legal_actions()[:1], [1.0])  # noqa: E731
    env.reset(seed=1)
    state = env.get_state()
    returns = [branch(env, state, None, first, seed, 1.0) for seed in range(12)]
    assert len(set(returns)) > 1
    assert returns == [branch(env, state, None, first, seed, 1.0) for seed in range(12)]


def test_halves_and_episodes_share_no_luck_and_all_turns_of_a_group_begin_alike():
    env, policy = make("NumberLine-v0"), noisy_oracle(1.0)
    eyes = unwrap(vlgym.make("vlgym/NumberLine-v0", image_size=(56, 112)))
    episodes, turns = play(env, eyes, policy, groups=3, size=4, seed=0)
    assert (episodes.keys[..., 0] == episodes.keys[:, :1, 0]).all()
    assert len({tuple(actions.tolist()) for actions in episodes.actions[0]}) > 1
    truth = sample_truth(env, episodes, turns, policy, branches=4, most=3)
    known = ~truth.halves[0].isnan()
    assert known.sum() == episodes.mask.sum(-1).clamp(max=3).sum()
    assert not torch.equal(truth.halves[0][known], truth.halves[1][known])
