"""Selection and order of the episodes in the list, read from an address and written to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from .index import Episode

PAGE = 50  # episodes on a page
T = TypeVar("T")
LONGEST = 200  # characters of a word in an address
RESULTS = {"won": "won", "lost": "lost", "open": "not ended"}
ORDERS: dict[str, tuple[str, Callable[[Episode], Any]]] = {
    "newest": ("newest", lambda episode: episode.newest),
    "env": ("environment", lambda episode: (episode.env_id, episode.part, episode.number, episode.repeat)),
    "success": ("success", lambda episode: episode.success),
    "return": ("return", lambda episode: episode.total),
    "turns": ("turns", lambda episode: episode.turns),
    "failures": ("failures", lambda episode: sum(code != "ok" for code in episode.codes)),
}
"""Name in an address: what it is called, and what is compared."""


@dataclass(frozen=True)
class Choice:
    """Filters and order of the list.

    Attributes:
        run: key of a run; empty for all, as everywhere.
        result: a key of `RESULTS`.
        code: failure code that occurred.
        q: words; replies hold them next to each other, whatever the case.
        sort: a key of `ORDERS`; with `-` before it, the largest comes first.
    """

    run: str = ""
    env: str = ""
    result: str = ""
    code: str = ""
    q: str = ""
    sort: str = "-newest"
    page: int = 1

    @property
    def query(self) -> str:
        """The end of an address that says the same, with its question mark; empty where nothing was chosen."""
        plain = asdict(Choice())
        text = urlencode({name: value for name, value in asdict(self).items() if value != plain[name]})
        return f"?{text}" if text else ""


def read_choice(params: Mapping[str, str]) -> Choice:
    """Return what an address says; what makes no sense is left out."""
    said = {name: params.get(name, "")[:LONGEST] for name in ("run", "env", "result", "code", "q")}
    sort = params.get("sort", "")
    return Choice(
        **{**said, "result": said["result"] if said["result"] in RESULTS else ""},
        sort=sort if sort.removeprefix("-") in ORDERS else Choice.sort,
        page=read_page(params),
    )


def read_page(params: Mapping[str, str]) -> int:
    """Return the number of the page that an address says, from 1."""
    return max(1, read_count(params.get("page", "")))


def read_count(text: str) -> int:
    """Return the number that a text says; -1 where it says none, or one that is too long for any count."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


def choose(episodes: Iterable[Episode], choice: Choice) -> list[Episode]:
    """Return the episodes that a choice shows, on all its pages, in its order."""
    words = choice.q.casefold()
    found = [
        episode
        for episode in episodes
        if (not choice.run or episode.run == choice.run)
        and (not choice.env or episode.env_id == choice.env)
        and (not choice.result or episode.result == choice.result)
        and (not choice.code or choice.code in episode.codes)
        and (not words or words in episode.searched)
    ]
    _, compared = ORDERS[choice.sort.removeprefix("-")]
    return sorted(found, key=compared, reverse=choice.sort.startswith("-"))


def cut_page(found: Sequence[T], page: int) -> tuple[Sequence[T], int, int]:
    """Return what stands on a page, its number (the last one where there are fewer) and how many pages there are."""
    pages = max(1, -(-len(found) // PAGE))
    page = min(page, pages)
    return found[(page - 1) * PAGE : page * PAGE], page, pages
