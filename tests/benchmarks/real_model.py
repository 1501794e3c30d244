"""SmolLM2 in words, as published and trained: how often it wins, and why it does not.

    python -m baselines.vldac --env vlgym/NumberLine-v1 --model smollm2 --env-kwargs modality=text --threads 1 \\
        --warm.batch 8 --warm.lr 4e-4 --warm.check-every 15 --warm.val-episodes 12 --warm.samples 512 --lr 3e-5 \\
        --kl-coef 0.02 --gamma 0.5 --target-kl 0.03 --num-envs 64 --rollout-steps 4 --updates 40 --out runs/trained
    python tests/benchmarks/real_model.py --out runs/real --trained runs/trained --write

The training takes 50 minutes of one core. The evaluations, by `vlgym eval`, take an hour; a second
call goes on with them.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from report import finish, make_parser, table

from baselines.engine.engine import make_engine, pad_rows
from baselines.models.load import load_family
from baselines.runs import logs
from baselines.runs.folder import write_json
from baselines.studies.processes import RESULTS_FOLDER, note_made
from vlgym.play.trajectory import read_trajectories

FIRST = "vlgym/NumberLine-v1"
IDS = (
    FIRST, "vlgym/EZPoints-v1", "vlgym/Blackjack-v0", "vlgym/OneRoomS6Fast-v1",
    "vlgym/TicTacToe-v0",
    "vlgym/ConnectFour-v0", "vlgym/Points24-v1", "vlgym/ScreensClick-v0", "vlgym/ScreensGo-v0",
)  # fmt: skip
SHORT = ("vlgym/ScreensClick-v0", "vlgym/Blackjack-v0", FIRST, "vlgym/EZPoints-v1", "vlgym/TicTacToe-v0")
"""Those that are played with two examples, each alone: the examples of one are computed once for
all its episodes."""
PLAN = ("vlgym/SokobanDrawn-v0", "--env-kwargs", "planner=global")
"""One reply holds the whole plan: turn by turn its 50 turns would be most of the replies of all."""
WORDS = ("--policy-arg", "threads=1", "--num-envs", "30", "--max-tokens")
MODEL, SILENT = ("--policy", "hf:smollm2", *WORDS), ("--env-kwargs", "invalid_action=published")
QUESTIONS = ("What is the capital of France?", "Name three colors.", "What is the opposite of hot?")
"""They have nothing to do with the environments."""
EXAMPLES, SCORED = 2, 64
"""First replies of an environment that are kept; replies of which the KL is measured."""


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def list_runs(trained: Path) -> list[tuple[str, tuple[str, ...], str]]:
    """Return player, its options and what it plays, of each evaluation. `SILENT` has the paper's
    reward, and no words on an unreadable reply."""
    every = ",".join(IDS)
    return [
        ("random", ("--policy", "random"), every),
        ("random", ("--policy", "random", *PLAN[1:]), PLAN[0]),
        ("as published", (*MODEL, "32"), every),
        ("as published", (*MODEL, "64", *PLAN[1:]), PLAN[0]),
        *(("two examples", (*MODEL, "32", "--few-shot", "2"), each) for each in SHORT),
        ("two examples", (*MODEL, "64", "--few-shot", "2", *PLAN[1:]), PLAN[0]),
        ("without feedback", (*MODEL, "32", *SILENT), FIRST),
        ("trained", ("--policy", f"hf:{trained / 'model'}", *WORDS, "32"), FIRST),
    ]


def read_rows(player: str, folder: Path) -> list[dict[str, Any]]:
    """Return a row per environment: success, how the replies were read, and the first replies of
    two episodes."""
    report, replies = read_json(folder / "report.json"), dict[str, list[str]]()
    for episode in read_trajectories(folder, images=False):
        if player != "random" and len(replies.setdefault(episode[0].env_id, [])) < EXAMPLES:
            replies[episode[0].env_id].append(episode[0].reply)
    return [
        {
            "player": player, "env": env_id, "success": part["success"], "invalid": part["invalid"],
            "forms": part["forms"], "replies": part["replies"], "examples": replies.get(env_id, []),
        }
        for env_id, part in report["parts"].items()
    ]  # fmt: skip


@torch.no_grad()
def read_training(run: Path, folder: Path) -> dict[str, Any]:
    """Return the curve of a training, its KL to the published model in nats a reply, and answers of
    both models.

    The KL is the mean of log pi - log pi_published over the replies in `folder`, which the trained
    model sampled.
    """
    updates = [row for row in logs.read_rows(run / "log.jsonl") if "update" in row]
    families = [load_family(name) for name in ("smollm2", str(run / "model"))]
    published, trained = (make_engine(family, max_new_tokens=32) for family in families)
    records = [record for each in read_trajectories(folder, images=False) for record in each][:SCORED]
    prompts = [trained.family.encode(record.messages) for record in records]
    replies = [torch.tensor(trained.family.encode_reply(record.reply)) for record in records]
    ids, mask = pad_rows(replies, 0)
    theirs, own = (engine.score(prompts, ids.long(), mask).sum(-1) for engine in (published, trained))

    def answer(engine: Any, question: str) -> str:
        content = [{"type": "text", "text": question}]
        prompt = engine.family.encode([{"role": "user", "content": content}])
        return engine.sample([prompt], temperature=0).texts[0]

    names = ("update", "env_steps", "episode/success", "rollout/reward", "rollout/invalid_rate", "loss/kl")
    phases = ("rollout", "reference", "check", "update")
    seconds = sum(each[f"seconds/{phase}"] for each in updates for phase in phases)
    return {
        "player": "training", "env": FIRST, "kl": float((own - theirs).mean()),
        "minutes": seconds / 60,
        "updates": [{name: each[name] for name in names} for each in updates],
        "evaluations": read_json(run / "evaluation.json"),
        "answers": [[x, answer(published, x), answer(trained, x)] for x in QUESTIONS],
    }  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--episodes", type=int, default=30, help="of each environment")
    parser.add_argument("--trained", metavar="FOLDER", type=Path, required=True, help="run of the training")
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="keeps what was played")
    parser.add_argument("--write", action="store_true", help="write docs/studies/real-model.json")
    args = parser.parse_args()

    # A run that was stopped goes on; one that has ended writes its report again.
    rows = []
    for number, (player, options, ids) in enumerate(list_runs(args.trained)):
        folder = args.out / f"{number}-{player.replace(' ', '-')}"
        command = [sys.executable, "-m", "vlgym", "eval", *options, "--env", ids, "--out", str(folder)]
        command += ["--episodes", str(args.episodes), "--modality", "text", "--no-probe"]
        command += ["--resume"] if (folder / "run.json").is_file() else []
        subprocess.run(command, check=True)
        rows += read_rows(player, folder)
    cells = [[x["env"], x["player"], x["success"]["rate"], x["invalid"]["rate"], x["forms"]] for x in rows]
    rows.append(read_training(args.trained, folder))

    if args.write:
        note_made("real-model")
        write_json(RESULTS_FOLDER / "real-model.json", rows)
    header = ("environment", "player", "success", "unreadable", "forms")
    finish("real_model", "A real model", table(header, cells), ("vlgym", "torch", "transformers"))


if __name__ == "__main__":
    main()
