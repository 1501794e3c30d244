"""Results of `make demo` with five seeds: time, and held-out success before and after reinforcement
learning.

Each seed is a process with the demo's options of `python -m baselines.vldac`.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from report import finish, make_parser, table

from baselines.plugin import make_hf
from baselines.runs.logs import read_rows
from baselines.studies.processes import RESULTS_FOLDER, note_made
from vlgym.evaluation import evaluate

OPTIONS = (
    "--env", "vlgym/NumberLine-v1", "--warm.reading", "0.995", "--kl-coef", "0.02", "--gamma",
    "0.5",
    "--target-kl", "0.03", "--num-envs", "64", "--rollout-steps", "4", "--updates", "42",
)  # fmt: skip
"""As the Makefile has them."""

COLUMNS = ("env_steps", "episode/count", "episode/success", "value/explained_variance")
KEYS = ("success", "success_low", "success_high", "invalid_rate", "episodes")


def run_seed(seed: int, out: Path) -> dict[str, Any]:
    """Train once; return the run's line of the record, which a second call finds in the folder."""
    path = out / "line.json"
    if path.is_file():
        return dict(json.loads(path.read_text()))
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "baselines.vldac", *OPTIONS, "--seed", str(seed), "--out", str(out)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    before, *_, after = json.loads((out / "evaluation.json").read_text())
    rows = read_rows(out / "log.jsonl")
    explained = [row["value/explained_variance"] or 0.0 for row in rows]
    policy = make_hf(str(out / "model"), temperature=0)
    greedy = evaluate(OPTIONS[1], policy, episodes=200).to_dict()
    figures = {"before": before, "after": after, "greedy": greedy, "grey": after["grey"]}
    line = {
        "seed": seed,
        **{name: {key: report[key] for key in KEYS} for name, report in figures.items()},
        "explained_variance": sum(explained[4:15]) / 11, "lowest": min(explained[15:]),
        "largest_kl": max(row["loss/kl"] for row in rows), "seconds": round(seconds),
        "curve": [[row[name] for name in COLUMNS] for row in rows],
    }  # fmt: skip
    path.write_text(json.dumps(line))
    return line


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 6, 7, 8, 9], help="0 to 4 chose the options")
    parser.add_argument("--write", action="store_true", help="write docs/studies/demo.jsonl")
    parser.add_argument("--out", metavar="FOLDER", help="keeps finished seeds for a later call")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = [run_seed(seed, Path(args.out or name) / f"seed{seed}") for seed in args.seeds]
        if args.write:
            note_made("demo")
            (RESULTS_FOLDER / "demo.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    header = [name for name in runs[0] if name != "curve"]
    body = [[json.dumps(run[name]) for name in header] for run in runs]
    finish("demo_seeds", "The demo", table(header, body), ["vlgym", "torch", "transformers"])


if __name__ == "__main__":
    main()
