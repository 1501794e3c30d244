"""The environment: a description with pictures in, code out, AES as the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption, one_of
from vlgym.env.seeding import SPLITS
from vlgym.env.spaces import MAX_TEXT
from vlgym.errors import check_choice
from vlgym.types import Image, Outcome, Parser

from .aes import Report, lose_all
from .board import draw_board
from .code_parser import FILE_OF, LANGUAGE_OF, CodeBlockParser, read_action, write_action
from .project import CODE_FILES, Project, list_projects, load_project
from .studio import STUDIO, Evaluation

SUCCESS = 95.0
"""AES in percent from which the task counts as solved."""

PERFECT = 99.5
"""AES in percent from which there is nothing left to do."""

MOST_DESCRIPTION = 5000
"""Longest description in the prompt, in characters; a message has room for 8,192 in all."""

PICTURES = ("all", "first")
DESCRIPTIONS = ("looks", "plain")
EXAMPLES = (
    write_action({"index.html": "<!DOCTYPE html>\n<html>\n<head><link rel=\"stylesheet\" href=\"style.css\"></head>\n"
                                "<body><script src=\"script.js\"></script></body>\n</html>"}),
    write_action({"style.css": "body { margin: 0; }"}),
    write_action({"script.js": "\"use strict\";"}),
)  # fmt: skip
"""The smallest code of each kind: what the prompt shows and random play writes. None of it draws anything."""


class BlockPrompt(PromptTemplate):
    """A prompt whose actions are code blocks: each begins on a new line, as fences must."""

    def write_turn(self, *, state: str, actions: Sequence[str], turn: int, max_turns: int) -> str:
        """Fill in the turn text; `turn` counts from 0 and is shown from 1."""
        return self.turn.format(state=state, actions="\n".join(actions), turn=turn + 1, max_turns=max_turns)


class WebUI(VLEnv):
    """WebUI: rebuild a small web page from a description with pictures.

    Goal: write HTML, CSS and JavaScript whose page looks like the target's, at first and after each listed interaction.
    Observation: a board of 672 x 896 pixels with the target's screenshots (initial page first, then after each
        interaction) and, once something is written, the own page's under them. The text holds the description, the
        interactions by name, the files so far, and what failed on the page.
    Actions: one reply holds up to three fenced code blocks, html, css and javascript; each replaces a whole file. The
        listed legal actions are the smallest such blocks; any other code is as legal.
    Reward: the change of the score by this reply, divided by 100; so the return is the final score / 100.
        Replies without code change nothing: 0, counted as invalid.
    Score: Atomic Element Similarity in percent (`info["score"]`), of the page as it stands; an element counts only as
        far as it is to be seen in the photograph.
    Endings: terminated when the score reaches 99.5; truncated after `max_turns` replies: 5 under the Online planner
        (one draft, four refinements), 1 under the Global planner.
    Success: the score is at least 95 (doing nothing at the interactions can still score about 90).
    Info: `project`, `page` (`not_written`, `ok`, or why it was not rendered), `interactions` (`ok` or the problem of
        each), `losses` (percent lost by kind: Par, Ren, Act, Mat, Attr, Vis; they and the score make 100), `pages`
        (AES of each page by itself), `blocked` (what the present page tried and was refused: network, local_file,
        dialog, popup, worker, download; and script_error), `failures` (what went wrong in this episode, counted).
    Splits: train, val and test hold different projects: 20, 4 and 6.
    Oracle: exact; it writes the ground truth's own code.

    Pages run in a contained headless Chromium (no network, no local files, limits on time and memory), with a virtual
    clock and a random generator that give the same page every time. It is started when the first code is scored.

    References:
        Zhang et al., MageBench: Bridging Large Multimodal Models to Agents, 2024 (protocol and AES).

    Args:
        project: name of a shipped project, or path (with a slash) of a project folder; by default the seed draws one
            of the split.
        compat: `None` (corrected AES, of what is seen) or `"magebench"` (the published algorithm with its mistakes).
        pictures: `"all"` moments, or `"first"`: the initial page only, larger.
        descriptions: `"looks"`: colours, sizes and distances stand in the description, too; `"plain"`: texts, names and
            interactions only, and the looks are left to the pictures (a project without `plain.md` has one form).
        parser: by default the code-block parser under both planners.
        **kwargs: of `VLEnv`.

    Options of `reset`: `project`, `split`.

    Raises:
        UserError: an argument or option is out of its range, or Chromium is missing.
    """

    prompt = BlockPrompt(
        version=1,
        instructions=(
            "You are a front-end developer. Rebuild the web page in the picture with HTML, CSS and "
            "JavaScript.\n\n{task}\n\n"
            "Your elements are compared with the target's by place, size, text and style. {format}"
        ),
        turn="{state}\n\nReply {turn} of {max_turns}. Any code may be written; the smallest blocks are:\n{actions}",
    )
    reset_options: ClassVar = {
        "project": ResetOption(
            "the project", "the name of a shipped project, or the path (with a slash) of a project's folder",
            lambda env, value: load_project(value), ("no such project", 1, ""),
        ),
        "split": one_of("the split of the project that is drawn", SPLITS),
    }  # fmt: skip

    def __init__(
        self,
        *,
        project: str | None = None,
        compat: str | None = None,
        pictures: str = "all",
        descriptions: str = "looks",
        parser: str | Parser | None = None,
        max_turns: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("compat", compat, (None, "magebench"))
        check_choice("pictures", pictures, PICTURES)
        check_choice("descriptions", descriptions, DESCRIPTIONS)
        if project is not None:
            load_project(project)
        if max_turns is None and kwargs.get("planner") == "global":
            max_turns = 1
        super().__init__(parser=parser or CodeBlockParser(), max_turns=max_turns, **kwargs)
        self.compat = compat == "magebench"
        self.pictures = pictures
        self.descriptions = descriptions
        self._fixed = project

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Choose the project, by default one of the split that the seed belongs to; nothing is written yet."""
        names = list_projects(options.get("split") or self.seed_split)
        drawn = names[int(rng.integers(len(names)))]
        self.project: Project = options.get("project") or load_project(self._fixed or drawn)
        self.code: dict[str, str] = {}
        self.evaluation: Evaluation | None = None
        self.failures: Counter[str] = Counter()
        self._board: Image | None = None

    def act(self, action: str) -> Outcome:
        """Write the code of one reply and score the page."""
        before = self._report().score
        self.code.update(read_action(action) or {})
        self.evaluation = STUDIO.evaluate(self.project, self.code, compat=self.compat)
        self._board = None
        render = self.evaluation.render
        self.failures.update(render.blocked)
        if render.failure:
            self.failures[render.failure] += 1
        if render.problems:
            self.failures["interaction"] += len(render.problems)
        score = self._report().score
        return Outcome((score - before) / 100, terminated=score >= PERFECT, feedback=self._describe_page())

    def image(self) -> Image:
        """The board of target and own pictures."""
        if self._board is None:
            targets = [path.read_bytes() for path in self.project.pictures]
            if not targets:
                targets = [picture for picture in STUDIO.target(self.project).pictures if picture is not None]
            yours = list(self.evaluation.render.pictures) if self.evaluation else None
            names = ["initial page", *(interaction.name for interaction in self.project.interactions)]
            names += [f"picture {number}" for number in range(len(names), len(targets))]
            if self.pictures == "first":
                targets, yours = targets[:1], yours[:1] if yours else None
            self._board = draw_board(targets, yours, names, self.image_size)
        return self._board.copy()

    def task(self) -> str:
        """The description, the interactions, and what the page must look after itself."""
        width, height = self.project.viewport
        text = self.project.plain if self.descriptions == "plain" else self.project.description
        parts = [text if len(text) <= MOST_DESCRIPTION else f"{text[:MOST_DESCRIPTION]}\n[... shortened]"]
        if self.project.interactions:
            done = "; ".join(f"({n}) {item.name}" for n, item in enumerate(self.project.interactions, 1))
            parts.append(f"The page is compared at first and after each of these, done in order: {done}.")
        assets = ", ".join(self.project.assets)
        parts.append(
            f"The window is {width} x {height} pixels. index.html must itself link style.css and load script.js. "
            f"There is no network; "
            f"{f'the files {assets} lie beside index.html' if assets else 'there are no image files'}."
        )
        return "\n\n".join(parts)

    def state_text(self) -> str:
        """Return the page's code so far, shortened where it does not fit, and its errors."""
        if self.evaluation is None:
            return "Nothing is written yet. The picture shows the target."
        head = f"The picture shows the target and your page. {self._describe_page()}\nYour files:\n"
        room = MAX_TEXT - len(self.instructions) - len(head) - sum(map(len, EXAMPLES)) - 400
        return head + show_code(self.code, room)

    def legal_actions(self) -> list[str]:
        """The smallest block of each language, in the form in which any code may be written."""
        return list(EXAMPLES)

    def match_action(self, wanted: str) -> str | None:
        """Any code is legal; what is returned has its blocks in a fixed order and form."""
        code = read_action(wanted)
        return write_action(code) if code else None

    def success(self) -> bool:
        """True if the page as it stands scores at least 95."""
        return self._report().score >= SUCCESS

    def score(self) -> float:
        """AES in percent of the page as it stands."""
        return self._report().score

    def oracle(self) -> str:
        """The ground truth's own code."""
        return write_action(self.project.code())

    def think(self, action: str) -> str:
        """One line before the code."""
        files = ", ".join(file for file in CODE_FILES if f"```{LANGUAGE_OF[file]}\n" in action)
        return f'I rebuild the page "{self.project.title}" with {files}.'

    def extra_info(self) -> dict[str, Any]:
        """See `Info` of the class."""
        report, render = self._report(), self.evaluation.render if self.evaluation else None
        return {
            "project": self.project.name,
            "page": render.failure or "ok" if render else "not_written",
            "interactions": [
                render.problems.get(n, "ok") if render else "not_done" for n in range(len(self.project.interactions))
            ],
            "losses": dict(report.losses),
            "pages": list(report.pages),
            "blocked": dict(render.blocked) if render else {},
            "failures": dict(self.failures),
        }

    def _report(self) -> Report:
        if self.evaluation is None:
            return lose_all("Par", 1 + len(self.project.interactions))
        return self.evaluation.report

    def _describe_page(self) -> str:
        if self.evaluation is None:
            return ""
        render = self.evaluation.render
        if render.failure:
            return f"Your page could not be rendered to the end: {render.failure}."
        failed = [f"interaction {number + 1}: {problem}" for number, problem in sorted(render.problems.items())]
        return f"These failed on your page: {'; '.join(failed)}." if failed else "Your page was rendered."


def show_code(code: dict[str, str], room: int) -> str:
    """Return the files as code blocks in at most `room` characters; the middle of what does not fit is left out and
    counted.
    """
    shown = write_action(code)
    if len(shown) <= room:
        return shown
    share = max(0, room // max(1, len(code)) - 120)
    cut = {}
    for file in FILE_OF.values():
        if file in code:
            text = code[file]
            if len(text) > share:
                note = f"[... {len(text) - share} characters not shown ...]"
                text = f"{text[: share * 2 // 3]}\n{note}\n{text[len(text) - share // 3 :]}"
            cut[file] = text
    return write_action(cut)[: max(0, room)]
