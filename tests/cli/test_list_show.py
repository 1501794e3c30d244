"""`vlgym list` and `vlgym show`."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sources import ROOT
from toys import installed, make_entry, make_spec, make_walk

from vlgym.cli import list_cmd
from vlgym.cli.app import main
from vlgym.registry import build_registry, get_registry
from vlgym.registry.making import make
from vlgym.registry.plugins import PluginRecord
from vlgym.registry.recorded import hash_texts

WALK = make_spec("vlgym/Walk-v0", history_turns=1)
FLY = make_spec("vlgym/Fly-v0", family="air", summary="Fly about.")
AIR = "in a clone of vlgym's repository: pip install -e plugins/air"
BLIND = {
    "return": 0.7, "se": 0.02, "success": 0.8, "episodes": 100, "policy": "searcher", "success_policy": "always left",
}  # fmt: skip
OUTSIDE = make_spec("outside/Walk-v0", summary="A walk of others.")


def test_list_shows_families_and_one_line_for_each_that_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    away = {name: make_entry(make_spec(name, family="air"), "vlgym-air") for name in ("vlgym/Fly-v0", "vlgym/Sail-v0")}
    with installed(WALK, known=away), installed(OUTSIDE, distribution="their-walks"):
        assert main(["list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert main(["list", "air"]) == 0
        ids = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line and line[0] != " "}
    assert rows["family"] == ["family", "ids", "what", "it", "asks"]
    assert rows["air"][:5] == ["air", "2", "not", "installed:", "in"]
    assert rows["toys"][1] == "2"
    assert sum("not installed" in line for line in lines) == 1
    assert [line.split()[0] for line in ids if line.startswith("vlgym/")] == [*away]
    assert ids[-1] == "0 installed, 2 known but not usable here"
    assert max(map(len, [*lines, *ids])) <= 80


def test_a_family_of_others_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(make_spec("outside/Walk-v0", family="woods"), distribution="their-walks"):
        assert main(["list"]) == 0
    assert "their-walks (external): Walk to the target." in capsys.readouterr().out


def test_list_and_show_put_the_blind_floor_between_floor_and_ceiling_and_rate_by_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hard = make_spec("vlgym/Walk-v0", difficulty="hard")
    with installed(hard, known={hard.id: make_entry(hard, blind=BLIND)}):
        main(["list", hard.family])
        row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(hard.id))
        main(["show", hard.id])
        text = capsys.readouterr().out
        for label in ("easy", "hard"):
            main(["list", label, hard.family])
            assert (hard.id in capsys.readouterr().out) == (label == "easy")
    assert row.split()[1:3] == ["easy", "0.80*"]  # 0.55 of 0.75
    assert "return 0.7 ± 0.02 (searcher), success 0.8 (always left), 100 episodes" in text
    assert "0.73 of the way from floor to ceiling" in text  # 0.55 of 0.75
    assert text.startswith(f"{hard.id}  {hard.family}, easy, ")


def test_list_shows_a_version_that_another_replaces_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(make_spec("vlgym/Walk-v0", replaced_by="vlgym/Walk-v1")):
        main(["list", "easy"])
        assert "vlgym/Walk-v0" not in capsys.readouterr().out
        main(["list", "easy", "--old"])
    words = " ".join(capsys.readouterr().out.split())
    assert "(kept for comparison, see vlgym/Walk-v1) Walk to the target." in words


def test_a_blind_floor_that_nobody_measured_is_never_shown_as_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(WALK, known={WALK.id: make_entry(WALK)}):
        main(["list", WALK.family])
        listed = capsys.readouterr().out
        row = next(line for line in listed.splitlines() if line.startswith(WALK.id))
        main(["show", WALK.id])
        shown = capsys.readouterr().out
    assert row.split()[2] == "?"
    assert "? is not measured" in listed
    assert [line.split()[-2:] for line in shown.splitlines() if line.startswith("blind")] == [["not", "measured"]]


def test_a_distribution_of_others_in_our_name_is_external() -> None:
    with installed(make_spec("other/Walk-v0"), distribution="vlgym-other"):
        assert list_cmd.find_entry(get_registry(), "other/Walk-v0").external


def test_a_refused_claim_is_listed_as_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = PluginRecord("evil", "vlgym-evil", "6.6", specs=(WALK, FLY))
    registry = build_registry([evil], {FLY.id: make_entry(FLY, "vlgym-air")})
    monkeypatch.setattr(list_cmd, "get_registry", lambda: registry)
    walk, fly = (list_cmd.find_entry(registry, env_id) for env_id in (WALK.id, FLY.id))
    assert (walk.external, walk.distribution) == (True, "vlgym-evil")
    assert walk.remedy.startswith("claimed by vlgym-evil, refused: ids of vlgym/ belong to")
    assert (bool(fly.remedy), fly.external, fly.distribution) == (True, False, "vlgym-air")
    assert main(["show", "vlgym/Walk-v0"]) == 2
    assert "claimed by vlgym-evil, refused" in capsys.readouterr().err


def test_a_familys_list_says_where_pictures_are_drawn_and_what_is_original(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["list", "cards"]) == 0
    printed = capsys.readouterr().out
    assert "pictures:  drawn by the package, the same everywhere\n" in printed
    original = next(line for line in printed.splitlines() if line.startswith("original:"))
    assert original.count("Zhai et al.") == 1  # of four cards
    assert "needs:" not in printed
    assert main(["list", "webshop"]) == 0
    printed = capsys.readouterr().out
    assert "pictures:  drawn by this machine's libraries\n" in printed
    assert "needs:  chromium; " in printed


def test_a_card_says_what_is_original_and_its_own_limits_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    summary = tomllib.loads((ROOT / "plugins/miniworld/pyproject.toml").read_text())["project"]["description"]
    monkeypatch.setattr(list_cmd, "metadata", lambda distribution: {"Summary": summary})  # not of the last install
    assert main(["show", "vlgym/OneRoom-v1"]) == 0
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.startswith("origin "))
    assert row.split(maxsplit=1)[1] == "Engine and pictures are the package's."
    assert "180" not in printed
    for spec in get_registry().specs.values():
        docstring = list_cmd._read_docstring(spec) if spec.id.startswith("vlgym/") else ""
        sections = list_cmd._read_sections(docstring)
        words = " ".join(sections.get(name, "") for name in ("goal", "actions", "endings"))
        assert not re.search(r"\bFast\b|\bS\d(Fast)?\b|`max_turns` \(\d+; v\d", words), spec.id


def test_list_can_be_restricted_to_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(WALK, known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}):
        assert main(["list", "toy"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vlgym: WORD='toy' is not one of ")
    assert "Nearest: toys" in captured.err


def test_show_gives_the_whole_card_of_an_environment_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec("vlgym/Ghost-v0", "no_such_module_here:Ghost", skills=("a", "b"), kwargs={"size": 3})
    with installed(spec, known={spec.id: make_entry(spec)}):
        assert main(["show", spec.id, "--full"]) == 0
        text = capsys.readouterr().out
    for words in (
        "You stand on the target.",
        "a, b",
        "size: 3",
        "vlgym-toys",
        "return 0.25 ± 0.01, success 0.25, 100 episodes",
        "not compared, it cannot be made here: PluginError: vlgym/Ghost-v0: cannot import no_such_module_here",
    ):
        assert words in text


def test_show_compares_with_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    entry = make_entry(WALK)
    texts = []
    for known in (entry, {**entry, **hash_texts(make_walk())}):
        with installed(WALK, known={WALK.id: known}):
            assert main(["show", WALK.id, "--full"]) == 0
            texts.append(capsys.readouterr().out)
    assert f"prompt_hash is '{hash_texts(make_walk())['prompt_hash']}', recorded 'aaaa'" in texts[0]
    assert "card, prompt and parser as registry.yaml records" in texts[1]
    assert "target: where to go (an integer from -5 to 5)" in texts[0]


def test_show_prints_the_class_docstring_and_does_without_where_the_module_exits(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch
) -> None:
    source = 'from toys import Walk\nclass Ghost(Walk):\n    """Boo.\n\n    Goal: [haunt]."""\n'
    (tmp_path / "ghost_town.py").write_text(source)
    (tmp_path / "ghost_ship.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec, sunk = make_spec("vlgym/Ghost-v0", "ghost_town:Ghost"), make_spec("vlgym/Sunk-v0", "ghost_ship:Ghost")
    with installed(spec, sunk):
        assert main(["show", spec.id, "--full"]) == 0
        assert capsys.readouterr().out.partition("\nBoo.\n\nGoal: [haunt].\n")[1]
        assert main(["show", sunk.id, "--full"]) == 0
    assert "Walk to the target." in capsys.readouterr().out


def test_a_card_begins_with_goal_actions_and_reward_and_fits_a_screen(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = "very long words of a rule " * 40
    sections = "".join(f"{name}: {words}\n" for name in ("Observation", "Reward", "Endings", "Actions", "Goal"))
    (tmp_path / "tale.py").write_text(f'from toys import Walk\nclass Tale(Walk):\n    """T.\n\n{sections}"""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    long = {"system_requirements": ("libsomething-dev",) * 30, "references": ("A paper",) * 90, "skills": ("a",) * 90}
    spec = make_spec(
        "vlgym/Tale-v0", "tale:Tale", summary="word " * 40, success_rule="rule " * 90, levels=("far " * 30,) * 6, **long
    )
    levels = [{"oracle": 1.0, "length": 2.0, "se": 0.5, "random": 0.25, "blind": 0.5, "episodes": 30}] * 6
    with installed(spec, known={spec.id: make_entry(spec, blind=BLIND, levels=levels)}):
        assert main(["show", spec.id]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    heads = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert [head for head in heads if head != "word"][:3] == ["goal", "actions", "reward"]
    assert {word for line in lines for word in line.split() if word.startswith("libs")} == {"libsomething-dev,"}


def test_show_tells_how_to_install_a_known_environment(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}):
        assert main(["show", "vlgym/Fly-v0"]) == 0
        assert f"not installed: {AIR}" in capsys.readouterr().out
        assert main(["show", "vlgym/Fly-v0", "--prompt"]) == 2
        assert AIR in capsys.readouterr().err


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


def test_show_draws_the_first_picture_of_each_level_in_a_row(tmp_path: Path) -> None:
    spec = make_spec("vlgym/Steps-v0", entry_point="broken_toys:Rising", levels=("near", "far"))
    with installed(spec, WALK):
        for env_id, most in ((spec.id, 2), (WALK.id, 1)):
            assert main(["show", env_id, "--picture", str(tmp_path / "all.png"), "--seed", "3"]) == 0
            shown = np.asarray(Image.open(tmp_path / "all.png"))
            env = make(env_id)
            first = [
                env.reset(seed=3, options={"level": level} if most > 1 else None)[0]["image"] for level in range(most)
            ]
            assert (shown == np.hstack(first)).all()
            assert len({each.tobytes() for each in first}) == most


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["show", "vlgym/Walc-v0"], "No environment 'vlgym/Walc-v0' is known. Nearest: vlgym/Walk-v0"),
        (["show", "Walk"], "is not an environment id"),
        (["show", "vlgym/Walk-v0", "--prompt", "--arg", "penalty"], "must look like name=value"),
        (["show", "vlgym/Walk-v0", "--prompt", "--arg", "max_turn=3"], "Nearest: max_turns"),
        (["show", "vlgym/Walk-v0", "--arg", "max_turns=3"], "--arg goes with --prompt or --picture"),
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


@pytest.mark.parametrize("columns", ["80", "160"])
def test_no_card_steers_the_terminal_or_adds_a_line_that_looks_like_an_environment(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    spec = make_spec("vlgym/Walk-v0", summary="[bold red]x[/bold red] :smile:", family="toys\nvlgym/False-v0")
    with installed(spec, distribution="vlgym-toys\x1b]52;c;aGk=\x07\nvlgym/Wrong-v0"):
        assert main(["list", "easy"]) == 0
        listed = capsys.readouterr().out
        easy = {each.env_id for each in list_cmd.list_entries(get_registry()) if each.difficulty == "easy"}
        assert main(["list"]) == 0
        listed += capsys.readouterr().out
        assert main(["show", spec.id, "--full"]) == 0
        shown = capsys.readouterr().out
    words = [line.split()[0] for line in listed.splitlines() if line.split() and line[0] != " "]
    assert {spec.id} <= {word for word in words if word.startswith("vlgym/")} <= easy
    assert "[bold red]x[/bold red] :smile:" in shown
    assert "x[/bold red] :smile:" in " ".join(listed.split())
    for text in (listed, shown):
        assert [letter for letter in text if not (letter.isprintable() or letter == "\n")] == []


def test_show_prints_a_docstring_and_a_prompt_that_mean_harm_safely(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    (tmp_path / "harm_town.py").write_text(
        'from toys import Walk\n\nclass Harm(Walk):\n    "\\x1b]52;c;aGk=\\x07[bold]hi[/bold]\\u202e"\n'
        '    def task(self):\n        return "\\x1b[2J[red]Go[/red]\\x9b31m"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = make_spec("vlgym/Harm-v0", "harm_town:Harm")
    with installed(spec):
        assert main(["show", spec.id, "--prompt", "--full"]) == 0
    text = capsys.readouterr().out
    assert r"\x1b]52;c;aGk=\x07[bold]hi[/bold]\u202e" in text
    assert "[2J[red]Go[/red]31m" in text  # a prompt's text is made plain for models, too
    assert [letter for letter in text if not (letter.isprintable() or letter == "\n")] == []


SKILLED = (
    make_spec("vlgym/Walk-v0", skills=("wandering",)),
    make_spec("vlgym/Run-v0", skills=("wandering", "peeping"), difficulty="hard"),
    make_spec("vlgym/Fly-v0", family="air", skills=("peeping",), difficulty="hard"),
)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["wandering"], ["vlgym/Run-v0", "vlgym/Walk-v0"]),
        (["peeping"], ["vlgym/Fly-v0", "vlgym/Run-v0"]),
        (["easy", "wandering"], ["vlgym/Walk-v0"]),
        (["peeping", "hard", "toys"], ["vlgym/Run-v0"]),
        (["wandering", "air"], []),
        (["medium", "air"], []),
    ],
)
def test_list_is_filtered_by_skill_and_difficulty_and_ordered_by_family(
    options: list[str], ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(*SKILLED):
        assert main(["list", *options]) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("vlgym/")] == ids
    assert ("No environment has all of these words" in text) == (not ids)


def test_a_wrong_word_is_named_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(*SKILLED):
        assert main(["list", "wanderign"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "WORD='wanderign' is not one of " in said
    assert "Nearest: wandering" in said


def test_a_narrow_list_fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with installed(*SKILLED):
        assert main(["list", "hard"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "difficulty", "blind"]
    assert max(map(len, lines)) <= 60


def test_a_card_prints_one_line_for_each_level_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec(levels=("near", "far"))
    levels = [{"oracle": 1.0, "length": n, "se": 0.5, "random": 0.25, "blind": 0.5, "episodes": 30} for n in (2.0, 4.0)]
    with installed(spec, known={spec.id: make_entry(spec, levels=levels)}):
        assert main(["show", spec.id]) == 0
    lines = [line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines() if line.startswith("level ")]
    assert lines == [
        ["0", "oracle 1.0 in 2.0 turns, blind 0.5, random 0.25: near"],
        ["1", "oracle 1.0 in 4.0 turns, blind 0.5, random 0.25: far"],
    ]
