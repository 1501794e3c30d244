"""Connection to a browser's driver inside a room: Selenium's commands, and the few that Selenium lacks.

It starts nothing; `vlgym.browser.chromium` does, and is the only one to import this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import urllib3
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
from selenium.webdriver.remote.client_config import ClientConfig
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from websocket import create_connection

from .room import Room

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver


class RoomConnection(ChromeRemoteConnection):
    """Selenium's connection to a driver, made inside a room."""

    def __init__(self, room: Room, config: ClientConfig) -> None:
        self._room = room
        super().__init__(config.remote_server_addr, client_config=config)

    def _get_connection_manager(self) -> urllib3.PoolManager:
        room = self._room

        class Connection(HTTPConnection):
            def connect(self) -> None:
                self.sock = room.connect(int(self.port or 0))

        class Connections(HTTPConnectionPool):
            ConnectionCls = Connection

        manager = urllib3.PoolManager(retries=False)
        manager.pool_classes_by_scheme = {"http": Connections, "https": Connections}
        return manager


class FreshTabs:
    """Makes each tab in a separate browser context, by WebDriver BiDi.

    Selenium cannot send these commands into a room.

    Args:
        driver: of a session with the capability `webSocketUrl`.
        answer_s: longest time in seconds that an answer may take.

    Raises:
        WebDriverException: the driver offers no such connection.
    """

    def __init__(self, driver: WebDriver, room: Room, answer_s: float) -> None:
        address = driver.capabilities.get("webSocketUrl")
        if not isinstance(address, str):
            raise WebDriverException("the driver offers no connection for BiDi")
        port = urllib3.util.parse_url(address).port or 0
        self._driver, self._home = driver, driver.current_window_handle
        self._socket = create_connection(
            address, socket=room.connect(port, answer_s), timeout=answer_s, suppress_origin=True
        )
        self._last_id = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Make a tab with no history, storage or cache, and make it the driver's; remove it at the end of the block.

        Raises:
            WebDriverException: the browser is lost.
        """
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
