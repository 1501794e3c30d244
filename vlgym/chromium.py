"""A contained headless Chromium for environments that show web pages: how it is started, watched, lent and ended.

    class Camera(Chromium): ...
    POOL = BrowserPool(lambda: Camera("mine", site="127.0.0.1:8000"))
    with POOL.borrow() as camera:
        camera.driver.get("http://127.0.0.1:8000/")
        camera.cdp("Page.captureScreenshot")

It has no network but what its maker names, a profile that is thrown away, and no longer life than its process.
`BrowserPool.borrow` is the one place where a browser is lent for a piece of work, and where a lost one is replaced.

This module knows nothing of pages, servers or pictures. The core never imports it: a plugin that does depends on
`selenium` and `psutil` itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from .browser_programs import PROGRAMS, find_program
from .errors import MissingSystemPartError, NotInstalledError, VlgymError

try:
    import psutil
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
    from selenium.webdriver.common.proxy import Proxy, ProxyType
    from selenium.webdriver.remote.client_config import ClientConfig
    from selenium.webdriver.remote.webdriver import WebDriver
    from urllib3.exceptions import HTTPError

    from .process_limits import Guard, Limits, kill_tree, list_tree, measure_tree
except ImportError as error:
    raise NotInstalledError(f"vlgym.chromium needs two packages ({error}): pip install selenium psutil") from error

__all__ = [
    "ATTEMPTS", "DRIVER_ERRORS", "BrowserError", "BrowserPool", "Chromium", "Guard", "Limits", "kill_tree", "list_tree",
    "measure_tree",
]  # fmt: skip

DRIVER_ERRORS = (WebDriverException, HTTPError, OSError)
"""What Selenium raises where the browser or its driver fails, hangs or is gone."""

ATTEMPTS = 3
"""Starts before a browser is given up: the port that the driver chose may be taken before it listens there."""

_LISTENS_S, _STARTS_S, _WATCH_S = 20.0, 120, 0.1
_SERVICES = ("--utility-sub-type=network.", "--utility-sub-type=storage.")
_PREFIX, _NOWHERE = "vlgym-chromium-", "127.0.0.1:9"
_SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",  # no debugging port; and Chromium ends when its driver does
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad", "--disable-extensions", "--disable-default-apps",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-domain-reliability",
    "--disable-client-side-phishing-detection", "--no-first-run", "--no-default-browser-check", "--mute-audio",
    # The same picture everywhere.
    "--hide-scrollbars", "--force-device-scale-factor=1", "--force-color-profile=srgb", "--font-render-hinting=none",
    "--disable-lcd-text", "--lang=en-US",
    # A list of its own: Chromium reads the last such switch only.
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,NetworkTimeServiceQuerying,"
    "InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,AutofillServerCommunication,"
    "BackForwardCache,PaintHolding,SpareRendererForSitePerProcess,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,HttpsFirstModeIncognito,HttpsFirstModeV2",
)  # fmt: skip


class BrowserError(VlgymError):
    """The browser failed or was lost. The message holds the reason."""


class Chromium:
    """A running Chromium behind its driver, and everything that belongs to it.

    Args:
        name: of the plugin. `VLGYM_<NAME>_SANDBOX=off` switches Chromium's own sandbox off.
        site: `host:port` of the only server that it asks directly; a host alone means all its ports; empty: none.
        proxy: `host:port` of the proxy for everything else; by default one that does not exist.
        switches: further command-line switches.
        capabilities: further capabilities of the session.
        answer_s: longest time in seconds that it may take over an answer, once it runs.

    Attributes:
        driver: the Selenium driver.
        process: the driver's process, the ancestor of all others.
        profile: folder of all that it writes.
        owner: id of the process that started it.

    Raises:
        MissingSystemPartError: Chromium or its driver is missing or does not start.
    """

    apt: ClassVar[str] = "apt-get install -y chromium chromium-driver fonts-dejavu-core"
    """The line that installs what it needs on Debian."""

    def __init__(
        self,
        name: str,
        *,
        site: str = "",
        proxy: str = _NOWHERE,
        switches: Sequence[str] = (),
        capabilities: Mapping[str, Any] | None = None,
        answer_s: int = _STARTS_S,
    ) -> None:
        chromium, chromedriver = (find_program(program, self.apt) for program in PROGRAMS)
        self.owner = os.getpid()
        _sweep_profiles()
        self.profile = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{self.owner}-"))
        options = Options()
        options.binary_location = chromium.path
        for key, value in (capabilities or {}).items():
            options.set_capability(key, value)
        # `<-loopback>` takes away Chromium's own rule that this machine is never asked through a proxy.
        bypass = f"<-loopback>;{site}" if site else "<-loopback>"
        for switch in (*_SWITCHES, *switches, f"--proxy-server={proxy}", f"--proxy-bypass-list={bypass}"):
            options.add_argument(switch)
        # Chromium's own sandbox does not run as root, nor in containers without user namespaces.
        sandbox = f"VLGYM_{name.upper()}_SANDBOX"
        if (hasattr(os, "geteuid") and os.geteuid() == 0) or os.environ.get(sandbox) == "off":
            options.add_argument("--no-sandbox")
        direct = Proxy({"proxyType": ProxyType.DIRECT})
        for attempt in range(ATTEMPTS):
            options.add_argument(f"--user-data-dir={self.profile / str(attempt)}")
            self.process = self._launch(chromedriver.path, logs=attempt > 0)
            if port := self._await_port():
                config = ClientConfig(f"http://127.0.0.1:{port}", timeout=_STARTS_S, proxy=direct)
                connection = ChromeRemoteConnection(config.remote_server_addr, client_config=config)
                try:
                    with _ended_with_its_browser(self.process.pid) as ended:
                        self.driver = WebDriver(command_executor=connection, options=options)
                    config.timeout = answer_s
                    self._staff = [member for member in list_tree(self.process.pid)[1:] if _serves_all(member)]
                    return
                except DRIVER_ERRORS as error:
                    said = next(iter(str(error).strip().splitlines()), type(error).__name__)
                    if ended.is_set():
                        said = f"Chromium ended at once, it said {self._log()[-200:]!r}"
            else:
                said = f"status {self.process.poll()}, it said {self._log()[-200:]!r}"
            self.kill()
        self.close()
        versions = f"Chromium is version {chromium.version}, its driver {chromedriver.version}; they must agree. "
        raise MissingSystemPartError(
            f"Chromium does not start: it or its driver ended, hung or failed {ATTEMPTS} times ({said}). "
            f"{versions if chromium.version != chromedriver.version else ''}Install it again with `{self.apt}`. In a "
            f"container without user namespaces also set {sandbox}=off (the container is the sandbox then)."
        )

    @property
    def alive(self) -> bool:
        """Whether the driver runs; a browser that died or hangs behind it shows when it is asked."""
        return self.process.poll() is None

    @property
    def intact(self) -> bool:
        """Whether none of the processes that all pages share has ended since the start.

        Chromium starts a lost one again and says nothing, but a page that was loading meanwhile may lack a part.
        """
        return self.alive and all(map(_is_running, self._staff))

    def cdp(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Give a command of the Chrome DevTools Protocol to the open tab; return the answer."""
        return self.driver.execute("executeCdpCommand", {"cmd": command, "params": arguments})["value"]

    def processes(self) -> list[int]:
        """Return the ids of the driver and of everything that it started."""
        return [member.pid for member in list_tree(self.process.pid)]

    def kill(self) -> None:
        """End all processes at once; a hanging browser would not listen to anything gentler."""
        kill_tree(self.process.pid)
        self.process.wait()

    def close(self) -> None:
        """End the browser and remove its profile; a forked process leaves its parent's browser alone."""
        if os.getpid() == self.owner:
            self.kill()
            shutil.rmtree(self.profile, ignore_errors=True)

    def _launch(self, chromedriver: str, *, logs: bool) -> subprocess.Popen[bytes]:
        command = [chromedriver, "--port=0", *(["--enable-chrome-logs"] if logs else [])]
        if shutil.which("setpriv"):  # the kernel then ends it with this process, even a killed one
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        home, path = str(self.profile), os.environ.get("PATH", os.defpath)
        environment = {"PATH": path, "HOME": home, "TMPDIR": home, "TZ": "UTC", "LANG": "C.UTF-8"}
        with (self.profile / "driver.log").open("w") as log:
            none = subprocess.DEVNULL
            # A group of its own: Ctrl-C in the terminal is not for it. (In a session of its own it would be slower.)
            return subprocess.Popen(command, stdin=none, stdout=log, stderr=log, process_group=0, env=environment)

    def _await_port(self) -> str:
        """Return the port where the driver listens, or an empty string where it ended or hangs."""
        deadline = time.monotonic() + _LISTENS_S
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if found := re.search(r"successfully on port (\d+)", self._log()):
                return found[1]
            if ended:
                break
            time.sleep(0.05)
        return ""

    def _log(self) -> str:
        return " ".join((self.profile / "driver.log").read_text(errors="replace").split())


Lent = TypeVar("Lent", bound=Chromium)


class BrowserPool(Generic[Lent]):
    """The browsers of a process: started when first needed, kept warm, replaced when lost, gone with the process.

    A forked child starts its own.

    Args:
        make: starts a browser.

    Attributes:
        started: browsers started so far.
        lost: browsers that failed at their work or were found dead so far.
    """

    def __init__(self, make: Callable[[], Lent]) -> None:
        self.make = make
        self._idle: list[Lent] = []
        self._begin()

    @contextmanager
    def borrow(self) -> Iterator[Lent]:
        """Lend a living browser for one piece of work, to one caller at a time.

        An exception that leaves the block costs the browser, because its work is half done.

        Raises:
            BrowserError: the browser failed at the work; the next one to borrow gets another.
            MissingSystemPartError: Chromium is not installed or does not start.
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
        """Return the running browsers that nobody has borrowed."""
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
        """Own nothing; a forked child begins so, too."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._inherited, self._idle = self._idle, []  # kept, so that nothing of the parent's is finalised in a child
        # Runs at the end of the main process and of multiprocessing's children, which run no atexit functions.
        Finalize(None, self.close, exitpriority=10)
        self.started = self.lost = 0

    def _take(self) -> Lent:
        if self._owner != os.getpid():
            self._begin()
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            if idle.alive:
                return idle
            self._give(idle)
            return self._take()
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
    """Whether a process is the browser itself, or serves all pages with pictures, network or storage."""
    with suppress(psutil.Error):
        words = process.cmdline()
        kind = next((word[len("--type=") :] for word in words if word.startswith("--type=")), "")
        return kind in ("", "gpu-process") or any(word.startswith(_SERVICES) for word in words)
    return False


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@contextmanager
def _ended_with_its_browser(driver: int) -> Iterator[threading.Event]:
    """Kill a driver when the browser that it starts has ended, and set the event: it would wait for a minute."""
    found, stop = threading.Event(), threading.Event()

    def watch() -> None:
        while not stop.wait(_WATCH_S):
            started = list_tree(driver)[1:]
            with suppress(psutil.NoSuchProcess):  # the driver buries none, so a browser that ended stays a zombie
                if started and all(process.status() == psutil.STATUS_ZOMBIE for process in started):
                    found.set()
                    kill_tree(driver)
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def _sweep_profiles() -> None:
    """Remove the profiles of processes that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name[len(_PREFIX) :].split("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
