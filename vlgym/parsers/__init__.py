"""Reply parsers by name. docs/evaluate.md has the grammar of each."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UserError, nearest
from ..types import Match, Parsed, Parser
from .auto import AutoParser
from .choice import ChoiceParser, Number
from .claims import match_legal
from .json_reply import JsonParser
from .tag import PlanParser, TagParser
from .thoughts import blank_thoughts

__all__ = [
    "PARSERS", "AutoParser", "ChoiceParser", "JsonParser", "Parsed", "Parser", "PlanParser", "TagParser", "check_named",
    "find_end", "get_parser", "list_actions", "make_stop", "match_legal", "read_reply", "write_reply",
]  # fmt: skip

PARSERS: dict[str, type] = {
    "tag": TagParser, "json": JsonParser, "plan": PlanParser, "choice": ChoiceParser, "auto": AutoParser,
}  # fmt: skip


def get_parser(parser: str | Parser) -> Parser:
    """Return a parser by name (`tag`), by import string (`package.module:Class`), or as given.

    An import string is code: only code and the command line may give one (else see `check_named`).

    Raises:
        UserError: unknown name, or an import string that does not lead to a parser.

    >>> get_parser("tag").parse("The flag is left of me. <action>left</action>").actions
    ('left',)
    >>> get_parser("jsn")
    Traceback (most recent call last):
        ...
    vlgym.errors.UserError: Unknown parser 'jsn'; there are tag, json, plan, choice, auto, or ...
        Nearest: json.
    """
    if not isinstance(parser, str):
        if isinstance(parser, Parser):
            return parser
        raise UserError(f"{parser!r} is not a parser: it needs name, version, parse, format and describe.")
    if parser in PARSERS:
        return PARSERS[parser]()

    # An import string is the user's own code, so any exception may come.
    if ":" in parser:
        module_name, _, attribute = parser.partition(":")
        try:
            made = getattr(importlib.import_module(module_name), attribute)()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"Parser {parser!r} cannot be loaded: {reason}.") from error
        return get_parser(made)
    names = f"{', '.join(PARSERS)}, or an import string package.module:Class"
    raise UserError(f"Unknown parser {parser!r}; there are {names}.{nearest(parser, PARSERS)}")


def check_named(arguments: Mapping[str, Any], source: str, option: str = "--parser") -> dict[str, Any]:
    """Return constructor arguments from a file, a form or another process.

    Raises:
        UserError: the parser among them is no name in `PARSERS`; an import string belongs in code
            or in the `option` of a command line.
    """
    parser = arguments.get("parser")
    if parser is None or (isinstance(parser, str) and parser in PARSERS):
        return dict(arguments)
    raise UserError(
        f"{source} says parser={parser!r:.80}; only {', '.join(PARSERS)} are taken from there. "
        f"An import string is code: give it in code or on the command line ({option})."
    )


def read_reply(parser: Parser, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
    """Return what a parser reads in a reply, of which 16,384 characters count, thoughts aside.

    `matches` is the environment's own match, for a parser that is `matching`.

    >>> read_reply(get_parser("tag"), "<think>maybe <action>left</action>, but").failure
    'no_action'
    """
    more = {"matches": matches} if getattr(parser, "matching", False) else {}
    parsed = parser.parse(blank_thoughts(text), legal, **more)
    return parsed if parsed.failure or parsed.form else replace(parsed, form=parser.name)


def list_actions(parser: Parser, legal: Sequence[str]) -> list[str]:
    """Return the legal actions as a prompt lists them, with numbers if the parser reads these."""
    numbered = getattr(parser, "numbered", False)
    return [f"[{at}] {action}" for at, action in enumerate(legal, 1)] if numbered else list(legal)


def write_reply(parser: Parser, actions: Sequence[str], thoughts: str, legal: Sequence[str]) -> str:
    """Return a reply that takes actions, by their numbers in `legal` if the parser reads these.

    >>> write_reply(get_parser("choice"), ["right"], "The flag is on my right.", ["left", "right"])
    'The flag is on my right. [2]'
    """
    if getattr(parser, "numbered", False):
        actions = [Number(legal.index(action) + 1) if action in legal else action for action in actions]
    return parser.format(actions, thoughts)


def find_end(parser: Parser, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
    """Return the length of a reply's shortest beginning with the action, or `None`: its stop rule.

    `read_reply` reads the same in the beginning as in the whole. A parser without `end` has no stop
    rule. For a parser that is `matching`, only a legal action ends a reply.

    >>> reply = "<action>left</action> and so on"
    >>> reply[: find_end(get_parser("tag"), reply)]
    '<action>left</action>'
    """
    end = getattr(parser, "end", None)
    more = (legal, matches) if getattr(parser, "matching", False) else ()
    return None if end is None else end(blank_thoughts(text), *more)


def make_stop(env: Any) -> Callable[[str], int | None]:
    """Return the stop rule of an environment's state: text so far -> length at which it is over."""
    legal, matches = env.legal_actions(), getattr(env, "match_action", None)
    return lambda text: find_end(env.parser, text, legal, matches)
