"""A person's replies: one line, or several where actions have several."""

import io
from pathlib import Path

import pytest
from commands import invoke
from toys import Walk, installed, make_spec

from vlgym.errors import UserError
from vlgym.play.human import END, LINES_HINT, complete_reply, number_choices, read_line, read_rest

PAGE = "```html\n<p>one</p>\n\n<p>two</p>\n```\n```css\np { color: red }\n```"


def test_a_reply_of_several_lines_ends_at_the_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PAGE}\r\n{END}\n{END}\nnext\n"))
    assert read_rest(read_line()) == PAGE
    assert read_rest(read_line()) == ""
    assert read_rest(read_line()) == "next"
    with pytest.raises(UserError, match="input has ended"):
        read_line()


class Unlisted(Walk):
    """Explains its actions and lists none."""

    notation = "a direction"


def test_a_person_is_told_no_action_that_the_prompt_does_not_list() -> None:
    listed, unlisted = Walk(vlgym_spec=make_spec()), Unlisted(vlgym_spec=make_spec())
    for env in (listed, unlisted):
        env.reset(seed=0)
    assert number_choices(listed) == "Choose:  #1 left  #2 right"
    assert "left" not in number_choices(unlisted)
    assert complete_reply(listed, "#2") == complete_reply(unlisted, "right") == "<action>right</action>"
    assert complete_reply(unlisted, "#2") == "#2"


def test_play_takes_several_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Walk, "legal_actions", lambda self: ["left\nright"])
    with installed(make_spec()):
        out = invoke("play", "vlgym/Walk-v0", typed=f"I think.\nNo action.\n{END}\n:quit\n").out
    assert LINES_HINT in out
    assert out.count("parse: no_action") == 1
