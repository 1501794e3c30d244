"""Makes the policy `openai:MODEL` of the command line's options, and checks them."""

from __future__ import annotations

import os

from ..errors import UserError, check_number
from .connection import KEY, check_url, read_key
from .policy import OpenAIPolicy

MOST_AT_ONCE = 1024


def make_openai(
    model: str,
    *,
    base_url: str | None = None,
    api_key_env: str = KEY,
    concurrency: int = 16,
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout: float = 120,
    max_retries: int = 6,
    requests_per_minute: float | None = None,
    seed: int | None = None,
) -> OpenAIPolicy:
    """Return the policy `openai:MODEL`.

    Args:
        model: name of the model, as the server knows it.
        base_url: address of a server that speaks the chat completions protocol, such as `http://127.0.0.1:8000/v1`; by
            default what the `openai` package takes: OPENAI_BASE_URL, or OpenAI's own.
        api_key_env: environment variable that holds the key.
        concurrency: most requests under way at once.
        temperature: of sampling; the server's default where it is `None`.
        max_tokens: most tokens of a reply; the server's default where it is `None`.
        timeout: seconds that one answer may take.
        max_retries: how often a request is repeated after a failure that may pass.
        requests_per_minute: most requests sent in a minute, evenly spaced; `None` for no limit.
        seed: with it, each request carries a seed of its own, made from this one, the environment, the episode's seed,
            repeat and turn; the same in any order of play.

    Raises:
        UserError: an argument is out of range, there is no key, or the package `openai` is missing.
    """
    if not model.strip():
        raise UserError("openai: needs the name of a model behind the colon: openai:MODEL.")
    check_number("--concurrency", concurrency, 1, MOST_AT_ONCE)
    check_number("--max-retries", max_retries, 0, 1000)
    check_number("--timeout", timeout, above=0)
    for name, value, least in (("--temperature", temperature, 0), ("--max-tokens", max_tokens, 1)):
        if value is not None:
            check_number(name, value, least)
    if requests_per_minute is not None:
        check_number("--requests-per-minute", requests_per_minute, above=0)
    url = (os.environ.get("OPENAI_BASE_URL") or None) if base_url is None else base_url
    if url is not None:
        check_url(url)
    return OpenAIPolicy(
        model.strip(), base_url=url, api_key=read_key(api_key_env, url), api_key_env=api_key_env,
        concurrency=concurrency, temperature=temperature, max_tokens=max_tokens, timeout=timeout,
        max_retries=max_retries, requests_per_minute=requests_per_minute, seed=seed,
    )  # fmt: skip
