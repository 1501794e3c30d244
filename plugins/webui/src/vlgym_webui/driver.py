"""The driver's process: chromedriver on a free port, ended by the kernel when this process dies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from vlgym.errors import MissingSystemPartError

from .guard import kill_tree

APT = "apt-get install chromium chromium-driver fonts-liberation fonts-dejavu-core"

ATTEMPTS = 3
"""Drivers started before one is given up: the port that one chose may be taken before it listens there."""


def start_driver(profile: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start chromedriver; return its process and its address.

    Args:
        profile: folder that it may write to, its home.

    Raises:
        MissingSystemPartError: it is not installed, or ends or hangs each time.
    """
    program = shutil.which("chromedriver")
    if program is None:
        raise MissingSystemPartError(f"chromedriver is not installed; WebUI needs Chromium and its driver: {APT}")
    command = [program, "--port=0"]
    if shutil.which("setpriv"):  # so that no browser outlives a process that was killed
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": profile,
        "TMPDIR": profile,
        "TZ": "UTC",
        "LANG": "C.UTF-8",
    }
    log = Path(profile) / "driver.log"
    for _ in range(ATTEMPTS):
        with log.open("w") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        for _ in range(400):
            found = re.search(r"successfully on port (\d+)", log.read_text(errors="replace"))
            if found:
                return process, f"http://127.0.0.1:{found[1]}"
            if process.poll() is not None:
                break
            time.sleep(0.05)
        kill_tree(process.pid)
        process.wait()
    said = " ".join(log.read_text(errors="replace").split())[-200:]
    raise MissingSystemPartError(
        f"chromedriver ended or hung before it listened, {ATTEMPTS} times (status {process.returncode}, "
        f"it said {said!r}); reinstall it: {APT}"
    )
