"""Every command that the documentation shows exists, and its own parser accepts it."""

from __future__ import annotations

from collections import Counter

import commands
import pytest
from commands import Wrong, check, find


def test_every_shown_command_is_accepted_by_its_own_parser(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, programs, seen = [], Counter[str](), set()
    for where, text in commands.texts():
        try:
            for command in find(text, where):
                programs[command.words[0]] += 1
                if (command.words, command.mention) not in seen:
                    seen.add((command.words, command.mention))
                    check(command)
        except Wrong as error:
            wrong.append(str(error))
    assert wrong == []
    assert list(tmp_path.iterdir()) == []  # nothing was run
    assert programs["python"] > 80
    assert programs["vlgym"] > 40
    assert programs.keys() >= {"make", "torchrun", "pip", "apt-get"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("python -m baselines.vldac --env vlgym/NumberLine-v0 --lrr 1", "parser refuses"),
        ("python -m baselines.loop --updates many", "parser refuses"),
        ("python -m baselines.vldac --env vlgym/NumbreLine-v0", "no environment vlgym/NumbreLine-v0"),
        ("python -m baselines.vldca --updates 1", "no module"),
        ("python -m baselines.learning.losses --updates 1", "nothing there runs"),
        ("python tests/benchmarks/core_speed.py --writ 1", "parser refuses"),
        ("python tests/benchmarks/no_speed.py", "there is no"),
        ("python -c 'print()'", "neither"),
        ("torchrun --nproc-per-node 2 -m baselines.vldac --lrr 1", "parser refuses"),
        ("vlgym lits", "No such command"),
        ("vlgym show", "Missing argument"),
        ("vlgym play vlgym/NumberLine-v0 --sed 1", "No such option"),
        ("vlgym registry writ", "No such command"),
        ("make tests", "no target 'tests'"),
        ("pip install vlgym-chess", "no distribution vlgym-chess"),
        ("pip install -e plugins/chess", "no folder"),
        ("pip install 'vlgym[chess]'", "no extra"),
        ("pip install vlgym-cards", "on no package index yet; pip install -e plugins/cards"),
        ("apt-get install -y libchess", "libchess"),
        ("poetry install", "none of vlgym"),
    ],
)
def test_a_command_that_does_not_work_is_noticed(line: str, complaint: str) -> None:
    (command,) = find(f"```\n{line}\n```")
    with pytest.raises(Wrong, match=complaint):
        check(command)


def test_a_command_is_found_wherever_a_page_or_docstring_may_show_it() -> None:
    page = "`make demo`, or\n\n    vlgym list  # all\n\n```\nA=1 vlgym doctor && make lint\n```\nor `vlgym\nshow ID`."
    assert [" ".join(command.words) for command in find(page)] == [
        "vlgym doctor", "make lint", "vlgym list", "make demo", "vlgym show ID",
    ]  # fmt: skip
    assert [command.mention for command in find("`vlgym show` or `vlgym show ID`")] == [True, False]
    assert find("```python\nprint('make x')\n```\nThe package `vlgym` may make things.") == []


@pytest.mark.parametrize(
    "text",
    [
        "    python -m baselines.vldac --device\n    cuda python -m baselines.vldac --resume",
        "Call python -m baselines.vldac for this.",
        "then torchrun --nproc-per-node 2",
        "run vlgym doctor",
    ],
)
def test_a_command_in_no_known_place_is_an_error(text: str) -> None:
    with pytest.raises(Wrong, match="neither in backticks"):
        find(text)
