"""Run what a page of the documentation shows: `python docs/run_page.py docs/sokoban.md`; the first failure ends it.

In a temporary folder: a block after a line that ends in "`name`:" is written to that file; then, from top to bottom, a
block marked `python` is run by itself, and each line of a block without a language as a command, without a shell.
Blocks in other languages are only shown. The tests of the plugins call this for the pages about them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"(?:^(?P<before>[^\n]*)\n)?\n?```(?P<language>\w*)\n(?P<body>.*?)\n```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+)`:$")
PROGRAMS = {"python": [sys.executable], "vlgym": [sys.executable, "-m", "vlgym"]}
LONGEST_S = 600


def main() -> int:
    """Run the pages that the command line names; return the exit status."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            for command in write_and_list(Path(name).read_text(encoding="utf-8"), Path(folder)):
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False
                )
                print(f"{name}: {shlex.join(command)[:400]}\n{done.stdout}{done.stderr}")
                if done.returncode:
                    return 1
    return 0


def write_and_list(page: str, folder: Path) -> list[list[str]]:
    """Write the files that a page shows into a folder; return the commands that it shows, in order.

    Raises:
        SystemExit: a command is of neither program, or the page shows none.
    """
    commands = []
    for block in BLOCK.finditer(page):
        named = NAMED.search(block["before"] or "")
        if named:
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["body"] + "\n", encoding="utf-8")
        elif block["language"] == "python":
            commands.append([sys.executable, "-c", block["body"]])
        elif not block["language"]:
            for line in filter(None, (shlex.split(line, comments=True) for line in block["body"].splitlines())):
                if line[0] not in PROGRAMS:
                    raise SystemExit(f"{shlex.join(line)!r} begins with none of {', '.join(PROGRAMS)}.")
                commands.append([*PROGRAMS[line[0]], *line[1:]])
    if not commands:
        raise SystemExit("The page shows no command.")
    return commands


if __name__ == "__main__":
    sys.exit(main())
