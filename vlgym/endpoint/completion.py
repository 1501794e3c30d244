"""Read an answer, whole or streamed, of chat completions or of `/v1/responses`."""

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..env.spaces import MAX_REPLY
from ..types import Reply, Status, Usage

Hide = Callable[[str], str]  # takes keys and passwords out of a text
ENDINGS: dict[str, Any] = {
    reason: ending
    for ending, reasons in {
        "cut": "length max_tokens max_output_tokens model_length model_context_window_exceeded repetition",
        "filtered": "content_filter sensitive safety refusal recitation blocklist prohibited_content spii",
        "provider_error": "error failed server_error network_error insufficient_system_resource",
        "abort": "abort aborted cancelled canceled",
    }.items()
    for reason in reasons.split()
}  # `finish_reason` of servers -> status, or `cut`; any other is a plain end
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
TOOL_CALLS = ("function", "custom", "tool_call", "function_call", "tool_use")
PROMPT: dict[Status, str] = {
    "filtered": r"content[_ ]?(filter|(management )?policy)|content exists risk|data_?inspection_?failed|"
    r"prohibited_content|input was flagged",
    "refused": r"context[_ ]?(length|size|window)|max(imum)?[_ ](model|context|input|prompt|sequence)[_ ]?(len|tokens)|"
    r"(prompt|input) is too long|longer than the (max|model)|input token count|too many (input |prompt )?tokens|"
    r"maximum allowed length|less than \d+ tokens|tokens\W* must be <=",
}  # words of servers on a prompt that a filter declined, and on one beyond the model's context
LASTING = (
    r"not( \w+)? support|n't support|\bunsupported|not implemented|must (provide|load) the mmproj|"
    r"missing data required for image"
)  # words of servers that send 500 for failures that no repetition will change


class BadAnswerError(Exception):
    """An answer of HTTP 200 is no reply; `status` is `provider_error`, `abort` or of `PROMPT`."""

    def __init__(self, message: str, status: Status = "provider_error") -> None:
        super().__init__(message)
        self.status = status


def read_answer(data: bytes, hide: Hide = str) -> Reply:
    """Read an answer's first choice.

    A tool call's text is `{"name": ..., "arguments": ...}`; the field `refusal`, or the last
    paragraph of the thoughts, stands for a missing text. `extra` holds `model`, the server's name
    of it, and `came`, the fields that came in place of a text.

    Raises:
        BadAnswerError: it is no JSON, none of this shape, an error, or without a choice.
    """
    try:
        body = _join_chunks(data) if re.match(rb"\s*(?:data|event|id|retry)?:", data) else json.loads(data)
        return _read_body(body, data, hide)
    except (ValueError, RecursionError):
        raise BadAnswerError(f"no JSON: {excerpt(data, hide=hide)}") from None


def _read_body(body: Any, data: bytes, hide: Hide) -> Reply:
    begins = excerpt(data, hide=hide)
    answer = _dict(body)
    choices, model, usage = answer.get("choices"), answer.get("model"), _dict(answer.get("usage"))
    if isinstance(answer.get("output"), list):  # of /v1/responses
        ending = _dict(answer.get("incomplete_details")).get("reason") or answer.get("status")
        choices = [{"message": {"content": answer["output"]}, "finish_reason": ending}]

    # An answer with status 200 may still be an error, or none at all.
    choice = _dict(choices[0]) if isinstance(choices, list) and choices else {}
    if error := answer.get("error") or choice.get("error"):
        raise BadAnswerError(f"an error: {excerpt(_find_words(error), hide=hide)}", classify(error))
    message, reason = choice.get("message") or {}, choice.get("finish_reason")
    content = message.get("content") if isinstance(message, dict) else ...
    if not isinstance(content, (str, list, dict, type(None))) or not {"message", "finish_reason"} & choice.keys():
        raise BadAnswerError(f"no chat completion: {begins}", "refused" if choices == [] else "provider_error")
    ending = ENDINGS.get(reason.lower()) if isinstance(reason, str) else None
    if ending in ("provider_error", "abort"):
        raise BadAnswerError(f"ended by {reason}: {begins}", ending)

    # Servers send text, thoughts and calls in many fields and nested parts.
    parts: dict[str, list[Any]] = {"text": [], "thought": [], "refusal": [], "call": []}
    _sort_parts(message.get("content"), "text", parts)
    _sort_parts(message.get("refusal"), "refusal", parts)
    _sort_parts(next(filter(None, map(message.get, THOUGHTS)), None), "thought", parts)
    parts["call"] += [*_list(message.get("tool_calls")), message.get("function_call")]
    kinds = ("text", "thought", "refusal")
    text, thought, refusal = (_write("".join(parts[kind])) for kind in kinds)
    calls = [call for each in parts["call"] if (call := _read_call(_dict(each)))]

    # Whose words stand in for a missing text decides the status.
    status: Status = "filtered" if ending == "filtered" else "tool_call" if calls else "model"
    if calls:
        written = json.dumps(calls[0] if len(calls) == 1 else calls, ensure_ascii=False)
        text = "\n".join(filter(str.strip, [text, _write(written)]))
    elif status == "model" and ending != "cut" and thought.strip() and not (text + refusal).strip():
        status, text = "reasoning_only", thought.strip().rpartition("\n\n")[2]
    text = text or refusal

    # The record names what came, so that an empty reply can be explained.
    came = [f"{name} {_describe(value)}" for name, value in {"finish_reason": reason, **message}.items()]
    extra = {
        "model": excerpt(model, hide=hide) if isinstance(model, str) else "",
        "came": "" if text.strip() else excerpt(", ".join(came), hide=hide),
    }
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    counts = [prompt, usage.get("completion_tokens") or usage.get("output_tokens")]
    half = MAX_REPLY // 2 - 3
    thought = thought if len(thought) <= MAX_REPLY else f"{thought[:half]} ... {thought[-half:]}"
    refused = bool(refusal) or status == "filtered"
    return Reply(text, extra, ending == "cut", refused, Usage(*map(_read_count, counts)), status, thought)


def _sort_parts(content: Any, kind: str, parts: Mapping[str, list[Any]]) -> None:
    """Sort the texts of a message's content, a string or nested parts, by what they are."""
    if isinstance(content, str):
        parts[kind].append(content)
    for part in _list(content):
        _sort_parts(part, kind, parts)
    form = str(_dict(content).get("type"))
    if form in TOOL_CALLS:
        parts["call"].append(content)
    elif isinstance(content, dict):
        kind = "thought" if re.search("thinking|reasoning|summary", form) else "refusal" if form == "refusal" else kind
        for name in ("text", "thinking", "reasoning", "summary", "content", "refusal"):
            _sort_parts(content.get(name), kind, parts)


def _read_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return name and arguments of a native tool call; nothing where it has neither."""
    call = next((call[name] for name in TOOL_CALLS if isinstance(call.get(name), dict)), call)
    fields = ("arguments", "input", "parameters")
    arguments = next((call[name] for name in fields if call.get(name) is not None), None)
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):  # stays a text
            arguments = json.loads(arguments)
    return {"name": call.get("name"), "arguments": arguments} if call.get("name") or arguments else {}


def _join_chunks(data: bytes) -> dict[str, Any]:
    """Return a stream's completion; `BadAnswerError` without an end, `ValueError` without JSON."""
    text = data.decode("utf-8", "replace")
    lines = [line[5:].strip() for line in text.split("\n") if line.startswith("data:")]
    chunks = [_dict(json.loads(line)) for line in lines if line and line != "[DONE]"]
    choices = [_dict(each) for chunk in chunks for each in _list(chunk.get("choices"))[:1]]
    whole, choice = (
        {name: value for each in parts for name, value in each.items() if value is not None}
        for parts in (chunks, choices)
    )
    if "[DONE]" not in lines and not {"finish_reason", "error"} & {*whole, *choice}:
        raise BadAnswerError("a stream without its end")

    # Texts come in pieces, each in the field that the whole message has.
    deltas = [_dict(each.get("delta")) for each in choices]
    message: dict[str, Any] = {
        name: [delta[name] for delta in deltas if delta.get(name)] for name in ("content", "refusal", *THOUGHTS)
    }

    # Pieces of a call have its index; its name comes once.
    calls: dict[int, dict[str, Any]] = {}
    for part in (_dict(each) for delta in deltas for each in _list(delta.get("tool_calls"))):
        index, function = part.get("index"), _dict(part.get("function"))
        call = calls.setdefault(index if isinstance(index, int) else len(calls), {"name": None, "arguments": []})
        call["name"] = call["name"] or function.get("name")
        call["arguments"].append(function.get("arguments") or "")
    for call in calls.values():
        texts = all(isinstance(each, str) for each in call["arguments"])
        call["arguments"] = "".join(call["arguments"]) if texts else call["arguments"][-1]
    choice["message"] = {**message, "tool_calls": [*calls.values()]}
    return {**whole, "choices": [choice][: len(choices)]}


def classify(error: Any) -> Status:
    """Return the status of a server's words on an error: of `PROMPT`, or `provider_error`."""
    words, patterns = _find_words(error), PROMPT.items()
    kinds = (kind for kind, pattern in patterns if re.search(pattern, words, re.IGNORECASE))
    return next(kinds, "provider_error")


def find_status(error: BaseException | None) -> Status | None:
    """Return the status of the bad answer behind an error of the `openai` package, if there is one.

    Of HTTP's statuses those have one that refuse this prompt alone.
    """
    if (code := getattr(error, "status_code", None)) is not None:
        status = "refused" if code == 413 else classify(getattr(error, "body", None) or str(error))
        return status if status == "filtered" or (status == "refused" and code not in (401, 403, 404, 429)) else None
    while error is not None and not isinstance(error, BadAnswerError):
        error = error.__cause__
    return None if error is None else error.status


def lasts(words: str) -> bool:
    """True if a server's words name a failure that does not pass."""
    return bool(re.search(LASTING, words, re.IGNORECASE))


def excerpt(words: str | bytes, width: int = 240, hide: Hide = str) -> str:
    """Return the beginning of a server's words as one safe line, without secrets."""
    text = hide(words.decode("utf-8", "replace") if isinstance(words, bytes) else words)
    line = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * width])
    line = " ".join(line.split())
    return line if len(line) <= width and len(text) <= 4 * width else f"{line[: width - 3].rstrip()}..."


def _find_words(error: Any) -> str:
    """Return an error's message, code and type."""
    words = error
    if isinstance(error, dict):
        words = [error[name] for name in ("message", "detail", "code", "type") if error.get(name)]
    return " ".join(each if isinstance(each, str) else json.dumps(each) for each in (_list(words) or [words]))


def _describe(value: Any) -> str:
    return f"of length {len(value)}" if hasattr(value, "__len__") and len(value) > 20 else json.dumps(value)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _write(text: str) -> str:
    """Replace halves of characters, which JSON can hold and a record cannot."""
    return text.encode("utf-8", "replace").decode()


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else 0
