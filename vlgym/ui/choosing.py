"""Selection and order of the episodes in the list, read from an address and written to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from .index import Episode

PAGE = 50  # episodes on a page
T = TypeVar("T")
LONGEST = 200  # characters of a word in an address
RESULTS = {"won": "won", "lost": "lost", "open": "not ended"}
NEWEST = "-newest"
ORDERS: dict[str, Callable[[Episode], Any]] = {
    "newest": lambda episode: episode.newest,
    "return": lambda episode: episode.total,
    "turns": lambda episode: episode.turns,
    "failures": lambda episode: sum(code != "ok" for code in episode.codes),
}
"""Name in an address: what is compared."""

Choice = Mapping[str, str]
"""`run` (its key), `env`, `result` (of `RESULTS`), `code` (a failure that occurred) and `q` (words that replies hold
next to each other, whatever the case), each empty for all; and `sort`: a key of `ORDERS`, with `-` before it the
largest first."""


def read_choice(params: Mapping[str, str]) -> Choice:
    """Return what an address says; what makes no sense is left out."""
    said = {name: params.get(name, "")[:LONGEST] for name in ("run", "env", "result", "code", "q", "sort")}
    said["result"] = said["result"] if said["result"] in RESULTS else ""
    said["sort"] = said["sort"] if said["sort"].removeprefix("-") in ORDERS else NEWEST
    return said


def write_query(choice: Choice) -> str:
    """Return the end of an address that says a choice, with its question mark; empty where nothing was chosen."""
    text = urlencode({name: value for name, value in choice.items() if value not in ("", NEWEST)})
    return f"?{text}" if text else ""


def read_count(text: str) -> int:
    """Return the number that a text says; -1 where it says none, or one that is too long for any count."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


def choose(episodes: Iterable[Episode], choice: Choice) -> list[Episode]:
    """Return the episodes that a choice shows, on all its pages, in its order."""
    run, env, result, code, words, sort = choice.values()
    words = words.casefold()
    found = [
        episode
        for episode in episodes
        if run in ("", episode.run)
        and env in ("", episode.env_id)
        and result in ("", episode.result)
        and (not code or code in episode.codes)
        and words in episode.searched
    ]
    return sorted(found, key=ORDERS[sort.removeprefix("-")], reverse=sort.startswith("-"))


def cut_page(found: Sequence[T], params: Mapping[str, str]) -> dict[str, Any]:
    """Return the `rows` of the page that an address says, its number (`page`, from 1; the last one where there are
    fewer) and the number of all `pages`."""
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(1, read_count(params.get("page", ""))), pages)
    return {"rows": found[(page - 1) * PAGE : page * PAGE], "page": page, "pages": pages}
