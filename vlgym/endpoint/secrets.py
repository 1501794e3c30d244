"""Keys and passwords: which texts are secret, and texts without them."""

import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from .completion import Hide

SECRET_NAME = r"(?:^|[\W_]|api|access|db)(?:key|token|secret|password|passwd|pwd|auth|authorization|credentials?)"
"""End of a name whose value is a key or a password, as a pattern."""
SHORT = 4  # letters from which on a secret is hidden within words, too


def is_secret(name: str) -> bool:
    """True if an option's name is that of a key or a password."""
    return bool(re.search(rf"{SECRET_NAME}$", name, re.IGNORECASE))


def without_secrets(value: Any, name: str = "") -> Any:
    """Return an option's value with `[secret]` for each text that its name makes a secret."""
    if isinstance(value, Mapping):
        return {key: without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, name) for item in value]
    return "[secret]" if isinstance(value, str) and is_secret(name) else value


def find_secrets(value: Any, name: str = "") -> set[str]:
    """Return the texts that `without_secrets` takes out."""
    if isinstance(value, Mapping):
        return {each for key, item in value.items() for each in find_secrets(item, str(key))}
    if isinstance(value, list):
        return {each for item in value for each in find_secrets(item, name)}
    return {value} if isinstance(value, str) and is_secret(name) else set()


def make_hide(url: str, key: str, secrets: Iterable[str] = ()) -> Hide:
    """Return the function that hides a key, the password and query of an address, and secrets."""
    split = urlsplit(url)
    password = split.password or ""
    known = {key, password, unquote(password), *dict(parse_qsl(split.query)).values()} - {""}
    known |= {each for each in secrets if len(each) >= SHORT}
    written = {form for each in known for form in (each, quote(each, safe=""), json.dumps(each)[1:-1])}
    forms = [re.escape(each) for each in sorted(written, key=len, reverse=True) if len(each) >= SHORT]
    forms += [rf"(?<!\w){re.escape(each)}(?!\w)" for each in written if len(each) < SHORT]
    return functools.partial(re.sub, "|".join(forms) or r"(?!)", "[secret]")


def hide_in(error: Exception, hide: Hide) -> Exception:
    """Return an error without secrets in its texts."""

    def clean(value: Any) -> Any:
        return json.loads(hide(json.dumps(value, default=str))) if isinstance(value, (str, dict, list)) else value

    error.args = tuple(map(clean, error.args))
    vars(error).update({name: clean(value) for name, value in vars(error).items()})
    return error


def hide_login(url: str) -> str:
    """Return an address, even a malformed one, without user, password, query and last slash."""
    front, separator, rest = url.partition("://")
    place = (rest if separator else front).rpartition("@")[2].partition("?")[0].partition("#")[0].rstrip("/")
    return f"{front}://{place}" if separator else place
