"""Figures of the pages: those that a result holds are taken from it, and none of that kind stands without a mark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_docs import PAGES, ROOT, load

FIGURES = load(ROOT / "docs" / "figures.py", "vlgym_docs_figures")
STRICT = ("README.md", "docs/quickstart.md", "docs/studies/README.md")
"""Pages of claims: every number of these kinds is marked; elsewhere those in a sentence with a link to a result."""
RESULT = re.compile(r"\]\([^)\s]*(?:benchmarks/|studies/|environments)[\w-]*\.md[^)]*\)")
KIND = re.compile(
    r"[-+]?\d[\d,]*\.\d+|\d+ ?%|\b\d+ of \d+\b|\d[\d,.]* (?:steps per second|steps/s|tests|environments|families)\b"
)
SIZE = re.compile(r"(\d\S*|one|two|a)[ -]million[ -]parameters?\b|(\d\S*) parameters\b")
TIME = re.compile(r"\d (?:min|s|hours?)\b")
NO_FIGURES = re.compile(
    r"<!-- from here -->.*?<!-- to here -->|```.*?```|<!-- = .*?<!-- \. -->|`[^`]*`|\]\([^)]*\)"
    r"|Python \d\.\d+|Apache-2\.0|(?:[Ll]ambdas?|RL4VLM) 0\.\d(?: and 0\.\d)?|95 %",
    re.DOTALL,
)
"""Code, what is generated, and numbers that name a thing or a setting."""


def unmarked(text: str, *, strict: bool = False) -> list[str]:
    """Numbers that a result may hold, without a mark."""
    text = NO_FIGURES.sub(lambda match: "](result)" if RESULT.fullmatch(match[0]) else " ", text)
    found = [match[0] for match in SIZE.finditer(text)]
    for sentence in re.split(r"\n\s*\n|\n(?=- |\d+\. |\|)|(?<=[.:;])\s", text):
        found += KIND.findall(sentence) if strict or "](result)" in sentence else []
    return found


def test_no_page_quotes_a_result_without_a_mark() -> None:
    wrong = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        if not name.startswith("docs/benchmarks/"):  # results themselves
            found = unmarked(page.read_text(encoding="utf-8"), strict=name in STRICT)
            wrong += [f"{name}: {number}" for number in found]
    assert wrong == [], "mark them as docs/figures.py says, then: make docs"


@pytest.mark.parametrize(
    ("text", "strict", "found"),
    [
        ("Success is 0.97.", True, ["0.97"]),
        ("Success is 0.97.", False, []),
        ("Success is 0.97 ([studies](studies/README.md)). A rate of 0.5.", False, ["0.97"]),
        ("Success is <!-- = cell a | b | c -->0.97<!-- . --> ([studies](../docs/studies/README.md)).", False, []),
        ("11 of 12, 40 %, 38 environments, `0.5`, 95 %, lambda 0.1", True, ["11 of 12", "40 %", "38 environments"]),
        ("the 1.2-million-parameter model, one million parameters, 1,392,736 parameters", False,
         ["1.2-million-parameter", "one million parameters", "1,392,736 parameters"]),
    ],
)  # fmt: skip
def test_a_number_without_a_mark_is_found(text: str, strict: bool, found: list[str]) -> None:
    assert unmarked(text, strict=strict) == found


def test_every_time_of_a_page_of_claims_says_how_many_runs_and_whether_a_download_is_in_it() -> None:
    for name in STRICT:
        paragraphs = re.split(r"\n\s*\n", (ROOT / name).read_text(encoding="utf-8"))
        for paragraph in paragraphs:
            if TIME.search(NO_FIGURES.sub(" ", paragraph)):
                assert re.search(r"\bone run\b", paragraph), paragraph
                assert "ownload" in paragraph or "install" not in paragraph, paragraph


def test_the_first_screen_says_that_nothing_was_measured_on_a_gpu_as_long_as_that_is_so() -> None:
    none = "No GPU run has been made yet" in (ROOT / "docs" / "benchmarks" / "gpu_speed.md").read_text(encoding="utf-8")
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert ("**Not measured**: anything on a GPU" in first_screen) == none


def test_no_line_begins_with_a_mark_because_markdown_would_end_the_paragraph_there() -> None:
    lines = [(page.name, line) for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    assert [found for found in lines if re.match(r"\s*(?:- )?<!-- = (?!ends |magebench |vldac )", found[1])] == []


def test_figures_are_taken_from_tables_and_raw_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"RL4VLM 0.1": (0.5, 0.25), "RL4VLM 0.3": (0.5, 0.5), "VL-DAC": (0.5, 0.75)}
    runs = [
        {
            "arm": arm, "seed": seed,
            "evaluations": [{"update": 0, "success": first}, {"update": 11 + seed, "success": last + seed / 100}],
        }
        for arm, (first, last) in ends.items()
        for seed in (1, 0, 2)
    ]  # fmt: skip
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "small.json").write_text(json.dumps(runs))
    monkeypatch.setattr(FIGURES, "DOCS", tmp_path)
    header = "| x | y |\n|---|---|\n"
    pages = {"t.md": f"# A\n\n{header}| a | **1,234** [1, 2] |\n| ab | 0.046 |\n\n## B c\n\n{header}| a | -7 |\n"}
    page = "<!-- = NAME -->old<!-- . -->"
    for words, shown in {
        "cell t.md#b-c | a | y": "-7",
        "cell t.md | ab | y": "0.046",
        "cell t.md | ab | y | %": "5 %",
        "most t.md | y": "1,234",
        "least t.md#a | y | ab": "0.046",
        "below small | RL4VLM": "3 of 6",
        "updates small | VL-DAC": "11 to 13",
        "each small | VL-DAC | after": "0.75, 0.76 and 0.77",
        "each small | VL-DAC | before": "0.50, 0.50 and 0.50",
        "parameters": "1,392,736",
    }.items():
        assert FIGURES.fill_in(page.replace("NAME", words), pages.get) == f"<!-- = {words} -->{shown}<!-- . -->"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("cell t.md | a | y", "2 cells in t.md, not one"),
        ("cell t.md | b | y", "0 cells in t.md"),
        ("cel t.md | a | y", "there is no figure 'cel'"),
        ("cell t.md", "missing 2 required"),
        ("least t.md | z", "empty"),
        ("parameters -->1<!-- . - -->, <!-- = parameters", "a mark has no end"),
    ],
)
def test_a_mark_that_says_nothing_is_an_error(words: str, complaint: str) -> None:
    table = "| x | y |\n|---|---|\n| a | 1 |\n| a | 2 |\n"
    with pytest.raises(ValueError, match=complaint):
        FIGURES.fill_in(f"<!-- = {words} -->old<!-- . -->", lambda name: table)


def test_the_tiny_model_has_as_many_parameters_as_the_pages_say() -> None:
    from baselines.models.tiny import PARAMETERS, build_tiny

    model, _ = build_tiny()
    assert sum(weights.numel() for weights in model.parameters()) == PARAMETERS
    assert f"({PARAMETERS:,} parameters)" in (ROOT / "docs" / "benchmarks" / "gpu_speed.md").read_text(encoding="utf-8")


def table_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]


@pytest.mark.parametrize(("name", "number", "rows"), [("magebench", "2", 18), ("magebench", "3", 4), ("vldac", "1", 3)])
def test_every_published_row_has_one_of_ours_below_it_or_a_reason(name: str, number: str, rows: int) -> None:
    header, _, *lines = table_of(FIGURES.FIGURES[name](None if name == "vldac" else read_docs, number))
    assert {len(line) for line in lines} == {len(header)}
    published = [at for at, line in enumerate(lines) if line[1] == "paper"]
    assert len(published) == rows
    for at in published:
        ours = at + 1 < len(lines) and lines[at + 1][:2] == [lines[at][0], "**ours**"]
        assert ours != bool(lines[at][-1]), lines[at]


def read_docs(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_ours_beside_the_papers_are_the_numbers_of_the_result_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FIGURES, "DOCS", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "studies").mkdir()
    rows = [{"planner": "global", "policy": "idle", "mean": 41.175, "half_width": 0.125}]
    (tmp_path / "benchmarks" / "magebench_rows.json").write_text(json.dumps({"sokoban": {"rows": rows}}))
    runs = [{"arm": "VL-DAC", "seed": n, "evaluations": [{"success": 0}, {"success": n / 2}]} for n in range(3)]
    (tmp_path / "studies" / "oneroom.json").write_text(json.dumps(runs))
    start = "| start | player | score, mean (95 %) |\n|---|---|---|\n| published | idle | 2.7 (2 to 3) |\n"
    lines = table_of(FIGURES.magebench(lambda name: start, "2"))
    (idle,) = [line for line in lines if line[:2] == ["Idle", "**ours**"]]
    assert idle[2:] == ["", "", "41.18 ± 0.13", "", "", ""]
    assert lines[-1][-3:] == ["", "2.7 (2 to 3)", ""]
    assert [line[4] for line in table_of(FIGURES.vldac(None, "1")) if line[1] == "**ours**"] == [
        "0.50 ± 0.50 (3 seeds)"
    ]
