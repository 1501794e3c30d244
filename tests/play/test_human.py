"""A person's replies: one line, or several where actions have several."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from commands import invoke
from toys import Walk, make_spec

from vlgym.errors import UserError
from vlgym.play.human import END, LINES_HINT, complete_reply, number_choices, read_line, read_rest
from vlgym.play.trajectory import read_trajectories

PAGE = "```html\n<p>one</p>\n\n<p>two</p>\n```\n```css\np { color: red }\n```"


def test_a_reply_of_several_lines_ends_at_the_dot_and_the_next_begins_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_vlgym_play_takes_several_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = invoke("play", "vlgym/WebUI-v0", "--seed", "1", typed=f"I think.\nStill no code.\n{END}\n:quit\n").out
    assert LINES_HINT in out
    assert out.count("parse: no_code_block") == 1


def test_an_evaluation_takes_the_commands_of_play_but_no_reply_of_the_oracles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["eval", "--policy", "human", "--env", "vlgym/NumberLine-v0", "--episodes", "1", "--out", "run"]
    assert "continue with --resume" in invoke(*command, status=2, typed=":quit\n:oracle\n").err
    assert "Unknown command ':oracle'" in invoke(*command, "--resume", typed=":prompt\n:oracle\n" + "+\n" * 50).out
    (episode,) = read_trajectories(tmp_path / "run")
    assert {record.reply for record in episode} == {"<action>+</action>"}
