"""What is won without the picture, in every environment: the best blind policy beside random play and the oracle.

    python tests/benchmarks/blind_floors.py --family cards --family sight --write

The families and ids that are named are measured and kept in docs/benchmarks/blind_floors.json. The page has a row for
every environment: what is kept, else what registry.yaml records (`vlgym registry write`, more episodes), and where
neither knows a blind floor, that it was not run. Blind policies (random play, the best constant action, the
searcher, and what the card of an environment names) are chosen on val and judged, as random play and the oracle are,
on the same test episodes. Cards and sight take some minutes of one processor; families with an engine or a browser
hours.
"""

from __future__ import annotations

import argparse
import datetime
import json
from functools import partial
from typing import Any

from report import PAGES, finish, parse_write, table

from vlgym.blind_gap import WARN_ABOVE, find_share
from vlgym.cli.catalogue import first_party_specs
from vlgym.evaluation import Report, evaluate
from vlgym.intervals import wilson_interval
from vlgym.making import build
from vlgym.policies import OraclePolicy, Policy, RandomPolicy
from vlgym.registry import get_registry
from vlgym.spec import EnvSpec
from vlgym.testing.blind_floor import choose_blind
from vlgym.testing.measure import UNSEEN

KEPT = PAGES / "blind_floors.json"
FIGURES = ("success", "success_low", "success_high", "mean_return", "return_se", "episodes")
NORMAL = 1.959964
"""Standard errors on each side of a mean that make 95 %."""


def measure(spec: EnvSpec, episodes: int) -> dict[str, Any]:
    """Return what was measured of an environment: random play, the oracle, and the best blind policy by success and by
    return."""

    def play(policy: Policy, split: str, count: int) -> Report:
        return evaluate(spec.id, policy, split=split, episodes=count, num_envs=1, env_kwargs=UNSEEN)

    choice = choose_blind(spec, partial(build, spec), play)
    players = {
        "random": RandomPolicy(), "oracle": OraclePolicy(fallback=True), "blind": choice.by_success,
        "blind_return": choice.by_return,
    }  # fmt: skip
    reports = {name: play(policy, "test", episodes) for name, policy in players.items()}
    figures = {
        name: {"policy": report.policy, **{key: getattr(report, key) for key in FIGURES}}
        for name, report in reports.items()
    }
    return {**figures, "date": datetime.date.today().isoformat()}


def read_recorded(env_id: str) -> dict[str, Any] | None:
    """Return what registry.yaml records, in the form of `measure`; `None` where it has no blind floor or no ceiling."""
    entry = get_registry().known.get(env_id)
    if not entry or not (entry.get("blind") and entry["floor"] and entry["ceiling"]):
        return None
    blind = entry["blind"]
    players = {
        "random": ("random", entry["floor"]),
        "oracle": ("oracle", entry["ceiling"]),
        "blind": (blind["success_policy"], blind),
        "blind_return": (blind["policy"], blind),
    }
    found: dict[str, Any] = {}
    for name, (policy, figures) in players.items():
        count = figures["episodes"]
        low, high = wilson_interval(round(figures["success"] * count), count)
        found[name] = {
            "policy": policy, "success": figures["success"], "success_low": low, "success_high": high,
            "mean_return": figures["return"], "return_se": figures["se"], "episodes": count,
        }  # fmt: skip
    return found


def write_row(env_id: str, found: dict[str, Any] | None) -> list[str]:
    """Return an environment's table row."""
    if found is None:
        return [f"`{env_id}`", "not run", "", "", "", "", "", ""]
    floor, ceiling, blind = (
        {"return": found[name]["mean_return"], "success": found[name]["success"]}
        for name in ("random", "oracle", "blind")
    )
    share = find_share({**blind, "return": found["blind_return"]["mean_return"]}, floor, ceiling)
    names = dict.fromkeys(found[name]["policy"] for name in ("blind", "blind_return"))
    return [
        f"`{env_id}`",
        "; ".join(names),
        str(found["blind"]["episodes"]),
        write_success(found["blind"], interval=True),
        write_return(found["blind_return"], interval=True),
        f"{write_success(found['random'])}, {write_return(found['random'])}",
        f"{write_success(found['oracle'])}, {write_return(found['oracle'])}",
        "none to go" if share is None else f"{share:.2f}{' (above a third)' if share > WARN_ABOVE else ''}",
    ]


def write_success(figures: dict[str, Any], *, interval: bool = False) -> str:
    """Return a share of successes, with its 95 % interval (Wilson's) if asked for."""
    ends = f" ({figures['success_low']:.2f} to {figures['success_high']:.2f})" if interval else ""
    return f"{figures['success']:.2f}{ends}"


def write_return(figures: dict[str, Any], *, interval: bool = False) -> str:
    """Return a mean return, with its 95 % interval (normal) if asked for."""
    half = NORMAL * figures["return_se"]
    ends = f" ({figures['mean_return'] - half:.2f} to {figures['mean_return'] + half:.2f})" if interval else ""
    return f"{figures['mean_return']:.2f}{ends}"


def main() -> None:
    """Measure the families that are named, and write the page of all."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", help="measure this family; may be repeated; none: only the page")
    parser.add_argument("--id", action="append", help="measure this id; may be repeated")
    parser.add_argument("--episodes", type=int, default=100)
    chosen = parse_write(__doc__ or "", parser)
    specs = first_party_specs(get_registry())
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for env_id, spec in specs.items():
        if spec.family in (chosen.family or ()) or env_id in (chosen.id or ()):
            kept[env_id] = measure(spec, chosen.episodes)
            print(*write_row(env_id, kept[env_id]), sep=" | ", flush=True)
    if chosen.write:
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    rows = {name: kept.get(name) or read_recorded(name) for name in specs}
    header = [
        "environment",
        "blind policy",
        "episodes",
        "blind success (95 %)",
        "blind return (95 %)",
        "random",
        "oracle",
        "share",
    ]
    families = sorted({spec.family for spec in specs.values()})
    tables = [
        f"## {family}\n\n"
        + table(header, [write_row(name, rows[name]) for name, spec in specs.items() if spec.family == family])
        for family in families
    ]
    absent = sum(found is None for found in rows.values())
    recorded = [f"`{name}`" for name, found in rows.items() if found is not None and name not in kept]
    dates = sorted({found["date"] for found in kept.values()})
    body = (
        "What policies win that see the text and the legal actions, and never the picture. Tried are random play, the "
        "best constant action, a searcher that goes round the legal actions and prefers those whose words stand in the "
        "text, and the players that the card of an environment names. The best by success and the best by return are "
        "chosen on val and judged on test episodes, the same as those of random play and the "
        "oracle; where they are two, both are named. Random and oracle: success, mean return. The share is how far of "
        "the way from random play to the oracle blind policies come, in success or in returns above 0, whichever is "
        f"more.\n\nMeasured by this script: {', '.join(dates) or 'never'}. As registry.yaml records them: "
        f"{', '.join(recorded) or 'none'}. Not run: {absent} of {len(rows)}. What was not run is not known here; "
        "it is not 0.\n\n" + "\n\n".join(tables)
    )
    finish("blind_floors", "What is won without the picture", body, ["vlgym", "numpy"], chosen.write)


if __name__ == "__main__":
    main()
