"""A room for a browser's programs: a network that nobody else has, and a user that owns nothing.

A driver of browsers listens on a port without authentication: a client that reaches it can start any
program. In the room it listens where only we can connect. `vlgym.browser.keeper` is the program
inside; this module is our side of it. Linux only.
"""

import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

ROOM_PREFIX = "vlgym-chromium-"  # prefix of the folders' names
_KEEPER = Path(__file__).parent / "keeper.py"
_ANSWERS_S = 20.0
_LONGEST_ANSWER = 1 << 16
_USERS = range(61184, 65520)  # nobody's: systemd gives them to services for as long as they run


class Room:
    """A running keeper, which writes to `log`; an `OSError` where it does not run.

    The programs may write into `folder`, of `make_room_folder`, whose owner is `user` (`None`: this
    process's). `ports` are those on 127.0.0.1 where we listen inside; 0 stands for any free one.
    """

    def __init__(self, folder: Path, user: int | None, ports: Sequence[int], log: IO[bytes]) -> None:
        self._lock = Lock()
        self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_ANSWERS_S)

        # A new process group keeps Ctrl-C in the terminal away from it; a session would be slower.
        number = inside.fileno()
        command = [sys.executable, "-I", "-S", str(_KEEPER), str(number), str(os.getpid())]
        with inside:
            self.process = subprocess.Popen(  # the ancestor of everything in the room
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                cwd=folder, pass_fds=[number],
            )  # fmt: skip

        # The keeper answers with its facts and the listening sockets, in the order of `ports`;
        # without a private network only those whose port was free.
        self.listeners: list[socket.socket] = []
        try:
            self._control.send(json.dumps({"user": user, "ports": list(ports)}).encode())
            answer, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_ANSWER, 16)
            self.listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
            facts: dict[str, Any] = json.loads(answer or b"{}")
        except (OSError, ValueError) as error:
            self.close()
            raise OSError(f"the keeper of the browser's network does not answer: {error}") from error
        if not facts:
            self.close()
            raise OSError("the keeper of the browser's network ended at once")
        self.private = bool(facts["private"])  # if not, anybody on this machine can reach the driver
        self.namespaces = bool(facts["namespaces"])  # Chromium can build its own sandbox here
        self.user = int(facts["user"])

    def launch(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the program of the room; `process` ends with its exit status."""
        order = {"command": list(command), "environment": dict(environment)}
        with suppress(BrokenPipeError, ConnectionError):  # a keeper that ended shows as an ended process
            self._control.send(json.dumps(order).encode())

    def connect(self, port: int, timeout_s: float | None = None) -> socket.socket:
        """Return a connection to a port of the room's 127.0.0.1, or raise an `OSError`."""
        try:
            with self._lock:
                self._control.send(str(port).encode())
                answer, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_ANSWER, 4)
        except OSError as error:  # urllib3 takes a BrokenPipeError for an answer that came early
            raise ConnectionRefusedError(f"the browser's room is gone: {error}") from error
        if not descriptors:
            reason = answer.decode(errors="replace") or "the browser's room is gone"
            raise ConnectionRefusedError(f"no connection to the browser's port {port}: {reason}")

        # A command is two packets: the second would wait 40 ms for the first one's receipt.
        connection = socket.socket(fileno=descriptors[0])
        connection.settimeout(timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        """End everything in the room, and what listens there."""
        self._control.close()
        for listener in self.listeners:
            listener.close()
        self.process.kill()
        self.process.wait()


def choose_user() -> int | None:
    """Return a user with no account and no files, where we may become one; else `None`."""
    if os.geteuid() != 0:
        return None
    while True:
        user = _USERS[secrets.randbelow(len(_USERS))]
        try:
            pwd.getpwuid(user)
        except KeyError:
            return user


def make_room_folder(user: int | None) -> tuple[Path, int | None]:
    """Make a folder where the programs may write; return it and its owner, `None` for our user.

    The owner is `user` where root may give the folder away, and all may enter the folders above.
    """
    sweep_folders()
    name = f"{ROOM_PREFIX}{os.getpid()}-"
    for place in _list_places() if user is not None else ():
        if all(parent.stat().st_mode & 0o001 for parent in (place, *place.parents)):
            folder = Path(tempfile.mkdtemp(prefix=name, dir=place))
            try:
                os.chown(folder, user or 0, user or 0)
                return folder, user
            except OSError:
                folder.rmdir()
                break
    return Path(tempfile.mkdtemp(prefix=name)), None


def sweep_folders() -> None:
    """Remove the folders of processes that were killed before they could."""
    for place in _list_places():
        for folder in place.glob(f"{ROOM_PREFIX}*-*"):
            owner = folder.name[len(ROOM_PREFIX) :].split("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                shutil.rmtree(folder, ignore_errors=True)


def _list_places() -> list[Path]:
    places = (Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp"))
    return [place for place in dict.fromkeys(places) if place.is_dir()]
