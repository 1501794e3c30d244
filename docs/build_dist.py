"""Build sdists and wheels of the core and of every plugin: `python docs/build_dist.py dist`.

Each wheel is built from its sdist, so that what the sdist lacks is noticed here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Build all, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files are written")
    parser.add_argument("--no-isolation", action="store_true", help="build with the setuptools of this environment")
    asked = parser.parse_args()
    sources = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
    for number, source in enumerate(sources, 1):
        print(f"{number} of {len(sources)}: {source.name}", file=sys.stderr, flush=True)
        call = [sys.executable, "-m", "build", "--outdir", str(asked.folder.resolve())]
        done = subprocess.run(
            [*call, *(["--no-isolation"] if asked.no_isolation else []), str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{source} cannot be built:\n{(done.stdout + done.stderr)[-2000:]}")
    print(f"{asked.folder}: {len(list(asked.folder.iterdir()))} files")


if __name__ == "__main__":
    main()
