"""State as text: what a table learns from the words for the picture, against the same table without them.

    python tests/benchmarks/words.py

The player is `vlgym.sight.blind_learner`'s table: it learns on train the return that followed each action after each
text, legal actions and feedback, with no oracle and no picture; then it plays held-out episodes. Its success with
`modality=text` less that with `none` is what the picture's content is worth to a player that cannot generalise.
"""

from __future__ import annotations

from functools import partial

from report import finish, parse, table

from vlgym.evaluation import Report, evaluate
from vlgym.registry import get_registry
from vlgym.registry.making import build
from vlgym.sight.blind_learner import TablePlayer, count_training, learn
from vlgym.sight.blind_policies import BlindPolicy

EPISODES = 200
IDS = (
    "NumberLine-v0", "NumberLine-v1", "EZPoints-v1", "Points24-v1", "Blackjack-v0", "SokobanDrawn-v0", "Sokoban-v0",
    "OneRoomS6Fast-v1", "TicTacToe-v0", "ConnectFour-v0", "Breakthrough-v0",
)  # fmt: skip


def play(env_id: str, modality: str) -> Report:
    """Let the table learn and play one environment."""
    spec, kwargs = get_registry().get(env_id), {"modality": modality}
    player = BlindPolicy(TablePlayer.name, learn(spec, partial(build, spec, **kwargs), TablePlayer.name))
    return evaluate(env_id, player, episodes=EPISODES, num_envs=1, env_kwargs=kwargs)


def main() -> None:
    """Play and report."""
    parse(__doc__ or "")
    rows = []
    for name in IDS:
        spec = get_registry().get(f"vlgym/{name}")
        known = get_registry().known[spec.id]
        reports = [play(spec.id, modality) for modality in ("none", "text")]
        cells = [f"{each.success:.2f} [{each.success_low:.2f}, {each.success_high:.2f}]" for each in reports]
        ends = [f"{known[part]['success']:.2f}" for part in ("blind", "ceiling")]
        rows.append([name, count_training(spec), *cells, *ends])
        print(*rows[-1], flush=True)
    header = ("environment", "episodes learnt from", "without words", "with words", "best blind player", "oracle")
    finish("words", f"State as text, {EPISODES} held-out episodes", table(header, rows), ("vlgym",))


if __name__ == "__main__":
    main()
