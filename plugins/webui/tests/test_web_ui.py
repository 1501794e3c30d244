"""The environment: scores, rewards, planners, losses, information, forked processes."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image
from vlgym_webui.aes import select_targets
from vlgym_webui.board import draw_board
from vlgym_webui.browser import Render
from vlgym_webui.code_parser import write_action
from vlgym_webui.project import list_projects, load_project
from vlgym_webui.studio import STUDIO, Photographs

from vlgym.env import VLEnv
from vlgym.env.spaces import MAX_TEXT
from vlgym.errors import UserError
from vlgym.registry.making import make

ID = "vlgym/WebUI-v0"


def begin(**kwargs: Any) -> tuple[VLEnv, str]:
    """Return an environment after its reset, and the text."""
    env = make(ID, **kwargs)
    return env, env.reset(seed=1)[0]["text"]


@pytest.mark.parametrize(
    "name", ["tabs", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in list_projects())]
)
def test_the_ground_truth_scores_100_and_interactions_show_something(name: str) -> None:
    project = load_project(name)
    evaluation = STUDIO.evaluate(project, project.code())
    assert evaluation.report.score == pytest.approx(100, abs=0.01)
    assert evaluation.render.blocked == {}
    tables = STUDIO.target(project).tables
    assert all(select_targets(tables, moment, compat=False) for moment in range(len(tables)))


def without_script(name: str) -> dict[str, str]:
    """A project's own code, which looks as it should and does nothing."""
    return {file: text for file, text in load_project(name).code().items() if not file.endswith(".js")}


def test_the_global_planner_ends_after_one_reply_and_reads_code_blocks() -> None:
    env, text = begin(planner="global", project="tabs")
    assert "Reply 1 of 1" in text
    assert env.parser.name == "code_blocks"
    _, reward, terminated, truncated, info = env.step(write_action(without_script("tabs")))
    assert (terminated, truncated, info["score"]) == (False, True, pytest.approx(100 * reward))
    assert 0.5 < reward < 0.95


def test_rewards_are_changes_of_the_score_and_add_up_to_it() -> None:
    env, _ = begin(project="tabs")
    code = env.project.code()
    replies = (
        {"index.html": code["index.html"]},
        {"style.css": code["style.css"].replace("#2e3440", "#ff0000")},
        {"style.css": "* { display: none }"},
        code,
    )
    _, rewards, terminated, _, infos = zip(*(env.step(write_action(reply)) for reply in replies), strict=True)
    scores = [info["score"] for info in infos]
    assert scores[0] < scores[1] > scores[2] == 0
    assert rewards == pytest.approx(np.diff([0, *scores]) / 100)
    assert terminated == (False, False, False, True)


def test_long_files_are_shortened_so_that_the_message_fits() -> None:
    env, _ = begin(project="tabs")
    observation, *_ = env.step(write_action({"index.html": "<p>x</p>\n" * 1400, "script.js": "let a = 1;\n" * 200}))
    assert len(observation["text"]) < MAX_TEXT
    assert "characters not shown" in observation["text"]
    assert '"use strict";' in observation["text"]


def test_losses_name_what_went_wrong() -> None:
    env, _ = begin(project="tabs")
    info = env.step("no code at all")[4]
    assert (info["losses"]["Par"], info["page"], info["invalid_action"]) == (100, "not_written", True)
    assert info["interactions"] == ["not_done"] * 2
    info = env.step(write_action({"style.css": "p { color: red }"}))[4]
    assert (info["losses"]["Ren"], info["page"]) == (100, "no_html")
    info = env.step(write_action({"index.html": "<div class='tab'>Overview</div>"}))[4]
    assert info["interactions"] == ["not_found: .tab-2", "not_found: .tab-3"]
    assert min(info["losses"]["Act"], info["losses"]["Mat"]) > 10


def test_a_hostile_reply_is_a_counted_failure_and_the_next_one_is_scored() -> None:
    env, _ = begin(project="tabs")
    code = env.project.code()
    hostile = {**code, "script.js": "fetch('http://127.0.0.1:9/'); location.href = 'http://127.0.0.1:9/';"}
    _, reward, terminated, _, info = env.step(write_action(hostile))
    failure = info["page"]
    assert failure in ("left_page", "timeout")  # a very busy machine may reach the time limit first
    assert (reward, terminated, info["failures"][failure]) == (0, False, 1)
    assert failure in info["vlgym"]["feedback"]
    assert env.step(env.solve())[4]["success"]


def test_the_first_picture_alone_and_the_split_are_settings() -> None:
    env, _ = begin(pictures="first")
    env.reset(seed=1, options={"split": "val"})
    assert env.project.split == "val"
    targets = [path.read_bytes() for path in env.project.pictures]
    assert len(targets) > 1
    alone = draw_board(targets[:1], None, ["initial page"], env.image_size)
    assert np.array_equal(env.image(), alone)


def test_a_project_whose_steps_are_edited_gets_another_target() -> None:
    project = load_project("tabs")
    edited = replace(project, interactions=project.interactions[::-1])
    assert STUDIO.target(edited).pictures != STUDIO.target(project).pictures


def test_an_element_of_a_scrolled_page_is_sought_where_the_photograph_has_it() -> None:
    square, buffer = Image.new("RGB", (100, 100), "white"), io.BytesIO()
    square.paste("black", (40, 40, 60, 60))
    square.save(buffer, "PNG")
    target, own = (Render((), (buffer.getvalue(),), views=((0.0, top),)) for top in (0.0, 300.0))
    assert Photographs(target, own).agree(0, (40, 40, 20, 20), (40, 340, 20, 20)) > 0.99


def test_the_published_scoring_is_a_setting() -> None:
    # In the published form the elements that a switch without effect leaves alone count once more.
    corrected, published = (
        begin(compat=compat, project="theme-switch")[0].step(write_action(without_script("theme-switch")))[4]["score"]
        for compat in (None, "magebench")
    )
    assert corrected + 1 < published < 95


def test_forked_processes_score_with_browsers_of_their_own() -> None:
    make(ID).reset(seed=1)
    STUDIO.evaluate(load_project("tabs"), {"index.html": "<p>warm the parent's browser</p>"})
    started = STUDIO.pool.started
    vector = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="async", project="tabs")
    try:
        vector.reset(seed=[1, 2])
        page = write_action(without_script("tabs"))
        _, rewards, *_ = vector.step((page, page))
    finally:
        vector.close()
    assert rewards[0] == rewards[1] > 0
    assert STUDIO.pool.started == started
    with STUDIO.pool.borrow() as browser:
        assert browser.alive


def test_a_magebench_folder_with_a_long_description_and_no_pictures_plays(tmp_path: Path) -> None:
    page = '<html><body><p data-filter-by="text" data-evalby="text|line-height">Hallo</p></body></html>'
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "tasks.md").write_text("# Lang\n" + "Schöne Seite. " * 1000)
    env, text = begin(project=f"{tmp_path}/", compat="magebench")
    assert env.project.viewport == (1920, 1080)
    assert len(text) < MAX_TEXT
    assert all(action in text for action in env.legal_actions())
    assert env.step(env.solve())[4]["score"] == pytest.approx(100)


def test_a_target_that_cannot_do_its_own_interactions_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<p data-filter-by="text" data-evalby="text">Hi</p>')
    (tmp_path / "tasks.md").write_text("# A")
    card = "title: a\ninteractions:\n  - name: press\n    steps:\n      - click: .gone\n"
    (tmp_path / "project.yaml").write_text(card)
    with pytest.raises(UserError, match=r"interaction 1 \('press'\) fails on the ground truth: not_found: \.gone"):
        begin(project=f"{tmp_path}/")
