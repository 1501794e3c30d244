"""A contained headless Chromium for web pages: its start, supervision, lending and end.

    class Camera(Chromium): ...
    POOL = BrowserPool(lambda: Camera("mine", site=8000))
    with POOL.borrow() as camera:
        serve(camera.listeners[0])  # its own network: nothing else is there
        camera.driver.get("http://127.0.0.1:8000/")
        camera.cdp("Page.captureScreenshot")

It reaches only the ports that its maker names, has a profile that is thrown away, and ends with its
process. `BrowserPool.borrow` alone lends browsers, each for a piece of work, and replaces lost ones.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..errors import MissingSystemPartError, NotInstalledError, VlgymError
from ..files import discard, open_end
from .room import Room, choose_user, make_room_folder

try:
    import psutil
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
    from selenium.webdriver.common.proxy import Proxy, ProxyType
    from selenium.webdriver.remote.client_config import ClientConfig
    from urllib3 import PoolManager
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.exceptions import HTTPError
    from urllib3.util import parse_url
    from websocket import WebSocketException, create_connection

except ImportError as error:
    fix = "pip install selenium psutil"
    raise NotInstalledError(f"vlgym.browser needs packages ({error}): {fix}") from error

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

DRIVER_ERRORS = (WebDriverException, WebSocketException, HTTPError, OSError)
"""Errors of Selenium when the browser or its driver fails, hangs or is gone."""

ATTEMPTS = 3  # starts before a browser is given up: its driver's port may be taken

PROGRAMS = {
    "VLGYM_CHROMIUM": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "VLGYM_CHROMEDRIVER": ("chromedriver",),
}
"""Variable that names a program -> names looked for on the search path where it is not set."""

_LISTENS_S, _STARTS_S, _WATCH_S = 20.0, 120, 0.1
_SERVICES = ("--utility-sub-type=network.", "--utility-sub-type=storage.")
_NOWHERE = "127.0.0.1:9"
_SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",  # no debugging port; and Chromium ends when its driver does
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad", "--disable-extensions",
    "--disable-default-apps", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-domain-reliability", "--disable-client-side-phishing-detection",
    "--no-first-run", "--no-default-browser-check", "--mute-audio",
    # The same picture everywhere.
    "--hide-scrollbars", "--force-device-scale-factor=1", "--force-color-profile=srgb",
    "--font-render-hinting=none", "--disable-lcd-text", "--lang=en-US",
    # A separate list: Chromium reads the last such switch only.
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,"
    "NetworkTimeServiceQuerying,InterestFeedContentSuggestions,AutofillServerCommunication,"
    "CertificateTransparencyComponentUpdater,BackForwardCache,PaintHolding,"
    "SpareRendererForSitePerProcess,"
    "DeferRendererTasksAfterInput,"  # timers would wait after a click: for a frame, or 50 ms
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,HttpsFirstModeIncognito,HttpsFirstModeV2",
)  # fmt: skip


class BrowserError(VlgymError):
    """The browser failed or was lost. The message holds the reason."""


class Chromium:
    """A running Chromium behind its driver.

    Both run in a `Room`: nobody else on the machine can command the driver, and neither is root.

    Args:
        name: of the plugin. `VLGYM_<NAME>_SANDBOX=off` switches Chromium's own sandbox off, and
            does without a private network where there can be none; `shared` only the latter.
        site: port of the only server that it asks directly; `None`: no server.
        proxy: port of the proxy for all else, 0 for any free one; by default there is none.
        answer_s: longest time in seconds that an answer may take, once it runs.

    Attributes:
        process: the room's process, the ancestor of all others.
        profile: folder of all that it writes.
        owner: id of the process that started it.
        listeners: sockets on the ports of site and proxy, where only this browser can connect.
        tabs: with `fresh_tabs`, opens tabs that share nothing with others.

    Raises:
        MissingSystemPartError: Chromium or its driver is missing or does not start, or others could command it.
    """

    apt: ClassVar[str] = "apt-get install -y chromium chromium-driver fonts-dejavu-core"  # on Debian

    def __init__(
        self,
        name: str,
        *,
        site: int | None = None,
        proxy: int | None = None,
        switches: Sequence[str] = (),
        capabilities: Mapping[str, Any] | None = None,
        fresh_tabs: bool = False,
        answer_s: int = _STARTS_S,
    ) -> None:
        chromium, chromedriver = (self._find_program(variable) for variable in PROGRAMS)
        self.owner = os.getpid()
        self.profile, user = make_room_folder(choose_user())
        self._sandbox = f"VLGYM_{name.upper()}_SANDBOX"

        # Several starts: the port that a driver chose may be taken before it listens.
        wanted = {**(capabilities or {}), **({"webSocketUrl": True} if fresh_tabs else {})}
        ports = [port for port in (site, proxy) if port is not None]
        reason, path = "", self.profile / "driver.log"
        for attempt in range(ATTEMPTS):
            discard(path)
            with open_end(path) as log:
                try:
                    self.room = Room(self.profile, user, ports, log)
                except OSError as error:
                    reason = f"{error}, it said {self._log()[-200:]!r}"
                    continue
            self.process, self.listeners = self.room.process, self.room.listeners
            self._check_room(user)
            options = self._write_options(chromium, site, proxy, switches, wanted)
            options.add_argument(f"--user-data-dir={self.profile / str(attempt)}")
            if not (reason := self._start(chromedriver, options, logs=attempt > 0)):
                self._config.timeout = answer_s
                self._staff = list(filter(_serves_all, list_tree(self.process.pid)[1:]))
                return
            self.kill()

        # Only the user can install another version.
        self.close()
        ran = f"Both ran as user {user}, who must be able to read and run them. " if user else ""
        raise MissingSystemPartError(
            f"Chromium does not start: it or its driver ended, hung or failed {ATTEMPTS} times "
            f"({reason}). {chromium} and {chromedriver} must be of one version. {ran}"
            f"Install it again with `{self.apt}`. In a container without user namespaces also set "
            f"{self._sandbox}=off (the container is the sandbox then)."
        )

    def _find_program(self, variable: str) -> str:
        named = os.environ.get(variable)
        wanted = (named,) if named else PROGRAMS[variable]
        path = next((path for name in wanted if (path := shutil.which(name))), None)
        if path is None:
            raise MissingSystemPartError(
                f"Chromium and its driver are needed, but there is none of {', '.join(wanted)}. "
                f"Install them with `{self.apt}`, or set {variable} to the program's path."
            )
        return path

    @property
    def alive(self) -> bool:
        """True if the driver runs. A browser that died or hangs shows at the next request."""
        return self.process.poll() is None

    @property
    def intact(self) -> bool:
        """True if none of the processes that all pages share has ended: a page may lack its part."""
        return self.alive and all(map(_is_running, self._staff))

    def cdp(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Give a command of the Chrome DevTools Protocol to the open tab; return the answer."""
        order = {"cmd": command, "params": arguments}
        return self.driver.execute("executeCdpCommand", order)["value"]

    def processes(self) -> list[int]:
        """Return the ids of the room's process, the driver and everything that it started."""
        return [member.pid for member in list_tree(self.process.pid)]

    def kill(self) -> None:
        """End all processes at once; a hanging browser would not listen to anything gentler."""
        kill_tree(self.process.pid)
        self.room.close()

    def close(self) -> None:
        """End the browser and remove its profile; a forked process leaves its parent's alone."""
        if os.getpid() == self.owner:
            if hasattr(self, "room"):
                self.kill()
            shutil.rmtree(self.profile, ignore_errors=True)

    def _check_room(self, user: int | None) -> None:
        """Refuse a driver that anybody here could command, unless allowed or run as nobody."""
        allowed = os.environ.get(self._sandbox) in ("off", "shared")
        if self.room.private or user is not None or allowed:
            return
        self.close()
        raise MissingSystemPartError(
            "Chromium's driver would listen where every user of this machine can command it: this "
            "system gives programs no private network (no user namespaces). "
            f"Set {self._sandbox}=shared where nobody else has an account, {self._sandbox}=off in a "
            "container; or have an administrator allow user namespaces."
        )

    def _write_options(
        self, chromium: str, site: int | None, proxy: int | None, switches: Sequence[str], wanted: Mapping[str, Any]
    ) -> Options:
        options = Options()
        options.binary_location = chromium
        for key, value in wanted.items():
            options.set_capability(key, value)

        # `<-loopback>` takes away Chromium's own rule that this machine is never asked through a proxy.
        bypass = "<-loopback>" if site is None else f"<-loopback>;127.0.0.1:{site}"
        way_out = _NOWHERE if proxy is None else f"127.0.0.1:{self.listeners[-1].getsockname()[1]}"
        ways = f"--proxy-server={way_out}", f"--proxy-bypass-list={bypass}"
        for switch in (*_SWITCHES, *switches, *ways):
            options.add_argument(switch)

        # Its own sandbox does not run as root, nor without user namespaces, where root is in a container.
        off = os.environ.get(self._sandbox) == "off"
        if off or self.room.user == 0 or (os.geteuid() == 0 and not self.room.namespaces):
            options.add_argument("--no-sandbox")
        return options

    def _start(self, chromedriver: str, options: Options, *, logs: bool) -> str:
        """Start driver and browser; return the reason why they do not run, or an empty string."""
        from selenium.webdriver.remote.webdriver import WebDriver  # takes as long as all else

        # The driver gets no variable of ours but the search path.
        home, path = str(self.profile), os.environ.get("PATH", os.defpath)
        environment = {"PATH": path, "HOME": home, "TMPDIR": home, "TZ": "UTC", "LANG": "C.UTF-8"}
        command = [chromedriver, "--port=0", *(["--enable-chrome-logs"] if logs else [])]
        self.room.launch(command, environment)
        port = self._await_port()
        if not port:
            return f"status {self.process.poll()}, it said {self._log()[-200:]!r}"

        # Its answers never come through a proxy of the user's.
        direct = Proxy({"proxyType": ProxyType.DIRECT})
        self._config = ClientConfig(f"http://127.0.0.1:{port}", timeout=_STARTS_S, proxy=direct)
        connection = RoomConnection(self.room, self._config)
        try:
            with _ended_with_its_browser(self.process.pid) as ended:
                self.driver = WebDriver(command_executor=connection, options=options)
            if options.capabilities.get("webSocketUrl"):
                self.tabs = FreshTabs(self.driver, self.room, _STARTS_S)
        except DRIVER_ERRORS as error:
            if ended.is_set():
                return f"Chromium ended at once, it said {self._log()[-200:]!r}"
            return next(iter(str(error).strip().splitlines()), type(error).__name__)
        return ""

    def _await_port(self) -> str:
        """Return the port where the driver listens, or an empty string where it ended or hangs."""
        deadline = time.monotonic() + _LISTENS_S
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if match := re.search(r"successfully on port (\d+)", self._log()):
                return match[1]
            if ended:
                break
            time.sleep(0.05)
        return ""

    def _log(self) -> str:
        return " ".join((self.profile / "driver.log").read_text(errors="replace").split())


class RoomConnection(ChromeRemoteConnection):
    """Selenium's connection to a driver, made inside a room."""

    def __init__(self, room: Room, config: ClientConfig) -> None:
        self._room = room
        super().__init__(config.remote_server_addr, client_config=config)

    def _get_connection_manager(self) -> PoolManager:
        room = self._room

        class Connection(HTTPConnection):
            def connect(self) -> None:
                self.sock = room.connect(int(self.port or 0))

        class Connections(HTTPConnectionPool):
            ConnectionCls = Connection

        manager = PoolManager(retries=False)
        manager.pool_classes_by_scheme = {"http": Connections, "https": Connections}
        return manager


class FreshTabs:
    """Makes each tab in a separate browser context, by WebDriver BiDi."""

    def __init__(self, driver: WebDriver, room: Room, answer_s: float) -> None:
        address = driver.capabilities.get("webSocketUrl")
        if not isinstance(address, str):
            raise WebDriverException("the driver offers no connection for BiDi")
        port = parse_url(address).port or 0
        self._driver, self._home = driver, driver.current_window_handle
        self._socket = create_connection(
            address, socket=room.connect(port, answer_s), timeout=answer_s, suppress_origin=True
        )
        self._last_id = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Give the driver a tab with no history, storage or cache until the block ends."""
        context = self._ask("browser.createUserContext")["userContext"]
        tab = self._ask("browsingContext.create", type="tab", userContext=context)["context"]
        self._driver.switch_to.window(tab)
        yield
        self._driver.switch_to.window(self._home)
        self._ask("browser.removeUserContext", userContext=context)

    def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        self._last_id += 1
        self._socket.send(json.dumps({"id": self._last_id, "method": method, "params": arguments}))
        while True:
            answer = json.loads(self._socket.recv() or "{}")
            if answer.get("id") == self._last_id:
                if "result" not in answer:
                    raise WebDriverException(f"{method}: {answer.get('message', answer)}")
                return answer["result"]
            if not answer:
                raise WebDriverException("the driver has ended the connection for BiDi")


Lent = TypeVar("Lent", bound=Chromium)


class BrowserPool(Generic[Lent]):
    """The browsers of a process: started when first needed, kept warm, replaced when lost.

    A forked child starts its own. `lost` counts those that failed or were found dead.
    """

    def __init__(self, make: Callable[[], Lent]) -> None:
        self.make = make
        self._idle: list[Lent] = []
        self._begin()

    @contextmanager
    def borrow(self) -> Iterator[Lent]:
        """Lend a living browser for one piece of work, to one caller at a time.

        An exception that leaves the block costs the browser, because its work is half done. A
        browser that fails at the work raises `BrowserError`; the next one to borrow gets another.
        """
        browser = self._take()
        try:
            yield browser
        except BaseException as error:
            browser.kill()
            if isinstance(error, DRIVER_ERRORS):
                raise BrowserError(f"{type(error).__name__}: {str(error).strip()[:300]}") from error
            raise
        finally:
            self._give(browser)

    def idle(self) -> list[Lent]:
        """Return the running browsers that are not borrowed."""
        return list(self._idle) if self._owner == os.getpid() else []

    def close(self) -> None:
        """End all idle browsers; the next caller starts a new one."""
        if self._owner != os.getpid():
            return
        with self._lock:
            idle, self._idle = self._idle, []
        for browser in idle:
            browser.close()

    def _begin(self) -> None:
        """Start without browsers, as a forked child does."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._inherited, self._idle = self._idle, []  # a child must finalise none of its parent's
        # Runs also at the end of multiprocessing's children, which run no atexit functions.
        Finalize(None, self.close, exitpriority=10)
        self.started = self.lost = 0

    def _take(self) -> Lent:
        if self._owner != os.getpid():
            self._begin()
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                break
            if idle.alive:
                return idle
            self._give(idle)

        # No idle one is left alive.
        browser = self.make()
        with self._lock:
            self.started += 1
        return browser

    def _give(self, browser: Lent) -> None:
        if browser.alive:
            with self._lock:
                self._idle.append(browser)
        else:
            browser.close()
            with self._lock:
                self.lost += 1


def _serves_all(process: psutil.Process) -> bool:
    """True if a process is the browser, or serves all pages: pictures, network, storage, renderers."""
    with suppress(psutil.Error):
        words = process.cmdline()
        kinds = [word for word in words if word.startswith("--type=")]
        if not kinds or kinds[0] in ("--type=gpu-process", "--type=zygote"):
            return True
        return any(word.startswith(_SERVICES) for word in words)
    return False


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
        return process.is_running() and not ended
    return False


@contextmanager
def _ended_with_its_browser(room: int) -> Iterator[threading.Event]:
    """Kill a room when its browser has ended, and set the event: the driver would wait a minute."""
    ended = threading.Event()

    def look() -> bool:
        started = list_tree(room)[2:]  # without the room's process and the driver
        with suppress(psutil.NoSuchProcess):  # the driver buries none, so a browser that ended stays a zombie
            if started and all(process.status() == psutil.STATUS_ZOMBIE for process in started):
                ended.set()
                kill_tree(room)
        return ended.is_set()

    with _repeat(look):
        yield ended


@dataclass(frozen=True)
class Limits:
    """Limits of a piece of work: clock and processor seconds, growth of resident MiB."""

    wall_s: float = 20.0
    cpu_s: float = 5.0
    memory_mb: float = 500.0


class ProcessGuard:
    """Watches a process and its descendants in a `with` block, and kills them at a limit.

    `whole` says whether all processes are there that should be; it is asked just before.
    """

    def __init__(self, pid: int, limits: Limits, whole: Callable[[], bool] = lambda: True) -> None:
        self.pid, self.limits = pid, limits
        self.reason: str | None = None  # the limit that was passed, `timeout` or `memory`
        self.by_clock = False  # only the clock passed it: the machine may have been busy
        self.whole = True
        self._ask_whole = whole
        self._watching = _repeat(self._look)

    def __enter__(self) -> ProcessGuard:
        self._begun = time.monotonic()
        self._cpu, self._memory = measure_tree(self.pid)
        self._watching.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._watching.__exit__(None, None, None)

    def _look(self) -> bool:
        cpu_s, memory_mb = measure_tree(self.pid)
        if memory_mb - self._memory > self.limits.memory_mb:
            self.reason = "memory"
        elif cpu_s - self._cpu > self.limits.cpu_s:
            self.reason = "timeout"
        elif time.monotonic() - self._begun > self.limits.wall_s:
            self.reason, self.by_clock = "timeout", True
        if self.reason:
            self.whole = self._ask_whole()
            kill_tree(self.pid)
        return self.reason is not None


@contextmanager
def _repeat(look: Callable[[], bool]) -> Iterator[None]:
    """Call a function again and again in a thread, until it returns true or the block ends."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_WATCH_S) and not look():
            pass

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def list_tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; empty where it is gone."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def measure_tree(pid: int) -> tuple[float, float]:
    """Return processor seconds and resident MiB of a process and its living descendants."""
    cpu_s = size = 0.0
    for member in list_tree(pid):
        with suppress(psutil.Error), member.oneshot():
            times, memory = member.cpu_times(), member.memory_info()
            cpu_s += times.user + times.system
            size += memory.rss
    return cpu_s, size / 2**20


def kill_tree(pid: int) -> None:
    """End a process and its descendants at once."""
    for member in list_tree(pid):
        with suppress(psutil.Error):
            member.kill()
