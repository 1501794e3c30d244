"""Build the football engine once, keep the wheel, install it: `python -m vlgym_football.build`.

The package index has only the engine's source for Linux. Its build fails without psutil in the build environment, and
it would install the unmaintained `gym`. So the source is compiled here in a throw-away virtual environment. Debug
symbols and the list of dependencies are taken out of the wheel (the engine itself needs none). The wheel is kept under
the user's cache folder. The name of the kept file holds engine version, Python and Boost, because the engine is bound
to all three.
"""

from __future__ import annotations

import argparse
import glob
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from vlgym.errors import MissingSystemPartError, UserError
from vlgym.files import find_cache, open_end, write_whole

ENGINE_VERSION = "2.10.2"
"""Version of the package `gfootball` that is built; states and measured numbers belong to it."""

LOCAL_LABEL = "vlgym2"
"""The wheel is `gfootball 2.10.2+vlgym2`: the released source optimised at link time, symbols and dependency list
removed."""

LINK_TIME_OPTIMISATION = "-flto=auto"
COMPILER_FLAGS = f"{LINK_TIME_OPTIMISATION} -fno-semantic-interposition"
"""A third more frames per second (its vectors and quaternions are small functions in separate files), the same
matches bit for bit."""

SOURCE_SHA256 = "1b0fdcfa78b7fadc3730585ee7f0f412ba825c27e422b2b85ea0cf7ba57800b6"
COMMAND = "python -m vlgym_football.build"
TOOLS = ("setuptools", "wheel", "psutil")

_PYTHON = f"{sys.version_info.major}{sys.version_info.minor}"
_LIBRARIES = "/usr/lib/*/lib{}.so"
_HEADERS = "/usr/include/{}"
SYSTEM_PARTS: tuple[tuple[str, str], ...] = (
    ("libgl1-mesa-dev", _HEADERS.format("GL/gl.h")),
    ("libegl-dev", _HEADERS.format("EGL/egl.h")),
    ("libboost-python-dev", _LIBRARIES.format(f"boost_python{_PYTHON}")),
    ("libboost-thread-dev", _LIBRARIES.format("boost_thread")),
    ("libboost-system-dev", _LIBRARIES.format("boost_system")),
    ("libboost-filesystem-dev", _LIBRARIES.format("boost_filesystem")),
    ("libsdl2-dev", _HEADERS.format("SDL2/SDL.h")),
    ("libsdl2-image-dev", _HEADERS.format("SDL2/SDL_image.h")),
    ("libsdl2-ttf-dev", _HEADERS.format("SDL2/SDL_ttf.h")),
    ("libsdl2-gfx-dev", _HEADERS.format("SDL2/SDL2_gfxPrimitives.h")),
)
"""Debian package and a file of it without which the engine does not compile."""


def find_engine() -> str | None:
    """Return the installed engine's version, or `None`. Imports nothing of it."""
    if importlib.util.find_spec("gfootball_engine") is None:
        return None
    try:
        return metadata.version("gfootball")
    except metadata.PackageNotFoundError:
        return None


def require_engine() -> None:
    """Check that the engine is installed, without importing it."""
    if find_engine() is None:
        raise MissingSystemPartError(
            f"The football engine (gfootball {ENGINE_VERSION}) is not installed in this Python. Build and install "
            f"it (about 8 CPU minutes, once; later calls reuse the kept wheel): {COMMAND}"
        )


def find_missing_packages() -> list[str]:
    """Return the Debian packages that building needs and that are absent here."""
    missing = [] if shutil.which("g++") else ["build-essential"]
    missing += [] if shutil.which("cmake") else ["cmake"]
    return missing + [package for package, pattern in SYSTEM_PARTS if not glob.glob(pattern)]


def kept_wheel() -> Path:
    """Return where the wheel for this Python, processor and Boost is kept (whether or not it is there)."""
    boost = sorted(glob.glob(f"/usr/lib/*/libboost_python{_PYTHON}.so.*"))
    release = boost[-1].rsplit(".so.", 1)[1] if boost else "none"
    key = f"{sys.implementation.cache_tag}-{platform.machine()}-boost{release}"
    tag = f"cp{_PYTHON}-cp{_PYTHON}-linux_{platform.machine()}"
    return find_cache("football") / key / f"gfootball-{ENGINE_VERSION}+{LOCAL_LABEL}-{tag}.whl"


def ensure_engine(*, rebuild: bool = False) -> str:
    """Install the engine where it is not, from the kept wheel or after building it. Return a line that says which."""
    if not rebuild and find_engine() == f"{ENGINE_VERSION}+{LOCAL_LABEL}" and imports():
        return f"football engine {ENGINE_VERSION}: installed"
    wheel = kept_wheel()
    built = rebuild or not wheel.is_file()
    if built:
        build_wheel(wheel)
    install_wheel(wheel)
    if not imports():
        raise UserError(
            f"The engine was installed from {wheel}, but cannot be imported. Build it again: {COMMAND} --rebuild"
        )
    return f"football engine {ENGINE_VERSION}: {'built and ' if built else ''}installed from {wheel}"


def imports() -> bool:
    done = subprocess.run(
        [sys.executable, "-c", "import gfootball_engine"], capture_output=True, timeout=120, check=False
    )
    return done.returncode == 0


def build_wheel(target: Path) -> None:
    """Compile the released source and keep the wheel at `target`."""
    missing = find_missing_packages()
    if missing:
        raise MissingSystemPartError(
            f"Building the football engine for Python {sys.version_info.major}.{sys.version_info.minor} needs "
            "Debian packages that are not here: "
            f"apt-get install -y --no-install-recommends {' '.join(missing)} (libboost-python-dev "
            "serves only the distribution's own Python version: 3.11 on Debian 12, 3.13 on Debian 13)"
        )
    log = target.with_suffix(".log")
    with tempfile.TemporaryDirectory(prefix="vlgym-football-") as name:
        work = Path(name)
        tools = work / "tools"
        _run([sys.executable, "-m", "venv", tools], log, "make a virtual environment for the build")
        # The engine's build script calls `python3` and `cmake` by name, so the tools must come first on PATH.
        path = f"{tools / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "VIRTUAL_ENV": str(tools), "PATH": path}
        added = {"CFLAGS": COMPILER_FLAGS, "CXXFLAGS": COMPILER_FLAGS, "LDFLAGS": LINK_TIME_OPTIMISATION}
        environment |= {name: f"{os.environ.get(name, '')} {flags}".strip() for name, flags in added.items()}
        pip = [tools / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        _run([*pip, "install", "--upgrade", *TOOLS], log, f"install {', '.join(TOOLS)}", environment)
        pinned = work / "source.txt"
        write_whole(pinned, f"gfootball=={ENGINE_VERSION} --hash=sha256:{SOURCE_SHA256}\n")
        compile_it = [
            *pip, "wheel", "--no-cache-dir", "--no-build-isolation", "--no-deps", "--no-binary", "gfootball",
            "--require-hashes", "--wheel-dir", work, "-r", pinned,
        ]  # fmt: skip
        print(f"compiling the football engine (about 8 CPU minutes, once; output in {log}) ...", end=" ", flush=True)
        began = time.monotonic()
        _run(compile_it, log, "compile the engine", environment)
        print(f"done in {time.monotonic() - began:.0f} s", flush=True)
        slim = _slim_wheel(next(work.glob("gfootball-*.whl")), work, tools / "bin" / "python", log)
        write_whole(target, slim.read_bytes())


def install_wheel(wheel: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-deps", "--force-reinstall", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        detail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise UserError(f"pip could not install {wheel}:\n{detail}\nInstall that file by hand, without dependencies.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: exit status 0 when the engine is ready, 1 with an explanation when not."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Build (once) and install the football engine.")
    parser.add_argument("--rebuild", action="store_true", help="build again even if a wheel is kept")
    parser.add_argument("--apt", action="store_true", help="only print the missing Debian packages")
    options = parser.parse_args(arguments)
    if options.apt:
        print(" ".join(find_missing_packages()))
        return 0
    try:
        print(ensure_engine(rebuild=options.rebuild))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _slim_wheel(wheel: Path, work: Path, python: Path, log: Path) -> Path:
    """Strip symbols (62 MB to 3 MB), drop the dependency list, mark the version; return the new wheel."""
    _run([python, "-m", "wheel", "unpack", "--dest", work / "open", wheel], log, "unpack the wheel")
    root = work / "open" / f"gfootball-{ENGINE_VERSION}"
    for library in root.rglob("*.so"):
        _run(["strip", "--strip-unneeded", library], log, f"strip {library.name}")
    card = root / f"gfootball-{ENGINE_VERSION}.dist-info"
    lines = (card / "METADATA").read_text(encoding="utf-8").splitlines(keepends=True)
    others = [line for line in lines if not line.startswith("Requires-Dist:")]
    marked = [f"Version: {ENGINE_VERSION}+{LOCAL_LABEL}\n" if line.startswith("Version:") else line for line in others]
    write_whole(card / "METADATA", "".join(marked))
    card.rename(root / f"gfootball-{ENGINE_VERSION}+{LOCAL_LABEL}.dist-info")
    (work / "slim").mkdir()
    _run([python, "-m", "wheel", "pack", "--dest-dir", work / "slim", root], log, "pack the wheel")
    return next((work / "slim").glob("*.whl"))


def _run(command: Sequence[object], log: Path, purpose: str, environment: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_end(log) as output:
        output.write(f"\n$ {' '.join(words)}\n".encode())
        status = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    if status:
        last = "\n".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        raise UserError(
            f"Could not {purpose} (exit status {status}); the output is in {log}, its last lines:\n{last}\n"
            f"Fix that and run: {COMMAND}"
        )


if __name__ == "__main__":
    sys.exit(main())
