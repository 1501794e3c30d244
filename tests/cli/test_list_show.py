"""`vlgym list` and `vlgym show`."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from PIL import Image
from sources import ROOT
from toys import installed, make_entry, make_spec, make_walk

from vlgym.cli import list_cmd
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


def test_list_shows_families_and_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ("vlgym/Fly-v0", "vlgym/Sail-v0")
    away = {name: make_entry(make_spec(name, family="air"), "vlgym-air") for name in names}
    with installed(WALK, known=away), installed(OUTSIDE, distribution="their-walks"):
        lines = invoke("list").out.splitlines()
        ids = invoke("list", "air").out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line and line[0] != " "}
    assert rows["family"] == ["family", "ids", "what", "it", "asks"]
    assert rows["air"][:5] == ["air", "2", "not", "installed:", "in"]
    assert rows["toys"][1] == "2"
    assert sum("not installed" in line for line in lines) == 1
    assert [line.split()[0] for line in ids if line.startswith("vlgym/")] == [*away]
    assert ids[-1] == "0 installed, 2 known but not usable here"
    assert max(map(len, [*lines, *ids])) <= 80
    for distribution in ("their-walks", "vlgym-other"):
        with installed(make_spec("outside/Walk-v0", family="woods"), distribution=distribution):
            words = " ".join(invoke("list").out.split())
            assert f"{distribution} (external): Walk to the target." in words


def find_row(text: str, start: str) -> list[str]:
    """Return the words of the first line that begins so."""
    return next(line for line in text.splitlines() if line.startswith(start)).split()


def test_list_and_show_put_the_blind_floor_between_floor_and_ceiling_and_rate_by_it() -> None:
    hard = make_spec("vlgym/Walk-v0", difficulty="hard")
    with installed(hard, known={hard.id: make_entry(hard)}):
        listed = invoke("list", hard.family).out
        assert find_row(listed, hard.id)[2] == "?"
        assert "? is not measured" in listed
        assert find_row(invoke("show", hard.id).out, "blind share")[2:] == ["not", "measured"]
    with installed(hard, known={hard.id: make_entry(hard, blind=BLIND)}):
        row = find_row(invoke("list", hard.family).out, hard.id)
        text = invoke("show", hard.id).out
        for label in ("easy", "hard"):
            assert (hard.id in invoke("list", label, hard.family).out) == (label == "easy")
    assert row[1:3] == ["easy", "0.80*"]  # 0.55 of 0.75
    assert "return 0.7 ± 0.02 (searcher), success 0.8 (always left), 100 episodes" in text
    assert "0.73 of the way from floor to ceiling" in text
    assert text.startswith(f"{hard.id}  {hard.family}, easy, ")


def test_list_shows_a_version_that_another_replaces_only_when_asked() -> None:
    with installed(make_spec("vlgym/Walk-v0", replaced_by="vlgym/Walk-v1")):
        assert "vlgym/Walk-v0" not in invoke("list", "easy").out
        words = " ".join(invoke("list", "easy", "--old").out.split())
    assert "(kept for comparison, see vlgym/Walk-v1) Walk to the target." in words


def test_a_refused_claim_is_listed_as_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = PluginRecord("evil", "vlgym-evil", "6.6", specs=(WALK, FLY))
    registry = build_registry([evil], {FLY.id: make_entry(FLY, "vlgym-air")})
    monkeypatch.setattr(list_cmd, "get_registry", lambda: registry)
    walk, fly = (list_cmd.find_entry(registry, env_id) for env_id in (WALK.id, FLY.id))
    assert (walk.external, walk.distribution) == (True, "vlgym-evil")
    assert walk.remedy.startswith("claimed by vlgym-evil, refused: ids of vlgym/ belong to")
    assert (bool(fly.remedy), fly.external, fly.distribution) == (True, False, "vlgym-air")
    assert "claimed by vlgym-evil, refused" in invoke("show", "vlgym/Walk-v0", status=2).err


def test_a_familys_list_and_a_card_say_what_is_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    printed = invoke("list", "cards").out
    assert "pictures:  drawn by the package, the same everywhere\n" in printed
    assert printed.count("Zhai et al.") == 1  # of four cards
    assert "needs:" not in printed
    printed = invoke("list", "webshop").out
    assert "pictures:  drawn by this machine's libraries\n" in printed
    assert "needs:  chromium; " in printed
    project = tomllib.loads((ROOT / "plugins/miniworld/pyproject.toml").read_text())["project"]
    monkeypatch.setattr(list_cmd, "metadata", lambda _: {"Summary": project["description"]})
    printed = invoke("show", "vlgym/OneRoom-v1").out
    assert " ".join(find_row(printed, "origin ")) == "origin Engine and pictures are the package's."
    assert "180" not in printed  # another id's limit


def test_no_card_tells_another_ids_limits() -> None:
    for spec in get_registry().specs.values():
        docstring = list_cmd._read_docstring(spec) if spec.id.startswith("vlgym/") else ""
        sections = list_cmd._read_sections(docstring)
        words = " ".join(sections.get(name, "") for name in ("goal", "actions", "endings"))
        assert not re.search(r"\bFast\b|\bS\d(Fast)?\b|`max_turns` \(\d+; v\d", words), spec.id


def test_show_gives_the_whole_card_of_an_environment_that_cannot_be_made() -> None:
    spec = make_spec("vlgym/Ghost-v0", "no_such_module_here:Ghost", skills=("a", "b"), kwargs={"size": 3})
    with installed(spec, known={spec.id: make_entry(spec)}):
        text = invoke("show", spec.id, "--full").out
    for words in (
        "You stand on the target.", "a, b", "size: 3", "vlgym-toys", "return 0.25 ± 0.01, success 0.25, 100 episodes",
        "not compared, it cannot be made here: PluginError: vlgym/Ghost-v0: cannot import no_such_module_here",
    ):  # fmt: skip
        assert words in text


def test_show_compares_with_the_registry() -> None:
    entry = make_entry(WALK)
    texts = []
    for known in (entry, {**entry, **hash_texts(make_walk())}):
        with installed(WALK, known={WALK.id: known}):
            texts.append(invoke("show", WALK.id, "--full").out)
    assert f"prompt_hash is '{hash_texts(make_walk())['prompt_hash']}', recorded 'aaaa'" in texts[0]
    assert "card, prompt and parser as registry.yaml records" in texts[1]
    assert "target: where to go (an integer from -5 to 5)" in texts[0]


def test_show_prints_the_docstring_or_does_without(tmp_path, monkeypatch) -> None:
    source = 'from toys import Walk\nclass Ghost(Walk):\n    """Boo.\n\n    Goal: [haunt]."""\n'
    (tmp_path / "ghost_town.py").write_text(source)
    (tmp_path / "ghost_ship.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = make_spec("vlgym/Ghost-v0", "ghost_town:Ghost")
    sunk = make_spec("vlgym/Sunk-v0", "ghost_ship:Ghost")
    with installed(spec, sunk):
        assert "\nBoo.\n\nGoal: [haunt].\n" in invoke("show", spec.id, "--full").out
        assert "Walk to the target." in invoke("show", sunk.id, "--full").out


LEVEL = {"oracle": 1.0, "length": 2.0, "se": 0.5, "random": 0.25, "blind": 0.5, "episodes": 30}


def test_a_card_begins_with_the_rules_and_fits_a_screen(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names, words = ("Observation", "Reward", "Endings", "Actions", "Goal"), "very long words of a rule " * 40
    docstring = "T.\n\n" + "".join(f"{name}: {words}\n" for name in names)
    source = f'from toys import Walk\nclass Tale(Walk):\n    """{docstring}"""\n'
    (tmp_path / "tale.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = make_spec(
        "vlgym/Tale-v0", "tale:Tale", summary="word " * 40, success_rule="rule " * 90,
        levels=("far " * 30,) * 6, system_requirements=("libsomething-dev",) * 30,
        references=("A paper",) * 90, skills=("a",) * 90,
    )  # fmt: skip
    with installed(spec, known={spec.id: make_entry(spec, blind=BLIND, levels=[LEVEL] * 6)}):
        lines = invoke("show", spec.id).out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    heads = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert [head for head in heads if head != "word"][:3] == ["goal", "actions", "reward"]
    assert {word for line in lines for word in line.split() if "libs" in word} == {"libsomething-dev,"}


def test_show_tells_how_to_install_a_known_environment() -> None:
    with installed(known={"vlgym/Fly-v0": make_entry(FLY, "vlgym-air")}):
        assert f"not installed: {AIR}" in invoke("show", "vlgym/Fly-v0").out
        assert AIR in invoke("show", "vlgym/Fly-v0", "--prompt", status=2).err


def test_show_prints_the_first_prompt_of_a_seed() -> None:
    with installed(WALK):
        prompts = []
        for seed in ("0", "0", "1", "2", "3"):
            card = invoke("show", WALK.id, "--prompt", "--seed", seed).out
            prompts.append(card.split("First prompt, ")[1].split(":\n", 1)[1])
        words = ("--arg", "parser=json", "--arg", "image_size=[44, 33]")
        styled = invoke("show", WALK.id, "--prompt", *words).out
    assert prompts[0].startswith("[user]\n<image 22x22>\nWalk. Go to cell ")
    assert prompts[0] == prompts[1]
    assert len(set(prompts)) > 1
    assert "Answer with a JSON object" in styled
    assert "<image 44x33>" in styled


def test_show_draws_the_first_picture_of_each_level_in_a_row(tmp_path: Path) -> None:
    spec = make_spec("vlgym/Steps-v0", entry_point="broken_toys:Rising", levels=("near", "far"))
    with installed(spec, WALK):
        for env_id, most in ((spec.id, 2), (WALK.id, 1)):
            invoke("show", env_id, "--picture", tmp_path / "all.png", "--seed", "3")
            picture = np.asarray(Image.open(tmp_path / "all.png"))
            env = make(env_id)
            options = [{"level": level} for level in range(most)] if most > 1 else [None]
            first = [env.reset(seed=3, options=each)[0]["image"] for each in options]
            assert (picture == np.hstack(first)).all()
            assert len({each.tobytes() for each in first}) == most


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["show", "vlgym/Walc-v0"], "No environment 'vlgym/Walc-v0' is known. Nearest: vlgym/Walk-v0"),
        (["list", "toy"], "WORD='toy' is not one of "),
        (["show", "vlgym/Walk-v0", "--arg", "max_turns=3"], "--arg goes with --prompt or --picture"),
    ],
)
def test_a_mistake_is_one_plain_line_and_status_2(call: list[str], message: str) -> None:
    with installed(WALK):
        captured = invoke(*call, status=2)
    assert captured.err.startswith("vlgym: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def is_plain(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_no_card_steers_the_terminal_or_adds_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    spec = make_spec(summary="[bold red]x[/bold red] :smile:", family="toys\nvlgym/False-v0")
    with installed(spec, distribution="vlgym-toys\x1b]52;c;aGk=\x07\nvlgym/Wrong-v0"):
        listed = invoke("list", "easy").out + invoke("list").out
        card = invoke("show", spec.id, "--full").out
    heads = [line.split()[0] for line in listed.splitlines() if line.startswith("vlgym/")]
    assert {spec.id} <= {*heads} <= get_registry().known.keys() | {spec.id}
    assert "[bold red]x[/bold red] :smile:" in card
    assert "x[/bold red] :smile:" in " ".join(listed.split())
    assert is_plain(listed + card)


def test_no_docstring_and_no_prompt_steers_the_terminal(monkeypatch, tmp_path) -> None:
    (tmp_path / "harm_town.py").write_text(
        'from toys import Walk\n\nclass Harm(Walk):\n    "\\x1b]52;c;aGk=\\x07[bold]hi[/bold]\\u202e"\n'
        '    def task(self):\n        return "\\x1b[2J[red]Go[/red]\\x9b31m"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = make_spec("vlgym/Harm-v0", "harm_town:Harm")
    with installed(spec):
        text = invoke("show", spec.id, "--prompt", "--full").out
    assert r"\x1b]52;c;aGk=\x07[bold]hi[/bold]\u202e" in text
    assert "[2J[red]Go[/red]31m" in text  # a prompt's text is made plain for models, too
    assert is_plain(text)


SKILLED = (
    make_spec("vlgym/Walk-v0", skills=("wandering",)),
    make_spec("vlgym/Run-v0", skills=("wandering", "peeping"), difficulty="hard"),
    make_spec("vlgym/Fly-v0", family="air", skills=("peeping",), difficulty="hard"),
)


@pytest.mark.parametrize(("options", "ids"), [
    (["wandering"], ["vlgym/Run-v0", "vlgym/Walk-v0"]), (["peeping"], ["vlgym/Fly-v0", "vlgym/Run-v0"]),
    (["easy", "wandering"], ["vlgym/Walk-v0"]), (["peeping", "hard", "toys"], ["vlgym/Run-v0"]),
    (["wandering", "air"], []), (["medium", "air"], []),
])  # fmt: skip
def test_list_is_filtered_by_words_and_ordered_by_family(options: list[str], ids: list[str]) -> None:
    with installed(*SKILLED):
        text = invoke("list", *options).out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("vlgym/")] == ids
    assert ("No environment has all of these words" in text) == (not ids)


def test_a_card_prints_one_line_for_each_level_with_its_figures() -> None:
    spec = make_spec(levels=("near", "far"))
    levels = [{**LEVEL, "length": length} for length in (2.0, 4.0)]
    with installed(spec, known={spec.id: make_entry(spec, levels=levels)}):
        card = invoke("show", spec.id).out
    lines = [line.split(maxsplit=2)[1:] for line in card.splitlines() if line.startswith("level ")]
    assert lines == [
        ["0", "oracle 1.0 in 2.0 turns, blind 0.5, random 0.25: near"],
        ["1", "oracle 1.0 in 4.0 turns, blind 0.5, random 0.25: far"],
    ]
