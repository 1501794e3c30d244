"""Evaluation of a run: held-out episodes, the best model by validation, and the learning curve.

With `--eval-every N`, every N updates the model plays episodes of the split `val`; the model with
the highest success (of equal ones, with the highest return) is kept in `best/`. The split `test`
chooses nothing: it is played before and after training, and once by the chosen model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from vlgym.errors import UserError
from vlgym.evaluation import Report, evaluate
from vlgym.files import seal
from vlgym.integrations.canary import CANARIES, SightGap, canary_batch, sight_gap
from vlgym.play.controls import GREY, SHOWN, SHUFFLED
from vlgym.play.policies import OraclePolicy, Policy, RandomPolicy
from vlgym.registry import get_registry
from vlgym.types import Message

from ..engine.engine import Engine, ModelPolicy, make_engine
from ..models import lora
from ..models.family import Family
from ..models.folders import EVALUATION
from ..models.load import load_family
from ..runs.folder import read_checkpoint_record
from ..runs.logs import LOG_FILE, RunLog, draw_success, read_rows
from .collect import Environments
from .state import RunState

MODEL, ADAPTER, BASE, BEST = "model", "adapter", "base", "best"  # folders in a run's
VAL, TEST = "val", "test"

# ---- the best model ------------------------------------------------------------------------------


def read_best(folder: Path) -> dict[str, Any] | None:
    """Read the note of the best model, None where there is none; a `UserError` where it is damaged.
    It has `update`, `env_steps`, `success`, `mean_return` on validation, and reports by split."""
    path = folder / EVALUATION
    if not path.exists():
        return None
    try:
        note = read_checkpoint_record(path)
        return {name: note[name] for name in ("update", "env_steps", "success", "mean_return", VAL)} | note
    except (UserError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}). Move {folder} away to go on without that model.") from None


def keep_best(folder: Path, reports: Sequence[Mapping[str, Any]], family: Family, notes: Mapping[str, Any]) -> bool:
    """Write the model to `folder` if its validation reports beat those of the one there."""
    first, count = reports[0], len(reports)
    success, mean_return = (sum(report[name] for report in reports) / count for name in ("success", "mean_return"))
    known = read_best(folder)
    if known is not None and (success, mean_return) <= (known["success"], known["mean_return"]):
        return False
    note = {name: first[name] for name in ("update", "env_steps")}
    note |= {"success": success, "mean_return": mean_return, VAL: list(reports)}
    lora.export_merged(family, folder, {**notes, EVALUATION: seal(note)})
    return True


def load_best(folder: Path, sampler: Engine) -> Engine:
    """Load the best model, with the options of a run's sampler."""
    family = sampler.family
    loaded = load_family(
        str(folder), image_tokens=family.image_tokens, device=str(family.device), system=family.system,
        dtype=str(family.model.dtype).removeprefix("torch."),
    )  # fmt: skip
    engine = make_engine(loaded, max_new_tokens=sampler.max_new_tokens, parsers=sampler.parsers)
    engine.temperature = sampler.temperature
    return engine


# ---- held-out episodes ---------------------------------------------------------------------------

GAP_EPISODES = 12  # canary episodes of `sight/gap`
FLOOR_EPISODES = 60  # played by random policy and oracle where registry.yaml has no numbers

Bound = Mapping[str, float]  # "success", "return" and its standard error "se" of a policy


def held_out(
    sampler: Engine, envs: Environments, log: RunLog, *, episodes: int, seed: int, name: str,
    split: str = "test", pictures: str = SHOWN,
) -> Iterator[Report]:  # fmt: skip
    """Play held-out episodes of every environment in turn; training's generator stays as it is.
    With other `pictures` half as many are played."""
    policy: Policy = ModelPolicy(sampler, torch.Generator().manual_seed(seed), name=name)
    if pictures != SHOWN:
        episodes = max(1, episodes // 2)
    for env_id in envs.ids:
        title = f"{_kind(split)} {env_id.split('/')[-1]}{'' if pictures == SHOWN else ', ' + pictures}"
        with log.counting(title, episodes) as advance:
            report = evaluate(
                env_id, policy, episodes=episodes, split=split, num_envs=envs.total,
                env_kwargs=envs.held_out(env_id), builder=envs.builder, on_episode=advance,
                on_failure=envs.failures.append, group=envs.group, pictures=pictures,
            )  # fmt: skip
        yield report


@torch.no_grad()
def measure_gap(engine: Engine) -> SightGap | None:
    """Return by how much pictures raise the log-probability of canaries' answers, or None."""
    if not get_registry().specs.keys() >= set(CANARIES):
        return None
    family = engine.family

    def score(prompts: list[list[Message]], replies: list[str]) -> list[float]:
        scores = []
        for messages, reply in zip(prompts, replies, strict=True):  # a prompt holds four pictures
            ids = torch.tensor([family.encode_reply(reply)], device=family.device)
            logp = engine.score([family.encode(messages)], ids, torch.ones_like(ids).bool())
            scores.append(float(logp.clamp_min(-1e4).sum()))  # a model may forbid tokens
        return scores

    return sight_gap(score, canary_batch(GAP_EPISODES))


def write_report_line(report: Report, env_steps: int) -> str:
    """A report as one line."""
    score = "" if report.mean_score is None else f"score {report.mean_score:.2f}, "
    return (
        f"{_kind(report.split)} {report.env_id} after {env_steps} env steps: "
        f"success {report.success:.3f} [{report.success_low:.3f}, {report.success_high:.3f}], "
        f"return {report.mean_return:+.3f}, {score}"
        f"invalid {report.invalid_rate:.3f}, cut {report.cut_rate:.3f}, {report.episodes} episodes"
    )


def _kind(split: str) -> str:
    return "validation" if split == "val" else "held-out"


def draw_run(out: Path, envs: Environments, state: RunState, log: RunLog, *, title: str, name: str) -> Path:
    """Draw the learning curve of a run from its log and its evaluations, and return the file."""
    bounds = [_bounds(env_id, envs, log) for env_id in envs.ids]

    # Means over environments, of one split: the validation's where there are any.
    chosen = [e for e in state.evaluations if e["split"] == VAL] or state.evaluations
    steps = sorted({e["env_steps"] for e in chosen})
    pooled = [_pool([e for e in chosen if e["env_steps"] == at]) for at in steps]
    controls: dict[str, list[tuple[int, float]]] = {}
    for pictures in (GREY, SHUFFLED):
        for at in steps:
            scores = [e[pictures]["success"] for e in chosen if e["env_steps"] == at and pictures in e]
            if scores:
                controls.setdefault(pictures, []).append((at, sum(scores) / len(scores)))
    path = out / "curve.png"
    draw_success(
        path, read_rows(out / LOG_FILE), title=title, name=name, num_envs=envs.count,
        warm=state.warm.success, evaluations=pooled,
        floor=_mean([floor for floor, _ in bounds]), oracle=_mean([ceiling for _, ceiling in bounds]),
        blind=_mean([find_blind(env_id, envs) for env_id in envs.ids]),
        controls=controls,
    )  # fmt: skip
    return path


def _bounds(env_id: str, envs: Environments, log: RunLog) -> tuple[Bound, Bound | None]:
    """Success and return of random play and of the oracle, recorded or measured."""
    entry = get_registry().known.get(env_id) or {}
    if not envs.held_out(env_id) and entry.get("floor") and entry.get("ceiling"):
        return entry["floor"], entry["ceiling"]

    # registry.yaml has no numbers of these arguments.
    policies: list[Policy] = [RandomPolicy()]
    if get_registry().get(env_id).oracle != "none":
        policies.append(OraclePolicy())
    measured: list[Bound] = []
    for policy in policies:
        with log.counting(f"{policy.name} {env_id.split('/')[-1]}", FLOOR_EPISODES) as advance:
            report = evaluate(
                env_id, policy, episodes=FLOOR_EPISODES, split=VAL, num_envs=envs.count, group=envs.group,
                env_kwargs=envs.held_out(env_id), on_episode=advance, on_failure=envs.failures.append,
            )  # fmt: skip
        measured.append({"success": report.success, "return": report.mean_return, "se": report.return_se})
    return measured[0], measured[1] if len(measured) == 2 else None


def find_blind(env_id: str, envs: Environments) -> Bound | None:
    """Recorded success and return of the best blind policies; None if not measured."""
    entry = get_registry().known.get(env_id) or {}
    return None if envs.held_out(env_id) else entry.get("blind")


def _pool(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("success", "success_low", "success_high", "mean_return", "return_se")
    means = {key: sum(r[key] for r in rows) / len(rows) for key in (*names, "invalid_rate", "cut_rate")}
    return {"env_steps": rows[0]["env_steps"], **means}


def _mean(bounds: Sequence[Bound | None]) -> Bound | None:
    """Mean over environments, and the standard error of that; None if one is unknown."""
    known = [each for each in bounds if each is not None]
    if len(known) < len(bounds):
        return None
    mean = {name: sum(each[name] for each in known) / len(known) for name in ("success", "return")}
    return {**mean, "se": math.sqrt(sum(each["se"] ** 2 for each in known)) / len(known)}
