"""`vlgym play`: the model's own prompt and parser in the terminal."""

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from toys import Walk, installed, make_spec, make_walk

from vlgym.env.rendering import decode_png
from vlgym.env.seeding import episode_seed
from vlgym.types import Outcome

WALK = make_spec(history_turns=1, history_images=2)
SEED = "3"


def target_of(seed: int) -> int:
    env = make_walk()
    env.reset(seed=seed)
    return env.target


AWAY, THERE = ("left", "right") if target_of(3) > 0 else ("right", "left")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(typed: str, *options: str, status: int = 0) -> str:
    """Play what the options name, or Walk on a seed; return the output, or the error."""
    named = options and not options[0].startswith("--")
    with installed(WALK, make_spec("vlgym/Coin-v0", "toys:Coin")):
        words = options if named else (WALK.id, "--seed", SEED, *options)
        output = invoke("play", *words, status=status, typed=typed)
    return output.err if status else output.out


def test_replies_are_parsed_and_bare_actions_and_numbers_are_put_into_the_reply_format() -> None:
    typed = [f"I go <action>{AWAY}</action>", AWAY, "<action>fly</action>", "2", "#1", "3", "0"]
    out = play("\n".join([*typed, AWAY.upper()]))
    assert "Choose:  #1 left  #2 right\n" in out
    assert re.findall(r"parse: (\w+); executed: (\w+)", out) == [
        ("ok", AWAY), ("ok", AWAY), ("illegal_action", "nothing"), ("ok", "right"), ("ok", "left"),
        ("no_action", "nothing"), ("no_action", "nothing"), ("ok", AWAY),
    ]  # fmt: skip
    assert out.count(f"written as: <action>{AWAY}</action>") == 3
    assert f"parse: ok; executed: {AWAY}; reward: 0; return: 0\nfeedback: went {AWAY}" in out
    assert "Episode truncated after 8 turn(s): success no, return 0." in out


def test_parser_and_seed_can_be_chosen_and_an_episode_can_be_won() -> None:
    out = play(f"{THERE}\n" * 8, "--arg", "parser=json")
    assert f'written as: {{"thoughts": "", "action": "{THERE}"}}' in out
    assert "reply style json" in out
    steps = abs(target_of(3))
    assert f"Episode terminated after {steps} turn(s): success yes, return 1." in out
    assert out.count("--- turn") == steps
    assert f"seed {episode_seed('vlgym/Walk-v0', 'train', 0)}," in play("", "vlgym/Walk-v0")


def test_a_turn_shows_its_message_and_asked_for_the_models_whole_prompt() -> None:
    first, second = play(f"{AWAY}\n:prompt\n").split("--- turn 2 ---\n")[1].split(":prompt\n")
    folder = "play/vlgym/Walk-v0/game-001"
    assert first.startswith(f"[user]\n<image 22x22: {folder}/picture-001.png>\nYou are in cell ")
    place = 1 if AWAY == "right" else -1
    assert second.startswith(
        f"[user]\n<image 22x22: {folder}/picture-000.png>\nWalk. Go to cell {target_of(3)}. "
        "Think briefly, then end your reply with <action>ACTION</action>, where ACTION is one of the "
        "legal actions.\n\n"
        "You are in cell 0. Legal actions: left, right.\n"
        f"[assistant]\n<action>{AWAY}</action>\n"
        f"[user]\n<image 22x22: {folder}/picture-001.png>\nYou are in cell {place}. Legal actions: left, right.\n"
    )


def test_every_image_is_written_to_the_file_that_it_names(here: Path) -> None:
    named = re.findall(r"<image 22x22: (\S+)>", play(f"{AWAY}\n{AWAY}\n", "--out", "pictures"))
    files = sorted(str(path.relative_to(here)) for path in here.rglob("*.png"))
    assert files == [f"pictures/game-001/picture-00{n}.png" for n in range(3)]
    assert set(named) == set(files)
    env = make_walk()
    images = [env.reset(seed=3)[0]["image"], env.step(f"<action>{AWAY}</action>")[0]["image"]]
    for file, image in zip(files, images, strict=False):
        assert np.array_equal(decode_png((here / file).read_bytes()), image)


def test_the_end_of_the_input_and_quit_end_cleanly() -> None:
    for text in ("", ":quit\nleft\n"):
        assert "Episode not finished after 0 turn(s): success no, return 0." in play(text)


def test_ctrl_c_closes_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(io.StringIO):
        def readline(self, *args: object) -> str:
            raise KeyboardInterrupt

    closed = []
    monkeypatch.setattr("toys.Walk.close", lambda self: closed.append(self))
    monkeypatch.setattr("commands.io.StringIO", Interrupting)
    assert "Traceback" not in play("", status=130)
    assert len(closed) == 1


def test_commands_help_prompt_oracle_and_a_mistyped_one() -> None:
    out = play(":orakle\n:help\n:prompt\n:oracle\n")
    assert "Unknown command ':orakle'. Nearest: :oracle" in out
    assert out.count("Type a whole reply") == 3
    assert out.count("You are in cell 0.") == 2  # turn 1 and :prompt
    assert f"the oracle writes: the target lies {THERE} <action>{THERE}</action>" in out
    assert out.count("parse:") == 1


def test_without_an_oracle_the_command_says_so() -> None:
    assert "The oracle has no action here." in play(":oracle\n", "vlgym/Coin-v0")
    assert "has no oracle action" in play("", "vlgym/Coin-v0", "--policy", "oracle", status=2)


@pytest.mark.parametrize(("policy", "success"), [("oracle", "yes"), ("random", "")])
def test_a_policy_plays_and_overwrites_nothing(policy: str, success: str, here: Path) -> None:
    outs = [re.sub(r"game-\d+", "", play("", "--policy", policy)) for _ in range(2)]
    assert outs[0] == outs[1]
    assert f"success {success}" in outs[0]
    assert f"{policy} writes: " in outs[0]
    assert {path.name for path in here.glob("play/vlgym/*/*")} == {"game-001", "game-002"}


class Harm(Walk):
    """Says and calls its actions what would steer a terminal."""

    def task(self) -> str:
        return "\x1b]52;c;aGk=\x07[bold]Go[/bold]\u202e"

    def legal_actions(self) -> list[str]:
        return ["left", "right", "\x1b[2Jright"]

    def act(self, action: str) -> Outcome:
        return replace(super().act(action), feedback=f"\x9b31m{action}\r")


def test_an_environment_does_not_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toys.Harm", Harm, raising=False)
    with installed(make_spec("vlgym/Harm-v0", "toys:Harm")):
        out = play("#3\n:prompt\n:x\x1b[2J\n:oracle\n", "vlgym/Harm-v0", "--seed", SEED)
    assert out.count("]52;c;aGk=[bold]Go[/bold]") == 4  # a prompt's text is made plain for models, too
    assert r"Unknown command ':x\x1b[2J'" in out
    assert r"written as: <action>\x1b[2Jright</action>" in out
    assert r"feedback: \x9b31m\x1b[2Jright\r" in out
    assert [letter for letter in out if not (letter.isprintable() or letter == "\n")] == []


def test_pictures_are_drawn_only_where_asked_for_before_each_reply_and_after_the_last(monkeypatch):
    assert "\x1b" not in play(f"{AWAY}\n")
    drawn: list[np.ndarray] = []
    monkeypatch.setattr("vlgym.play.human.show_picture", lambda image, *_: drawn.append(image))
    play(f"{AWAY}\n", "--picture", "kitty")
    env = make_walk()
    images = [env.reset(seed=3)[0]["image"], env.step(f"<action>{AWAY}</action>")[0]["image"]]
    assert len(drawn) == 2  # before two replies
    assert all(np.array_equal(a, b) for a, b in zip(drawn, images, strict=True))
    play(f"{THERE}\n" * 8, "--picture", "kitty")
    assert len(drawn) == 2 + abs(target_of(3)) + 1
