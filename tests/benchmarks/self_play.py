"""Self-play judged: the models of a `curve` study before and after it, against the game's own
players.

    python tests/benchmarks/self_play.py KuhnPoker-v0
    python tests/benchmarks/self_play.py TicTacToe-v0 --folder runs/studies

Reads the runs of `python -m baselines.studies.study curve-NAME` that have ended, adds a line for
each to docs/studies/self-play.jsonl, and prints the table of all there is. In Kuhn poker it is the
exploitability of 400 replies in each of the 12 states; else 50 seeds from each seat against random
play and against the oracle, and 50 games in which the model holds all seats.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from report import finish, make_parser, table
from safetensors.torch import load_file

from baselines.policies.hf import EnginePolicy
from baselines.runs.distributed import set_up_torch
from baselines.studies.processes import PHASE_FILE, RESULTS_FOLDER
from vlgym.evaluation.policy_names import make_policy
from vlgym.games.standings import list_pairs
from vlgym.games.tournament import Tournament
from vlgym.play.policies import OraclePolicy, RandomPolicy

KUHN, SAMPLES, GAMES, MODEL = "KuhnPoker-v0", 400, 50, "model"
RECORD = RESULTS_FOLDER / "self-play.jsonl"
OTHERS = {"random": RandomPolicy, "oracle": OraclePolicy}


def judge(name: str, policy: EnginePolicy) -> dict[str, Any]:
    """Return a model's figures in one game."""
    if name == KUHN:
        from vlgym_pettingzoo.exploit import RANDOM, measure, place, sample_shares

        shares = sample_shares(policy, SAMPLES)
        return {"exploitability": measure(shares), "half_width": place(shares, SAMPLES)[1] * RANDOM}
    figures = {}
    for other, make in {"itself": None, **OTHERS}.items():
        players = {MODEL: policy, **({other: make()} if make else {})}
        with tempfile.TemporaryDirectory() as folder:
            results = Tournament(f"vlgym/{name}", players, GAMES, Path(folder) / "cup").play()
        alone = {"return": sum(result.return_of(MODEL) for result in results) / len(results)}
        figures[other] = list_pairs(results, [MODEL, other])[0] if make else alone
    return figures


def judge_run(name: str, run: Path) -> dict[str, Any]:
    """Return the figures of a run's model before and after its training."""
    policy: Any = make_policy(f"hf:{run / 'model'}", {})
    after = judge(name, policy)
    first = load_file(run / "pool" / "update-000000.safetensors")
    assert not policy.engine.family.model.load_state_dict(first, strict=False).unexpected_keys
    return {"before": judge(name, policy), "after": after}


def show(name: str, figures: dict[str, Any]) -> list[str]:
    """Return the cells of a row."""
    if name == KUHN:
        return [f"exploitability {figures['exploitability']:.3f} ± {figures['half_width']:.3f}", "", ""]
    pairs = [figures[other] for other in OTHERS]
    scores = [f"{pair['wins']}, {pair['draws']}, {pair['losses']}; {pair['return']:+.2f}" for pair in pairs]
    return [*scores, f"{figures['itself']['return']:+.2f}"]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("name", choices=(KUHN, "TicTacToe-v0", "CoinGame-v0"))
    parser.add_argument("--folder", type=Path, default=Path("runs/studies"), help="of the studies")
    args = parser.parse_args()
    set_up_torch(1, "cpu")
    text = RECORD.read_text() if RECORD.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    for done in sorted((args.folder / f"curve-{args.name}" / "runs").glob(f"*/{PHASE_FILE}")):
        seed = json.loads(done.read_text())["seed"]
        if not any((line["game"], line["seed"]) == (args.name, seed) for line in lines):
            lines.append({"game": args.name, "seed": seed, **judge_run(args.name, done.parent)})
            with RECORD.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    rows = [
        [line["game"], line["seed"], when, *show(line["game"], line[when])]
        for line in lines
        for when in ("before", "after")
    ]
    header = ("game", "seed", "training", "won, drawn, lost against random; return", "against the oracle", "itself")
    finish("self_play", "Models of self-play", table(header, rows), ("torch", "transformers"))


if __name__ == "__main__":
    main()
