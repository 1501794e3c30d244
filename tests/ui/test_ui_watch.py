"""The list of episodes, one turn, two runs side by side, curves: the pages of records."""

import html
import math
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from evaluations import COIN, WALK, Counting, toys_installed, write_run
from starlette.testclient import TestClient
from ui_records import ask, draw, open_first, play, row, write, write_log, write_raw

from vlgym.env.rendering import decode_png
from vlgym.play.policies import RandomPolicy, ScriptedPolicy
from vlgym.registry import get_registry
from vlgym.reports.charts import draw_curve
from vlgym.reports.compute import compute_report
from vlgym.reports.text import write_ends, write_interval, write_number
from vlgym.reports.writing import write_report
from vlgym.types import LearnerNotes
from vlgym.ui.index import Index
from vlgym.ui.runs import draw_curves

ROW = re.compile(r'<td><a href="(/turn/[^"]*)">.*?#(\d+)', re.DOTALL)


def numbers(page: str) -> list[int]:
    """Numbers of the episodes that a list shows, in order."""
    return [int(number) for _, number in ROW.findall(page)]


def links(page: str) -> list[str]:
    """Addresses of the episodes that a list shows."""
    return [html.unescape(address) for address, _ in ROW.findall(page)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four episodes: won in 2 turns, lost in 3 with two failures, won at once elsewhere, lost."""
    failed = {"codes": ("ok", "no_action", "bad_json"), "replies": ("", "dunno", "{")}
    return write(
        tmp_path / "runs" / "one",
        play(0, (0.0, 1.0)),
        play(1, (-1.0, 0.5, -2.0), success=False, **failed),
        play(2, (5.0,), env_id="vlgym/Other-v0", replies=("Ünïque <action>right</action>",)),
        play(3, (0.25,), success=False),
    )


def find_run(client: TestClient) -> str:
    """Address of the only run."""
    (address,) = set(re.findall(r'href="(/run/\w+)"', client.get("/").text))
    return address


LISTS = {
    "": [3, 2, 1, 0], "?sort=-return": [2, 0, 3, 1], "?sort=-failures": [1, 0, 2, 3],
    "?result=won": [2, 0], "?result=lost": [3, 1], "?env=vlgym/Other-v0": [2], "?code=bad_json": [1],
    "?q=DUNNO": [1], "?q=%C3%BCn%C3%AFQUE": [2], "?result=lost&sort=return": [1, 3],
    "?sort=seed&result=nonsense&page=-3": [3, 2, 1, 0],
}  # fmt: skip


def test_the_list_filters_searches_and_sorts(folder: Path) -> None:
    client = ask(folder)
    pages = {query: client.get(f"/episodes{query}").text for query in LISTS}
    assert {query: numbers(page) for query, page in pages.items()} == LISTS
    assert "2 of 4 episodes · 2 won of 2 ended (100 %)" in pages["?result=won"]
    codes = re.compile(r'<code class="code">(\w+)</code>')
    assert codes.findall(pages["?result=won"]) == []
    assert codes.findall(pages["?code=bad_json"]) == ["no_action", "bad_json"]


def test_a_long_list_has_pages_and_each_links_the_next(tmp_path: Path) -> None:
    write_raw(tmp_path / "run", *(row(episode=number) for number in range(120)))
    client = ask(tmp_path)
    first = client.get("/episodes?sort=newest").text
    assert numbers(first) == list(range(50))
    (after,) = re.findall(r'rel="next"[^>]*href="([^"]*)"', first)
    assert numbers(client.get(html.unescape(after)).text) == list(range(50, 100))
    assert numbers(client.get("/episodes?sort=newest&page=99").text) == list(range(100, 120))


def refresh(index: Index) -> list[tuple[int, int]]:
    """Number and turns of each episode after a look at the folders."""
    index.refresh()
    return [(episode.number, episode.turns) for episode in index.episodes()]


def test_half_of_a_line_waits_until_it_is_whole_and_nothing_is_read_twice(tmp_path: Path) -> None:
    path = write_raw(tmp_path, row(episode=0), row(episode=1)) / "metadata.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-40])
    index = Index([tmp_path])
    assert refresh(index) == [(0, 1)]
    path.write_bytes(data)
    assert refresh(index) == [(0, 1), (1, 1)]
    assert index.problems() == []


def test_a_run_that_goes_on_and_drops_half_an_episode_is_read_again(tmp_path: Path) -> None:
    begun = row(episode=1, terminated=False, success=False)
    path = write_raw(tmp_path, row(episode=0), begun) / "metadata.jsonl"
    index, size = Index([tmp_path]), path.stat().st_size
    refresh(index)
    assert [episode.over for episode in index.episodes()] == [True, False]
    lines = [{**begun, "reply": "other"}, row(episode=1, turn=1), row(episode=2)]
    write_raw(tmp_path, row(episode=0), *lines)
    assert path.stat().st_size > size
    assert refresh(index) == [(0, 1), (1, 2), (2, 1)]
    assert index.episodes()[1].searched == ["other", "hello"]


def test_slow_numbers_keep_no_page_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, computed, late, table = threading.Event(), [], "are being computed", "Success against turns"

    def compute(run: Any) -> Any:
        ready.wait(30)
        computed.append(run)
        return compute_report(run)

    def read(until: bool = False) -> str:
        for _ in range(600):
            if late not in (page := client.get(address).text) or not until:
                return page
        pytest.fail("the numbers never come")

    monkeypatch.setattr("vlgym.ui.runs.compute_report", compute)
    monkeypatch.setattr("vlgym.ui.runs.WAITS_S", 0.05)
    with toys_installed():
        folder = write_run(tmp_path / "runs" / "one", RandomPolicy())
        client = ask(tmp_path / "runs")
        address = find_run(client)
        for second in range(3):
            os.utime(folder / "metadata.jsonl", (second, second))  # as after more records
            page = read()
            assert [words in page for words in (late, "The newest 10 of 10", table)] == [True, True, False]
        ready.set()
        assert table in read(until=True)
        count = len(computed)
        assert count <= 2  # the first, and the newest
        ready.clear()
        os.utime(folder / "metadata.jsonl", (9, 9))
        page = read()
        assert late in page
        assert table in page  # the last ones are shown meanwhile
        ready.set()
        assert table in read(until=True)
        assert len(computed) == count + 1


def test_folders_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.ui.index.LOOK_EVERY", 0.0)
    index, place = Index([tmp_path]), tmp_path / "deep" / "er"
    assert refresh(index) == []
    write(place, play(0))
    assert refresh(index) == [(0, 2)]
    os.rename(place, tmp_path / ".hidden")
    assert refresh(index) == []


def test_the_recordings_of_a_training_run_are_one_run(tmp_path: Path) -> None:
    run = write_log(tmp_path / "train-001", [0.0, 0.5, 1.0])
    for number in (0, 1):
        write(run / "episodes" / f"update-00000{number}", play(number))
    write(tmp_path / "evaluated", play(2))
    client = ask(tmp_path)
    runs = re.findall(r'<h2><a href="(/run/\w+)">([\w-]+)</a>', client.get("/").text)
    pages = {name: client.get(address).text for address, name in runs}
    assert sorted(pages) == ["evaluated", "train-001"]
    assert numbers(pages["train-001"]) == [1, 0]
    assert 'aria-label="success: from 0 to 1"' in pages["train-001"]
    assert "Learning curves" not in pages["evaluated"]
    assert "&#34;split&#34;: &#34;test&#34;" in pages["evaluated"]
    assert client.get("/run/nothing").status_code == 404


def test_a_turn_shows_prompt_pictures_the_action_and_what_the_learner_wrote(tmp_path: Path) -> None:
    notes = LearnerNotes(0.75, -1.25, ("I go", " <action>"), (0.0, -3.0))
    client = ask(write(tmp_path / "run", play(0, (0.0, 1.0), history=True, notes={1: notes})))
    address, first = open_first(client)
    page = client.get(address[:-1] + "1").text
    assert re.findall(r'class="role">(\w+)<', page) == ["system", "user"]
    for words in (
        '<pre class="reply">I go &lt;action&gt;<mark>right</mark>&lt;/action&gt;</pre>',
        "turn <b>2</b> of 2", "reward +1.00; the episode ended", "<dt>return so far</dt><dd>+1.00</dd>",
        "<dt>value</dt><dd>0.75</dd>", "<dt>advantage</dt><dd>-1.25</dd>",
    ):  # fmt: skip
        assert words in page
    sent = re.findall(r'src="([^"]*)" alt="Picture in the prompt"', page)
    seen = [decode_png(client.get(source).content)[0, 0, 0] for source in sent]
    assert seen == [draw(0)[0, 0, 0], draw(60)[0, 0, 0]]
    (own,) = re.findall(r'<img src="([^"]*)" alt="What the model saw', page)
    assert decode_png(client.get(own).content).shape == (24, 32, 3)
    assert "<dt>advantage" not in first
    assert re.findall(r'<span class="(h\d)" title="([^"]*)">([^<]*)<', page) == [
        ("h0", "100 %", "I go"), ("h6", "4.98 %", " &lt;action&gt;"),
    ]  # fmt: skip


def test_two_runs_stand_side_by_side_on_a_seed_that_both_played(tmp_path: Path) -> None:
    write(tmp_path / "a", play(1), play(7, seed=77))
    write(tmp_path / "b", play(1, (0.0, 0.0, 0.5), success=False), play(8, seed=88))
    client = ask(tmp_path)
    pages = [client.get(link).text for link in links(client.get("/episodes").text)]
    addresses = [address for page in pages for address in re.findall(r'same seed: <a href="(/side/[^"]*)">', page)]
    assert len(addresses) == 2  # one from each side
    last = client.get(addresses[0].rpartition("/")[0] + "/2").text
    for words in ("turn <b>3</b> of 3", "saw at turn 2", "saw at turn 3"):
        assert words in last
    assert last.count("ended at turn 2") == 1  # the other one goes on
    assert 'data-key="ArrowRight"' not in last


def test_the_page_opens_on_runs_with_policy_success_and_a_filmstrip(tmp_path: Path) -> None:
    policies = {"shown": Counting(RandomPolicy()), "grey": Counting(ScriptedPolicy(["eh"]))}
    options = {"episodes": 8, "pictures": ["shown", "grey"]}
    client = ask(tmp_path / "runs")
    with toys_installed():
        folder = write_run(tmp_path / "runs" / "one", policies, [WALK, COIN], **options)
        overall = compute_report(folder)["overall"]["success"]
        page = client.get("/").text
    assert re.findall(r'<h2><a href="/run/\w+">(\w+)</a>', page) == ["one"]
    for words in (
        "<p>counting</p>", f'<b class="num">{write_number(overall["mean"])}</b>',
        f"{write_ends(overall)}</span>", "success, 16 episode(s)",
    ):  # fmt: skip
        assert words in page
    film = re.findall(r'<img loading="lazy" src="(/picture/[^"]*)"', page)
    assert 1 < len(film) <= 6
    assert {client.get(html.unescape(each)).status_code for each in film} == {200}


def test_a_run_shows_results_and_episodes_and_its_report_without_any_right(tmp_path: Path) -> None:
    with toys_installed():
        folder = write_run(tmp_path / "runs" / "one", RandomPolicy(), [WALK, COIN], episodes=11)
        client = ask(tmp_path / "runs")
        address = find_run(client)
        place = address.replace("/run/", "/report/")
        page = client.get(address).text
        for part in compute_report(folder)["parts"].values():
            value, ends = write_interval(part["success"], "rate").split(" ", 1)
            assert f'{value} <span class="ends">{ends}</span>' in page
        assert "Success against turns" in page
        assert len(links(page)) == 20
        assert "The newest 20 of 22" in page
        assert "report.html" not in page
        assert client.get(place).status_code == 404
        write_report(folder)
        assert f'href="{place}">report.html' in client.get(address).text
        answer = client.get(place)
        assert answer.content == (folder / "report.html").read_bytes()
        policy = answer.headers["content-security-policy"]
        rules = {"sandbox", "default-src 'none'", "img-src data:", "frame-ancestors 'none'"}
        assert rules < {each.strip() for each in policy.split(";")}
        assert "script-src" not in policy
        os.rename(folder / "report.html", tmp_path / "elsewhere.html")
        os.symlink(tmp_path / "elsewhere.html", folder / "report.html")
        assert client.get(place).status_code == 404
        lines = (folder / "metadata.jsonl").read_text()
        (folder / "metadata.jsonl").write_text(lines.replace('"episode": 3,', '"episode": 99,'))
        assert "The numbers of this run cannot be computed" in client.get(address).text


def test_an_episode_stands_in_one_scroll_with_a_filmstrip_and_its_rewards(tmp_path: Path) -> None:
    likely = {turn: (0.0, 2 * math.log(1 - 0.25 * turn)) for turn in range(3)}
    notes = {turn: LearnerNotes(0.25 * turn, None, ("a", "b"), likely[turn]) for turn in likely}
    write(tmp_path / "a", play(0, (0.0, -1.0, 1.0), codes=("ok", "no_action"), notes=notes))
    write(tmp_path / "b", play(0))
    client = ask(tmp_path)
    _, page = open_first(client, "?sort=-turns")
    assert re.findall(r'class="(\w*)" title="turn (\d)', page) == [("", "1"), ("failed", "2"), ("gain", "3")]
    whole = page.partition("The whole episode")[2]
    assert re.findall(r'<a href="/turn/[^"]*">turn (\d)</a>', whole) == ["1", "2", "3"]
    assert re.findall(r"reward (\S+\d)", whole) == ["0.00", "−1.00", "+1.00"]
    assert re.findall(r'aria-label="([\w ]+): from (\S+) to (\S+)"', page) == [
        ("reward", "0", "1"), ("value", "0", "0.5"), ("probability of a token", "1", "0.5"),
    ]  # fmt: skip
    (other,) = re.findall(r'same seed: <a href="(/side/[^"]*)">b</a>', page)
    assert client.get(other).status_code == 200


def test_of_a_long_episode_a_window_around_the_turn_is_shown(tmp_path: Path) -> None:
    write_raw(tmp_path / "run", *(row(turn=n, terminated=n == 299) for n in range(300)))
    client = ask(tmp_path)
    address, _ = open_first(client)
    for turn, first in ((0, 1), (150, 101), (299, 201)):
        page = client.get(address.removesuffix("0") + str(turn)).text
        turns = [int(number) for number in re.findall(r">turn (\d+)</a>", page)]
        assert turns == [*range(first, first + 100)]


def test_curves_stand_where_their_values_say(tmp_path: Path) -> None:
    (curve,), others = draw_curves(write_log(tmp_path, [0.0, 0.25, 1.0]))
    assert others == []
    assert curve.points.split() == ["0.00,100.00", "50.00,75.00", "100.00,0.00"]
    assert curve.across == [(0.0, "10"), (25.0, "15"), (50.0, "20"), (75.0, "25"), (100.0, "30")]
    assert (curve.up[0], curve.up[-1], curve.unit) == ((0.0, "0"), (100.0, "1"), "environment steps")


def test_one_spike_does_not_flatten_a_curve_and_steps_are_counted_in_thousands() -> None:
    values = [0.1 + 0.01 * (n % 5) for n in range(60)]
    values[30] = 90.0
    curve = draw_curve("kl", [(500.0 * n, value) for n, value in enumerate(values)], "steps")
    heights = sorted(float(point.split(",")[1]) for point in curve.points.split())
    assert curve.cut == "cut off: 90"
    assert heights[-1] - heights[1] > 70  # the others fill the box
    assert [label for _, label in curve.across] == ["0", "10k", "20k"]
    rising = [(0.0, 0.0), *((float(n), 9.0) for n in range(1, 9))]
    assert draw_curve("return", rising, "steps").cut == ""


def test_the_gallery_shows_every_environment_with_its_picture_and_card(tmp_path: Path) -> None:
    client = ask(tmp_path)
    page = client.get("/gallery").text
    packaged = re.findall(r'src="(/static/first/[^"]*)"', page)
    hint = "draw them: python docs/animate.py --first vlgym/templates/static/first"
    assert len(packaged) == len(get_registry().current()), hint
    assert client.get(packaged[0]).headers["content-type"] == "image/webp"
    address = "/gallery/env/vlgym/NumberLine-v1"
    assert f'href="{address}"' in page
    card = client.get(address).text
    assert "<dt>family</dt>" in card
    assert "/static/first/vlgym-NumberLine-v1.webp" in card
