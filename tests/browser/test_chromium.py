"""The shared browser: its start, its limits, its end, and the pool that lends it.

What it shows and what it cannot reach is tested by the plugins that use it.
"""

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import is_running, wait_until

from vlgym.browser import chromium
from vlgym.browser.chromium import BrowserError, BrowserPool, Chromium, Limits, ProcessGuard
from vlgym.browser.room import Room
from vlgym.errors import MissingSystemPartError, NotInstalledError

needs_chromium = pytest.mark.skipif(
    shutil.which("chromedriver") is None or shutil.which("chromium") is None,
    reason="chromium or chromium-driver is not installed",
)
GROW = "import time; time.sleep(0.5); grown = bytes([1]) * 200_000_000; time.sleep(60)"


def wait_for_ends(processes: list[int]) -> None:
    wait_until(lambda: not any(map(is_running, processes)))


@pytest.fixture
def family() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a parent whose child runs Python code; it is running when this returns."""
    started = []

    parent = (
        "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
        "print(child.pid, flush=True)\nchild.wait()"
    )

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", parent, code], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline().strip().isdigit()
        return process

    yield start
    for process in started:
        chromium.kill_tree(process.pid)
        process.wait()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that every user may use: where we are root, the browser is somebody else."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def fake_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a script in the place of chromedriver, and one that is no browser in that of Chromium."""

    def write(script: str, chromium: str = "") -> None:
        for name, lines in (("chromedriver", script), ("chromium", "echo no usable sandbox >&2; exit 1")):
            (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("VLGYM_CHROMEDRIVER", str(tmp_path / "chromedriver"))
        monkeypatch.setenv("VLGYM_CHROMIUM", chromium or str(tmp_path / "chromium"))
        if not chromium:  # a real one opens a socket there, whose name has 107 characters at most
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    return write


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingSystemPartError, match="apt-get install -y chromium chromium-driver"):
        Chromium("test")
    monkeypatch.setenv("VLGYM_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(MissingSystemPartError, match="none of /nowhere/chromium"):
        Chromium("test")


@needs_chromium
def test_a_chromium_that_ends_at_its_start_is_given_up_at_once(fake_driver, monkeypatch, tmp_path):
    fake_driver("")
    monkeypatch.delenv("VLGYM_CHROMEDRIVER")
    with pytest.raises(MissingSystemPartError, match=r"ended at once, .*no usable sandbox"):
        Chromium("test")
    assert not list(tmp_path.glob("vlgym-chromium-*"))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.delitem(sys.modules, "vlgym.browser.chromium")
    with pytest.raises(NotInstalledError, match=r"psutil.*pip install selenium psutil"):
        importlib.import_module("vlgym.browser.chromium")


@needs_chromium
def test_a_lost_driver_is_started_again(fake_driver: Callable[..., None], tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    real, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    fake_driver(f'if [ -e {tried} ]; then exec {real} "$@"; fi; touch {tried}; exit 1', str(chromium))
    browser = Chromium("test")
    try:
        assert tried.exists()
        assert browser.alive
        assert browser.cdp("Runtime.evaluate", expression="1 + 1")["result"]["value"] == 2
    finally:
        browser.close()


def test_a_driver_that_ends_is_given_up(fake_driver: Callable[..., None], tmp_path: Path) -> None:
    fake_driver(f"echo x >> {tmp_path}/tries; echo no such library; exit 127")
    with pytest.raises(MissingSystemPartError, match=r"3 times .status 127, it said 'no such library'"):
        Chromium("test")
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert not list(tmp_path.glob("vlgym-chromium-*"))


def test_a_silent_driver_is_killed(fake_driver: Callable[..., None], tmp_path: Path) -> None:
    fake_driver(f"echo $$ >> {tmp_path}/tries; echo started successfully on port 9; exec sleep 600")
    with pytest.raises(MissingSystemPartError, match=r"3 times .*refused.*VLGYM_TEST_SANDBOX=off"):
        Chromium("test")
    tries = (tmp_path / "tries").read_text().split()
    assert len(tries) == 3
    wait_for_ends([int(process) for process in tries])
    assert not list(tmp_path.glob("vlgym-chromium-*"))


@needs_chromium
def test_a_killed_process_leaves_one_folder_that_is_swept(tmp_path: Path) -> None:
    start = (
        "import time; from vlgym.browser.chromium import Chromium; browser = Chromium('one')\n"
        "print(browser.profile, *browser.processes(), flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", start]
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "env": environment}
    both = killed, living = [subprocess.Popen(command, **piped) for _ in range(2)]
    try:
        (left, *family), (used, *_) = (each.stdout.readline().split() for each in both if each.stdout)
        assert len(family) > 2
        assert list(Path(left).glob("org.chromium.*"))  # Chromium's own temporary folder
        killed.kill()
        killed.wait()
        wait_for_ends(list(map(int, family)))
        assert {str(path) for path in tmp_path.iterdir()} == {left, used}
        other = "from vlgym.browser.chromium import Chromium; Chromium('other').close()"
        subprocess.run([sys.executable, "-c", other], check=True, env=environment, timeout=60)
        assert [str(path) for path in tmp_path.iterdir()] == [used]
        assert living.poll() is None
    finally:
        for process in both:
            chromium.kill_tree(process.pid)
            process.wait()


@pytest.fixture(scope="module")
def running() -> Iterator[Chromium]:
    """A browser for looking at."""
    browser = Chromium("test", proxy=0)
    yield browser
    browser.close()


@needs_chromium
def test_nobody_else_on_the_machine_can_knock_at_the_driver(running: Chromium) -> None:
    (port,) = re.findall(r"successfully on port (\d+)", (running.profile / "driver.log").read_text())
    assert running.room.private
    running.room.connect(int(port)).close()  # we can
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5)


@needs_chromium
def test_no_process_of_the_browser_listens_where_others_can_connect(running: Chromium) -> None:
    ours = os.stat("/proc/self/ns/net").st_ino
    networks = set()
    for process in running.processes():
        with suppress(PermissionError):  # those in Chromium's sandbox hide it, and have less still
            networks.add(os.stat(f"/proc/{process}/ns/net").st_ino)
    assert networks
    assert ours not in networks


@needs_chromium
def test_it_runs_as_a_user_that_owns_nothing_in_a_sandbox(running: Chromium) -> None:
    for process in map(psutil.Process, running.processes()):
        assert process.uids().real != 0
        assert set(process.uids()) == set(process.uids()[:1])
        assert "--no-sandbox" not in process.cmdline()


@needs_chromium
def test_only_the_browser_can_connect_to_its_proxy(running: Chromium) -> None:
    (listener,) = running.listeners
    port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with running.room.connect(port) as inside:
        inside.send(b"knock")
        data = b""
        while data != b"knock":  # Chromium itself may have asked for something before
            with listener.accept()[0] as outside:
                data = outside.recv(5)


def test_a_driver_without_a_private_network_is_refused(fake_driver, monkeypatch):
    fake_driver("exit 1")
    real = Room.__init__

    def shared(room: Room, *arguments: object) -> None:
        real(room, *arguments)  # type: ignore[arg-type]
        room.private = False

    monkeypatch.setattr(Room, "__init__", shared)
    monkeypatch.setattr(chromium, "choose_user", lambda: None)
    with pytest.raises(MissingSystemPartError, match=r"every user of this machine can command it.*VLGYM_TEST_SANDBOX"):
        Chromium("test")
    monkeypatch.setenv("VLGYM_TEST_SANDBOX", "shared")
    with pytest.raises(MissingSystemPartError, match="does not start"):
        Chromium("test")


@needs_chromium
def test_closing_ends_all_processes_and_removes_the_profile(running: Chromium) -> None:
    family = running.processes()
    assert running.profile.is_dir()
    assert len(family) > 2
    running.close()
    assert not running.alive
    assert not running.profile.exists()
    wait_for_ends(family)
    assert running.processes() == []


@pytest.mark.parametrize(
    ("code", "limits", "reason"),
    [
        (GROW, Limits(wall_s=50, cpu_s=50, memory_mb=100), "memory"),
        ("while True: pass", Limits(wall_s=50, cpu_s=0.5), "timeout"),
        ("import time; time.sleep(60)", Limits(wall_s=0.5, cpu_s=50), "timeout"),
    ],
)
def test_a_child_that_passes_a_limit_ends_the_family(family, code, limits, reason):
    process = family(code)
    members = [member.pid for member in chromium.list_tree(process.pid)]
    with ProcessGuard(process.pid, limits) as guard:
        process.wait(timeout=30)
    assert guard.reason == reason
    wait_for_ends(members)


class Pretended(Chromium):
    """A browser without processes."""

    def __init__(self) -> None:
        self.living, self.closed = True, False

    @property
    def alive(self) -> bool:
        return self.living

    def kill(self) -> None:
        self.living = False

    def close(self) -> None:
        self.living, self.closed = False, True


def test_the_pool_starts_nothing_before_it_is_asked_lends_again_and_replaces_the_dead() -> None:
    pool = BrowserPool(Pretended)
    assert (pool.started, pool.idle()) == (0, [])
    with pool.borrow() as first, pool.borrow() as second:
        assert first is not second
        assert pool.idle() == []
    with pool.borrow() as again:
        assert again in (first, second)
    assert (pool.started, pool.lost) == (2, 0)
    first.living = second.living = False
    with pool.borrow() as third:
        assert third.alive
    assert (first.closed, second.closed) == (True, True)
    assert (pool.started, pool.lost) == (3, 2)
    pool.close()
    assert third.closed
    assert pool.idle() == []


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(chromium.WebDriverException("tab crashed"), BrowserError), (ZeroDivisionError(), ZeroDivisionError)],
)
def test_an_exception_costs_the_browser(raised: Exception, seen: type[Exception]) -> None:
    pool = BrowserPool(Pretended)
    with pytest.raises(seen), pool.borrow() as browser:
        raise raised
    assert browser.closed
    assert (pool.lost, pool.idle()) == (1, [])


def test_a_forked_child_begins_with_no_browser_and_leaves_its_parents_alone() -> None:
    pool = BrowserPool(Pretended)
    with pool.borrow() as browser:
        pass
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        pool.close()
        inherited = pool.idle()
        with pool.borrow() as own:
            os.write(writing, f"{inherited} {own is browser} {browser.closed} {pool.started}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"[] False False 1"
    os.close(reading)
    os.close(writing)
    assert pool.idle() == [browser]
