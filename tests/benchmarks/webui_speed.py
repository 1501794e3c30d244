"""WebUI: seconds to score a page, with the pooled browser and with a browser started for each page.

    python tests/benchmarks/webui_speed.py --write

The ground truth of each project of the test split is scored against itself, changed by a comment so that no memory of
results answers; its interactions are done and photographed too. Seconds are those of the clock, because the browser is
another process.
"""

from __future__ import annotations

import argparse
import statistics
import time

from report import finish, parse_write, table
from vlgym_webui.browser import POOL
from vlgym_webui.project import list_projects, load_project
from vlgym_webui.studio import STUDIO

TARGET = 2.0


def score(name: str, mark: str) -> tuple[float, float]:
    """Return the seconds that scoring a project's ground truth takes, and its score."""
    project = load_project(name)
    STUDIO.target(project)
    code = project.code()
    code["script.js"] = code.get("script.js", "") + f"// {mark}\n"
    begun = time.perf_counter()
    evaluation = STUDIO.evaluate(project, code)
    return time.perf_counter() - begun, evaluation.report.score


def main() -> None:
    """Measure both ways alternately and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parse_write(__doc__ or "", parser)
    names = list_projects("test")
    pooled: list[float] = []
    fresh: list[float] = []
    for turn in range(chosen.rounds):
        for name in names:
            seconds, points = score(name, f"pooled {turn}")
            if round(points) != 100:
                raise SystemExit(f"{name}: its own ground truth scores {points}, not 100")
            pooled.append(seconds)
            POOL.close()  # the next page starts a browser
            fresh.append(score(name, f"fresh {turn}")[0])
    middle = statistics.median(pooled)
    rows = [
        ["pooled browser", f"{middle:.2f}", f"{max(pooled):.2f}", "1"],
        ["a browser for each page", f"{statistics.median(fresh):.2f}", f"{max(fresh):.2f}",
         f"{statistics.median(fresh) / middle:.2f}"],
    ]  # fmt: skip
    body = (
        f"The {len(names)} projects of the test split, {chosen.rounds} rounds, one page at a time; interactions and "
        f"photographs included. Target: {TARGET:g} s in the median with the pooled browser.\n\n"
    )
    page = body + table(["how", "median s", "slowest s", "ratio"], rows)
    finish("webui_speed", "WebUI: speed", page, ["vlgym", "vlgym-webui", "selenium"], chosen.write)


if __name__ == "__main__":
    main()
