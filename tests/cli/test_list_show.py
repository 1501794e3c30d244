"""`vlgym list` and `vlgym show`."""

import json
import sys

import pytest
from toys import installed, make_entry, make_spec

from vlgym.cli.app import main

WALK = make_spec("vlgym/Walk-v0", history_turns=1)
FLY = make_spec("vlgym/Fly-v0", family="air", summary="Fly about.")
OUTSIDE = make_spec("outside/Walk-v0", summary="A walk of others.")


def test_list_shows_installed_and_known_environments_and_marks_external_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        installed(WALK, known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}),
        installed(OUTSIDE, distribution="their-walks"),
    ):
        assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "family", "distribution", "difficulty", "oracle", "max", "turns", "summary"]
    rows = {line.split()[0]: line for line in lines[1:] if line.strip()}
    assert rows["vlgym/Walk-v0"].split() == [
        "vlgym/Walk-v0",
        "toys",
        "vlgym-toys",
        "easy",
        "exact",
        "8",
        "Walk",
        "to",
        "the",
        "target.",
    ]
    assert "their-walks (external)" in rows["outside/Walk-v0"]
    assert rows["vlgym/Fly-v0"].rstrip().endswith("not installed: pip install vlgym-air")
    assert "known but not usable here" in lines[-1]


def test_list_as_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        installed(WALK, known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}),
        installed(OUTSIDE, distribution="their-walks"),
    ):
        assert main(["list", "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["vlgym/Walk-v0"] == {
        "id": "vlgym/Walk-v0", "distribution": "vlgym-toys", "installed": True, "external": False, "remedy": "",
        "family": "toys",
        "difficulty": "easy", "oracle": "exact", "max_turns": 8, "summary": "Walk to the target.", "skills": [],
    }  # fmt: skip
    assert rows["outside/Walk-v0"]["external"] is True
    assert (rows["vlgym/Fly-v0"]["installed"], rows["vlgym/Fly-v0"]["remedy"]) == (False, "pip install vlgym-air")


def test_a_distribution_of_others_in_our_name_is_external(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(make_spec("other/Walk-v0"), distribution="vlgym-other"), installed(WALK, distribution="impostor"):
        main(["list", "--json"])
    rows = {row["id"]: row["external"] for row in json.loads(capsys.readouterr().out)}
    assert rows["other/Walk-v0"] is True
    assert rows["vlgym/Walk-v0"] is True


def test_list_can_be_restricted_to_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(WALK, known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}):
        assert main(["list", "--family", "air", "--json"]) == 0
        assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["vlgym/Fly-v0"]
        assert main(["list", "--family", "toy"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vlgym: --family='toy' is not one of ")
    assert "Nearest: toys" in captured.err


def test_show_gives_the_whole_card_without_importing_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec("vlgym/Ghost-v0", "no_such_module_here:Ghost", skills=("a", "b"), kwargs={"size": 3})
    with installed(spec, known={spec.id: make_entry(spec)}):
        assert main(["show", spec.id]) == 0
        text = capsys.readouterr().out
        assert main(["show", spec.id, "--json"]) == 0
        card = json.loads(capsys.readouterr().out)
    for words in (
        "no_such_module_here:Ghost",
        "You stand on the target.",
        "a, b",
        "size 3",
        "vlgym-toys",
        "1111",
        "installed",
        "return 0.25 ± 0.01 (standard error), success 0.25, 100 episodes",
    ):
        assert words in text
    for name in spec.to_dict():
        assert name.replace("_", " ") in text
        assert card[name] == spec.to_dict()[name]
    assert card["registry"]["floor"]["return"] == 0.25
    assert card["distribution"] == "vlgym-toys"
    assert "no_such_module_here" not in sys.modules


def test_show_prints_the_class_docstring_from_the_source(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch
) -> None:
    old, ghost = 'class Old:\n    """Boo.\n\n    Goal: [haunt]."""\n', "class Ghost(Old):\n    x = 1\n"
    (tmp_path / "ghost_town.py").write_text(f"raise SystemExit\n{old}{ghost}")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = make_spec("vlgym/Ghost-v0", "ghost_town:Ghost")
    with installed(spec, known={spec.id: make_entry(spec)}):
        assert main(["show", spec.id]) == 0
        text = capsys.readouterr().out
        assert main(["show", spec.id, "--json"]) == 0
    assert text.endswith("\nBoo.\n\nGoal: [haunt].\n")
    assert json.loads(capsys.readouterr().out)["docstring"] == "Boo.\n\nGoal: [haunt]."
    assert "ghost_town" not in sys.modules


def test_show_tells_how_to_install_a_known_environment(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}):
        assert main(["show", "vlgym/Fly-v0"]) == 0
        assert "not installed: pip install vlgym-air" in capsys.readouterr().out
        assert main(["show", "vlgym/Fly-v0", "--prompt"]) == 2
        assert "pip install vlgym-air" in capsys.readouterr().err


def test_show_prints_the_first_prompt_of_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(WALK):
        prompts = []
        for seed in ("0", "0", "1", "2", "3"):
            assert main(["show", "vlgym/Walk-v0", "--prompt", "--seed", seed]) == 0
            prompts.append(capsys.readouterr().out.split("First prompt, ")[1].split(":\n", 1)[1])
        assert main(["show", "vlgym/Walk-v0", "--prompt", "--arg", "parser=json", "--arg", "image_size=[44, 33]"]) == 0
        styled = capsys.readouterr().out
    assert prompts[0].startswith("[user]\n<image 22x22>\nWalk. Go to cell ")
    assert prompts[0] == prompts[1]
    assert len(set(prompts)) > 1
    assert "Answer with a JSON object" in styled
    assert "<image 44x33>" in styled


def test_show_as_json_holds_the_prompt_without_pixels(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(WALK):
        assert main(["show", "vlgym/Walk-v0", "--prompt", "--json"]) == 0
    message = json.loads(capsys.readouterr().out)["prompt"][0]
    assert message["role"] == "user"
    assert message["content"][0] == {"type": "image", "size": [22, 22]}
    assert message["content"][1]["text"].startswith("Walk.")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["show", "vlgym/Walc-v0"], "No environment 'vlgym/Walc-v0' is known. Nearest: vlgym/Walk-v0"),
        (["show", "Walk"], "is not an environment id"),
        (["show", "vlgym/Walk-v0", "--prompt", "--arg", "penalty"], "must look like name=value"),
        (["show", "vlgym/Walk-v0", "--prompt", "--arg", "max_turn=3"], "Nearest: max_turns"),
        (["show", "vlgym/Walk-v0", "--arg", "max_turns=3"], "--arg goes with --prompt"),
    ],
)
def test_a_mistake_is_one_plain_line_and_status_2(
    call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(WALK):
        assert main(call) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("vlgym: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
