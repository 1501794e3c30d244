"""WebUI: what a page scores that is written from the description alone, for each of the 30 projects and both versions.

    python tests/benchmarks/webui_blind.py --records pages.jsonl --write

The page is that of the family's blind player (`vlgym_webui.blind`), in one reply; it is rendered, gone through the
interactions and scored as any other. `WebUI-v0` states colours and sizes in its descriptions, `WebUI-v1` leaves them to
the pictures. Some minutes; an interrupted run goes on from its records.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from pathlib import Path

from report import finish, parse_write, table
from vlgym_webui.blind import PageWriter
from vlgym_webui.plugin import PROJECTS
from vlgym_webui.project import load_project
from vlgym_webui.studio import STUDIO

import vlgym

VERSIONS = ("vlgym/WebUI-v0", "vlgym/WebUI-v1")
MOST = 40
"""AES in percent that no page of the second version may reach."""


def measure(env_id: str, project: str) -> tuple[float, dict[str, float]]:
    """Return the score of the blind page of one project, and what was lost by kind."""
    env = vlgym.make(env_id, project=project, planner="global")
    observation, _ = env.reset(seed=0)
    *_, info = env.step(PageWriter(random.Random(0)).choose(observation["text"], ()))
    env.close()
    return info["score"], info["losses"]


def main() -> None:
    """Render all pages and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, help="file of finished pages, read and continued")
    chosen = parse_write(__doc__ or "", parser)
    lines = chosen.records.read_text().splitlines() if chosen.records and chosen.records.exists() else []
    known = {(env_id, project): found for env_id, project, *found in map(json.loads, lines)}
    rows, scores = [], {env_id: [] for env_id in VERSIONS}
    for project in PROJECTS:
        cells = []
        for env_id in VERSIONS:
            if (env_id, project) not in known:
                known[env_id, project] = [*measure(env_id, project)]
                if chosen.records:
                    with open(chosen.records, "a", encoding="utf-8") as file:
                        file.write(json.dumps([env_id, project, *known[env_id, project]]) + "\n")
            score, losses = known[env_id, project]
            scores[env_id].append(score)
            worst = max(losses, key=lambda kind: losses[kind])
            cells += [f"{score:.1f}", f"{worst} {losses[worst]:.0f}"]
        rows.append([f"`{project}`", load_project(project).split, *cells])
        print(rows[-1], flush=True)
    STUDIO.pool.close()
    header = ["project", "split"]
    lines = []
    for env_id in VERSIONS:
        name, found = env_id.split("/")[1], scores[env_id]
        header += [name, "lost most by"]
        lines.append(
            f"- `{env_id}`: mean {statistics.mean(found):.1f}, median {statistics.median(found):.1f}, "
            f"highest {max(found):.1f}; {sum(score >= MOST for score in found)} of {len(found)} at {MOST} or more."
        )
    body = (
        "AES in percent under the default score, one page for each project, and the kind of loss that took most (in "
        "percent: `Act` an interaction could not be done, `Mat` an element has no partner, `Attr` it differs, `Vis` it "
        "is not to be seen). The writer is simple: it puts what is quoted one below the other, under the classes that "
        "are named and in the looks that are stated, and knows one kind of page better, a column of boxes that open "
        "and close. A better writer would score more; none was tried.\n\n"
        + "\n".join(lines)
        + f"\n\n{table(header, rows)}"
    )
    finish(
        "webui_blind", "WebUI: pages written from the description alone", body,
        ["vlgym", "vlgym-webui", "selenium", "numpy"], chosen.write,
    )  # fmt: skip


if __name__ == "__main__":
    main()
