"""Selection and order of the episodes in the list, read from an address and written to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
    "seed": ("seed", lambda episode: -1 if episode.seed is None else episode.seed),
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
    def order(self) -> str:
        """The key of `ORDERS`."""
        return self.sort.removeprefix("-")

    @property
    def query(self) -> str:
        """The end of an address that says the same, with its question mark; empty where nothing was chosen."""
        plain = Choice()
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        text = urlencode({name: value for name, value in said.items() if value != getattr(plain, name)})
        return f"?{text}" if text else ""

    def but(self, **changes: Any) -> str:
        """Return the end of an address that differs in something; any change leads to the first page."""
        return replace(self, **{"page": 1, **changes}).query

    def turn_order(self, name: str) -> str:
        """Return the end of an address that sorts by a column, or the other way round where it does so already."""
        return self.but(sort=f"-{name}" if self.sort == name else name)


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
        and (not choice.result or _result(episode) == choice.result)
        and (not choice.code or choice.code in episode.codes)
        and (not words or words in episode.searched)
    ]
    _, compared = ORDERS[choice.order]
    return sorted(found, key=compared, reverse=choice.sort.startswith("-"))


def cut_page(found: Sequence[T], page: int) -> tuple[Sequence[T], int, int]:
    """Return what stands on a page, its number (the last one where there are fewer) and how many pages there are."""
    pages = max(1, -(-len(found) // PAGE))
    page = min(page, pages)
    return found[(page - 1) * PAGE : page * PAGE], page, pages


def find_neighbours(found: Sequence[Episode], episode: Episode) -> tuple[Episode | None, Episode | None]:
    """Return the episodes before and after one in a list; none where it is not in it."""
    for place, each in enumerate(found):
        if each is episode:
            return (found[place - 1] if place else None), (found[place + 1] if place + 1 < len(found) else None)
    return None, None


def _result(episode: Episode) -> str:
    if not episode.over:
        return "open"
    return "won" if episode.success else "lost"
