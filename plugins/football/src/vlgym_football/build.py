"""Build the football engine once, keep the wheel, install it: `python -m vlgym_football.build`.

The package index has only the engine's source for Linux, whose build fails without psutil and which
would install the unmaintained `gym`. So it is compiled in a throw-away virtual environment. The
wheel loses debug symbols and dependencies (the engine needs none), and is kept in the user's cache
folder, by engine version, Python and Boost.
"""

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

ENGINE_VERSION = "2.10.2"  # of the package `gfootball`; states and measured numbers belong to it
LOCAL_LABEL = "vlgym2"  # the wheel is `gfootball 2.10.2+vlgym2`
BUILD = f"{ENGINE_VERSION}+{LOCAL_LABEL}"

# A third more frames per second (vectors are small functions in separate files), the same matches
# bit for bit.
LINK_TIME_OPTIMISATION = "-flto=auto"
COMPILER_FLAGS = f"{LINK_TIME_OPTIMISATION} -fno-semantic-interposition"
SOURCE_SHA256 = "1b0fdcfa78b7fadc3730585ee7f0f412ba825c27e422b2b85ea0cf7ba57800b6"
COMMAND = "python -m vlgym_football.build"
TOOLS = ("setuptools", "wheel", "psutil")

_PYTHON = f"{sys.version_info.major}{sys.version_info.minor}"
# Debian package and a file of it without which the engine does not compile.
SYSTEM_PARTS: tuple[tuple[str, str], ...] = (
    ("libgl1-mesa-dev", "/usr/include/GL/gl.h"),
    ("libegl-dev", "/usr/include/EGL/egl.h"),
    ("libboost-python-dev", f"/usr/lib/*/libboost_python{_PYTHON}.so"),
    ("libboost-thread-dev", "/usr/lib/*/libboost_thread.so"),
    ("libboost-system-dev", "/usr/lib/*/libboost_system.so"),
    ("libboost-filesystem-dev", "/usr/lib/*/libboost_filesystem.so"),
    ("libsdl2-dev", "/usr/include/SDL2/SDL.h"),
    ("libsdl2-image-dev", "/usr/include/SDL2/SDL_image.h"),
    ("libsdl2-ttf-dev", "/usr/include/SDL2/SDL_ttf.h"),
    ("libsdl2-gfx-dev", "/usr/include/SDL2/SDL2_gfxPrimitives.h"),
)


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
            f"The football engine (gfootball {ENGINE_VERSION}) is not installed in this Python. Build and "
            f"install it (about 8 CPU minutes, once; later calls reuse the kept wheel): {COMMAND}"
        )


def find_missing_packages() -> list[str]:
    """Return the Debian packages that building needs and that are absent here."""
    programs = (("build-essential", "g++"), ("cmake", "cmake"))
    missing = [package for package, program in programs if not shutil.which(program)]
    return missing + [package for package, pattern in SYSTEM_PARTS if not glob.glob(pattern)]


def kept_wheel() -> Path:
    """Return the place of the wheel for this Python, processor and Boost."""
    boost = sorted(glob.glob(f"/usr/lib/*/libboost_python{_PYTHON}.so.*"))
    release = boost[-1].rsplit(".so.", 1)[1] if boost else "none"
    key = f"{sys.implementation.cache_tag}-{platform.machine()}-boost{release}"
    tag = f"cp{_PYTHON}-cp{_PYTHON}-linux_{platform.machine()}"
    return find_cache("football") / key / f"gfootball-{BUILD}-{tag}.whl"


def ensure_engine(*, rebuild: bool = False) -> str:
    """Install the engine if needed, from the kept wheel or a new one; return a report."""
    if not rebuild and find_engine() == BUILD and imports():
        return f"football engine {ENGINE_VERSION}: installed"
    wheel = kept_wheel()
    built = rebuild or not wheel.is_file()
    if built:
        build_wheel(wheel)
    install_wheel(wheel)
    if not imports():
        problem = f"The engine was installed from {wheel}, but cannot be imported."
        raise UserError(f"{problem} Build it again: {COMMAND} --rebuild")
    return f"football engine {ENGINE_VERSION}: {'built and ' if built else ''}installed from {wheel}"


def imports() -> bool:
    command = [sys.executable, "-c", "import gfootball_engine"]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0


def build_wheel(target: Path) -> None:
    """Compile the released source and keep the wheel at `target`."""
    missing = find_missing_packages()
    if missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingSystemPartError(
            f"Building the football engine for Python {version} needs Debian packages that are not here: "
            f"apt-get install -y --no-install-recommends {' '.join(missing)} (libboost-python-dev serves "
            "only the distribution's own Python version: 3.11 on Debian 12, 3.13 on Debian 13)"
        )
    log = target.with_suffix(".log")
    with tempfile.TemporaryDirectory(prefix="vlgym-football-") as name:
        work = Path(name)
        tools = work / "tools"
        _run([sys.executable, "-m", "venv", tools], log, "make a virtual environment for the build")

        # The engine's build script calls `python3` and `cmake` by name, so the tools must come
        # first on PATH.
        path = f"{tools / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "VIRTUAL_ENV": str(tools), "PATH": path}
        added = {"CFLAGS": COMPILER_FLAGS, "CXXFLAGS": COMPILER_FLAGS, "LDFLAGS": LINK_TIME_OPTIMISATION}
        environment |= {key: f"{os.environ.get(key, '')} {flags}".strip() for key, flags in added.items()}
        pip = [tools / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        _run([*pip, "install", "--upgrade", *TOOLS], log, f"install {', '.join(TOOLS)}", environment)

        # Exactly the pinned source: no other file of that version is compiled.
        pinned = work / "source.txt"
        write_whole(pinned, f"gfootball=={ENGINE_VERSION} --hash=sha256:{SOURCE_SHA256}\n")
        compile_it = [
            *pip, "wheel", "--no-cache-dir", "--no-build-isolation", "--no-deps", "--no-binary", "gfootball",
            "--require-hashes", "--wheel-dir", work, "-r", pinned,
        ]  # fmt: skip
        note = f"compiling the football engine (about 8 CPU minutes, once; output in {log}) ..."
        print(note, end=" ", flush=True)
        began = time.monotonic()
        _run(compile_it, log, "compile the engine", environment)
        print(f"done in {time.monotonic() - began:.0f} s", flush=True)
        slim = _slim_wheel(next(work.glob("gfootball-*.whl")), work, tools / "bin" / "python", log)
        write_whole(target, slim.read_bytes())


def install_wheel(wheel: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-deps", "--force-reinstall", wheel]
    _run(command, wheel.with_suffix(".log"), f"install {wheel}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: exit status 0 when the engine is ready, 1 with an explanation when not."""
    summary = "Build (once) and install the football engine."
    parser = argparse.ArgumentParser(prog=COMMAND, description=summary)
    parser.add_argument("--rebuild", action="store_true", help="build again even if a wheel is kept")
    parser.add_argument("--apt", action="store_true", help="only print the missing Debian packages")
    options = parser.parse_args(arguments)

    # An installation script of the system asks for the packages alone.
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
    """Strip symbols (62 MB to 3 MB) and dependencies, mark the version; return the new wheel."""
    _run([python, "-m", "wheel", "unpack", "--dest", work / "open", wheel], log, "unpack the wheel")
    root = work / "open" / f"gfootball-{ENGINE_VERSION}"
    for library in root.rglob("*.so"):
        _run(["strip", "--strip-unneeded", library], log, f"strip {library.name}")

    # The mark tells this build from a wheel of anybody else.
    card = root / f"gfootball-{ENGINE_VERSION}.dist-info"
    lines = (card / "METADATA").read_text(encoding="utf-8").splitlines(keepends=True)
    others = [line for line in lines if not line.startswith("Requires-Dist:")]
    marked = [f"Version: {BUILD}\n" if line.startswith("Version:") else line for line in others]
    write_whole(card / "METADATA", "".join(marked))
    card.rename(root / f"gfootball-{BUILD}.dist-info")
    (work / "slim").mkdir()
    _run([python, "-m", "wheel", "pack", "--dest-dir", work / "slim", root], log, "pack the wheel")
    return next((work / "slim").glob("*.whl"))


def _run(command: Sequence[object], log: Path, purpose: str, environment: dict[str, str] | None = None) -> None:
    words = list(map(str, command))
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_end(log) as output:
        output.write(f"\n$ {' '.join(words)}\n".encode())
        done = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False)
    if done.returncode:
        last = "\n".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        raise UserError(
            f"Could not {purpose} (exit status {done.returncode}); the output is in {log}, its last lines:\n"
            f"{last}\nFix that and run: {COMMAND}"
        )


if __name__ == "__main__":
    sys.exit(main())
