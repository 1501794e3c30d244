"""The environment: a description with pictures in, code out, AES as the score."""

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

from .aes import lose_all
from .board import draw_board
from .browser import Render
from .code_parser import LANGUAGE_OF, CodeBlockParser, read_action, write_action
from .project import CODE_FILES, Project, list_projects, load_project
from .studio import STUDIO, Evaluation

SUCCESS = 95.0  # AES in percent from which the task counts as solved
PERFECT = 99.5  # AES in percent from which there is nothing left to do
MOST_DESCRIPTION = 5000  # longest description in characters; a message has room for 8,192

SMALLEST = {
    "index.html": '<!DOCTYPE html>\n<html>\n<head><link rel="stylesheet" href="style.css"></head>\n'
    '<body><script src="script.js"></script></body>\n</html>',
    "style.css": "body { margin: 0; }",
    "script.js": '"use strict";',
}
# The prompt shows these, and random play writes them. None draws anything.
EXAMPLES = tuple(write_action({file: code}) for file, code in SMALLEST.items())


class BlockPrompt(PromptTemplate):
    """A prompt whose actions are code blocks: each begins on a new line, as fences must."""

    def write_turn(self, *, state: str, actions: Sequence[str], turn: int, max_turns: int) -> str:
        """Fill in the turn text; `turn` counts from 0 and is shown from 1."""
        return self.turn.format(state=state, actions="\n".join(actions), turn=turn + 1, max_turns=max_turns)


class WebUI(VLEnv):
    """WebUI: rebuild a small web page from a description with pictures.

    Goal: write HTML, CSS and JavaScript whose page looks like the target's, at first and after each
        listed interaction.
    Observation: a board of 672 x 896 pixels: the target's screenshots (initial page, then after
        each interaction) and, once there is code, the own page's under them. The text holds the
        description, the interactions by name, the files so far, and the page's failures.
    Actions: one reply holds up to three fenced code blocks, html, css and javascript; each replaces
        a whole file. The listed legal actions are the smallest such blocks; any other code is as
        legal.
    Reward: the change of the score by this reply / 100; so the return is the final score / 100.
        Replies without code change nothing: 0, counted as invalid.
    Score: Atomic Element Similarity in percent (`info["score"]`) of the page as it stands; an
        element counts as far as it is to be seen in the photograph.
    Endings: terminated when the score reaches 99.5; truncated after `max_turns` replies: 5 under
        the Online planner (one draft, four refinements), 1 under the Global planner.
    Success: the score is at least 95 (doing nothing at the interactions can still score about 90).
    Info: `project`, `page` (`not_written`, `ok`, or the failure), `interactions` (`ok` or the
        problem of each), `losses` (percent lost by kind: Par, Ren, Act, Mat, Attr, Vis; they and
        the score make 100), `pages` (AES of each page by itself), `blocked` (refused attempts of
        the present page: network, local_file, dialog, popup, worker, download; and script_error),
        `failures` (of this episode, counted).
    Splits: train, val and test hold different projects: 20, 4 and 6.
    Oracle: exact; it writes the ground truth's own code.

    Pages run in a contained headless Chromium (no network, no local files, limits on time and
    memory), whose virtual clock and random generator give the same page every time. The first code
    starts it.

    References:
        Zhang et al., MageBench: Bridging Large Multimodal Models to Agents, 2024 (protocol and
        AES).

    Args:
        project: name of a shipped project, or path (with a slash) of a project folder; by default
            the seed draws one of the split.
        compat: `None` (corrected AES of visible elements) or `"magebench"` (the published algorithm
            with its mistakes).
        pictures: `"all"` moments, or `"first"`: the initial page only, larger.
        descriptions: `"looks"` (with colours, sizes and distances) or `"plain"`: texts, names and
            interactions only (a project without `plain.md` has one form).
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
        check_choice("pictures", pictures, ("all", "first"))
        check_choice("descriptions", descriptions, ("looks", "plain"))
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
        """Choose the project, by default one of the seed's split; no code exists yet."""
        names = list_projects(options.get("split") or self.seed_split)
        drawn = names[int(rng.integers(len(names)))]
        self.project: Project = options.get("project") or load_project(self._fixed or drawn)
        self.code: dict[str, str] = {}
        self.failures: Counter[str] = Counter()
        self._board: Image | None = None

        # Before the first reply everything counts as lost for want of code.
        count = len(self.project.interactions)
        nothing = (None,) * (1 + count)
        undone = dict.fromkeys(range(count), "not_done")
        render = Render(nothing, nothing, "not_written", undone)
        self.evaluation = Evaluation(lose_all("Par", 1 + count), render)

    def act(self, action: str) -> Outcome:
        """Write the code of one reply and score the page."""
        before = self.score()
        self.code.update(read_action(action) or {})
        self.evaluation = STUDIO.evaluate(self.project, self.code, compat=self.compat)
        self._board = None

        # Failures add up over the episode, so that its record tells of all of them.
        render = self.evaluation.render
        self.failures.update(render.blocked)
        if render.failure:
            self.failures[render.failure] += 1
        if render.problems:
            self.failures["interaction"] += len(render.problems)
        score = self.score()
        return Outcome((score - before) / 100, terminated=score >= PERFECT, feedback=self._describe_page())

    def image(self) -> Image:
        if self._board is None:
            targets = [path.read_bytes() for path in self.project.pictures]
            if not targets:
                targets = [each for each in STUDIO.target(self.project).pictures if each is not None]
            yours = list(self.evaluation.render.pictures) if self.code else None
            names = ["initial page", *(interaction.name for interaction in self.project.interactions)]
            names += [f"picture {number}" for number in range(len(names), len(targets))]
            if self.pictures == "first":
                targets, yours = targets[:1], yours[:1] if yours else None
            self._board = draw_board(targets, yours, names, self.image_size)
        return self._board.copy()

    def task(self) -> str:
        text = self.project.plain if self.descriptions == "plain" else self.project.description
        parts = [text if len(text) <= MOST_DESCRIPTION else f"{text[:MOST_DESCRIPTION]}\n[... shortened]"]
        if self.project.interactions:
            done = "; ".join(f"({n}) {item.name}" for n, item in enumerate(self.project.interactions, 1))
            parts.append(f"The page is compared at first and after each of these, done in order: {done}.")

        # The page must bring its parts together itself: nothing is put into it.
        width, height = self.project.viewport
        assets = ", ".join(self.project.assets)
        files = f"the files {assets} lie beside index.html" if assets else "there are no image files"
        parts.append(
            f"The window is {width} x {height} pixels. index.html must itself link style.css and load "
            f"script.js. There is no network; {files}."
        )
        return "\n\n".join(parts)

    def state_text(self) -> str:
        """Return the page's code so far, shortened where it does not fit, and its errors."""
        if not self.code:
            return "Nothing is written yet. The picture shows the target."
        head = f"The picture shows the target and your page. {self._describe_page()}\nYour files:\n"
        room = MAX_TEXT - len(self.instructions) - len(head) - sum(map(len, EXAMPLES)) - 400
        return head + show_code(self.code, room)

    def legal_actions(self) -> list[str]:
        """The smallest block of each language, in the form in which any code may be written."""
        return list(EXAMPLES)

    def match_action(self, wanted: str) -> str | None:
        """Any code is legal; it is returned with its blocks in a fixed order and form."""
        code = read_action(wanted)
        return write_action(code) if code else None

    def success(self) -> bool:
        return self.score() >= SUCCESS

    def score(self) -> float:
        return self.evaluation.report.score

    def oracle(self) -> str:
        return write_action(self.project.code())

    def think(self, action: str) -> str:
        files = ", ".join(file for file in CODE_FILES if f"```{LANGUAGE_OF[file]}\n" in action)
        return f'I rebuild the page "{self.project.title}" with {files}.'

    def extra_info(self) -> dict[str, Any]:
        report, render = self.evaluation.report, self.evaluation.render
        return {
            "project": self.project.name,
            "page": render.failure or "ok",
            "interactions": [render.problems.get(n, "ok") for n in range(len(self.project.interactions))],
            "losses": dict(report.losses),
            "pages": list(report.pages),
            "blocked": dict(render.blocked),
            "failures": dict(self.failures),
        }

    def _describe_page(self) -> str:
        render = self.evaluation.render
        if render.failure:
            return f"Your page could not be rendered to the end: {render.failure}."
        failed = [f"interaction {number + 1}: {why}" for number, why in sorted(render.problems.items())]
        return f"These failed on your page: {'; '.join(failed)}." if failed else "Your page was rendered."


def show_code(code: dict[str, str], room: int) -> str:
    """Return the files as code blocks in at most `room` characters; long ones lose their middle."""
    shown = write_action(code)
    if len(shown) <= room:
        return shown

    # All files get the same room, with some left for the note that counts the characters left out.
    share = max(0, room // len(code) - 120)
    cut = {}
    for file, text in code.items():
        cut[file] = text
        if len(text) > share:
            note = f"[... {len(text) - share} characters not shown ...]"
            cut[file] = f"{text[: share * 2 // 3]}\n{note}\n{text[len(text) - share // 3 :]}"
    return write_action(cut)[: max(0, room)]
