"""Fresh virtual environments that hold built plugins, as a user's does."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path


def make_fresh(folder: Path, sources: Sequence[Path]) -> Path:
    """Build the plugins in `sources` and install them into a new environment; return its Python.

    Heavy dependencies are shared from this environment by a path file.
    """
    copies = []
    for number, source in enumerate(sources):
        copies.append(str(folder / f"source-{number}"))
        shutil.copytree(source, copies[-1])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=300)
    python = folder / "venv" / "bin" / "python"
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    site = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    shared = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
    (site / "shared.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(shared)))
    if copies:
        install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*install, *copies], check=True, timeout=300)
    return python


def run_fresh(python: Path, *arguments: str, plugins: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the fresh environment's Python with only these plugins switched on."""
    env = {**os.environ, "VLGYM_PLUGINS": plugins, "OMP_NUM_THREADS": "1"}
    return subprocess.run([str(python), *arguments], capture_output=True, text=True, timeout=600, env=env, cwd=cwd)
