"""The parser of code blocks: tolerant of spelling, total, and exact on what it writes itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlgym_webui.code_parser import CodeBlockParser, read_action

PARSER = CodeBlockParser()
F = "```"


def files(text: str) -> dict[str, str]:
    parsed = PARSER.parse(text)
    return read_action(parsed.actions[0]) or {} if parsed.actions else {}


@pytest.mark.parametrize(
    ("tag", "file"),
    [
        *((tag, "index.html") for tag in ("html", "HTML", "html5", " html ", "htm", "index.html", "html:index.html")),
        *((tag, "style.css") for tag in ("css", "CSS3", "style.css")),
        *((tag, "script.js") for tag in ("js", "JavaScript", "script.js", "{.js}", "write_javascript", "my_app.js")),
    ],
)
def test_tags_are_read_in_any_spelling(tag: str, file: str) -> None:
    assert files(f"Here:\n{F}{tag}\nsome code\n{F}\n") == {file: "some code"}


HEADINGS = f"### index.html\n{F}\nplain\n{F}\n**style.css**:\n{F}\nplain\n{F}\nwrite_javascript\n{F}\nplain\n{F}"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (f"{F}html\n<p>cut off", {"index.html": "<p>cut off"}),
        (f"{F}html\n<p>1</p>\n{F}css\np {{}}\n{F}", {"index.html": "<p>1</p>", "style.css": "p {}"}),
        (HEADINGS, {"index.html": "plain", "style.css": "plain", "script.js": "plain"}),
        (f"{F}\n<h1>Hi</h1>\n<p>you</p>\n{F}", {"index.html": "<h1>Hi</h1>\n<p>you</p>"}),
        (f"{F}\nbody {{ margin: 0; }}\n{F}", {"style.css": "body { margin: 0; }"}),
        (f"{F}\nconst a = 1;\n{F}", {"script.js": "const a = 1;"}),
        ("Sure!\n<!DOCTYPE html><html>x</html>", {"index.html": "<!DOCTYPE html><html>x</html>"}),
        (f"{F}css\na {{}}\n{F}\n{F}css\nb {{}}\n{F}", {"style.css": "b {}"}),
        ("~~~html\n<p>1</p>\n~~~", {"index.html": "<p>1</p>"}),
        (f"{F}css\na {{}}\n~~~\n{F}", {"style.css": "a {}\n~~~"}),
        (f"  {F}html\n<p>1</p>\n  {F}", {"index.html": "<p>1</p>"}),
        (f"{F}bash\nnpm i\n{F}\n{F}html\n<p>1</p>\n{F}", {"index.html": "<p>1</p>"}),
    ],
)
def test_blocks_are_read_as_models_write_them(reply: str, expected: dict[str, str]) -> None:
    assert files(reply) == expected


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ("", "no_code_block"), ("I would write a page.", "no_code_block"), ("<action>left</action>", "no_code_block"),
        (f"{F}html\n\n{F}", "empty_code"), (f"{F}", "unknown_language"), (f"{F}bash\nls\n{F}", "unknown_language"),
        (f"{F}python\nprint(1)\n{F}", "unknown_language"),
    ],
)  # fmt: skip
def test_what_holds_no_code_fails_with_a_reason(reply: str, failure: str) -> None:
    parsed = PARSER.parse(reply)
    assert parsed.actions == ()
    assert parsed.failure == failure


def test_the_span_is_the_code_without_the_thoughts_before_it() -> None:
    assert PARSER.parse(f"I think.\n{F}css\na {{}}\n{F}\n").span == (9, 24)


@given(st.text(max_size=400))
def test_any_text_is_read_without_raising_and_an_action_reads_back_as_itself(text: str) -> None:
    for reply in (text, f"{F}html\n{text}\n{F}", text.replace("a", F)):
        parsed = PARSER.parse(reply)
        assert (len(parsed.actions) == 1) != (parsed.failure is not None)
        for action in parsed.actions:
            assert PARSER.parse(action).actions == (action,)
            assert PARSER.parse(PARSER.format([action], "I think.")).actions == (action,)
