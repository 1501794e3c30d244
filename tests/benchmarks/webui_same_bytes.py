"""WebUI: whether a page gives the same bytes in three processes and after other episodes, whatever it tries to see.

    python tests/benchmarks/webui_same_bytes.py --write

The pages are programs made by `plugins/webui/tests/page_programs.py`, which look for clocks, chance, the machine and
traces of other pages, and write what they see. Each process renders all of them with a browser of its own, in another
order, with two clicks; element tables, screenshots and counts are compared as bytes. The processes run at the same
time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

from report import finish, parse_write, table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "webui" / "tests"))
from page_programs import PROBES, write_program

PROCESSES = 3


def render_all(programs: int, order: int) -> dict[str, list[str]]:
    """Render the programs in a shuffled order; return for each a digest and the words that it shows after the last
    click, or `lost` where no browser survived it.
    """
    from vlgym_webui.browser import Browser
    from vlgym_webui.steps import Interaction, Step

    from vlgym.chromium import BrowserPool, Limits

    clicks = tuple(Interaction(name, (Step("click", name),)) for name in ("button", ".go"))
    pool = BrowserPool(lambda: Browser(Limits(wall_s=100, cpu_s=100)))
    numbers = list(range(programs))
    random.Random(order).shuffle(numbers)
    found = {}
    for number in numbers:
        for _ in range(3):
            with pool.borrow() as browser:
                render = browser.render(write_program(number), clicks, (640, 480))
            if not render.lost:
                break
        words = render.tables[-1][0].styles["text"] if render.tables[-1] else str(render.failure)
        digest = hashlib.sha256(repr(render).encode()).hexdigest()
        found[str(number)] = ["lost", ""] if render.lost else [digest, words]
    pool.close()
    return found


def main() -> None:
    """Start the processes and compare what they found."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--order", type=int, help="render in this order and print digests (what each process does)")
    chosen = parse_write(__doc__ or "", parser)
    if chosen.order is not None:
        print(json.dumps(render_all(chosen.programs, chosen.order)))
        return
    command = [sys.executable, __file__, "--programs", str(chosen.programs), "--order"]
    started = [
        subprocess.Popen([*command, str(order)], stdout=subprocess.PIPE, text=True) for order in range(PROCESSES)
    ]
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    differ = [number for number in found[0] if len({one[number][0] for one in found}) > 1]
    lost = sum(digest == "lost" for one in found for digest, _ in one.values())
    rows = [[chosen.programs, len(PROBES), PROCESSES, len(differ), lost]]
    body = table(["programs", "ways that they try", "processes", "programs that differ", "renders lost"], rows)
    for number in sorted(differ, key=int):
        shown = [set(one[number][1].split(" | ")) for one in found]
        own = [sorted(words - set.intersection(*shown)) for words in shown]
        body += f"\n\nProgram {number}, in one process or the other alone: {', or '.join(map(repr, own))}"
    finish("webui_same_bytes", "WebUI: same page, same bytes", body, ["vlgym", "vlgym-webui", "selenium"], chosen.write)
    if differ:
        raise SystemExit("the same page gave other bytes")


if __name__ == "__main__":
    main()
