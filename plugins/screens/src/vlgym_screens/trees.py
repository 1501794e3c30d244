"""Tasks in a tree of screens: ScreensGo reaches one; ScreensFind reads a code there."""

import json
from typing import ClassVar

from vlgym.types import Outcome

from .app import Block, Builder, State, Widget
from .screens import ScreenEnv
from .words import Draws


class ScreensGo(ScreenEnv):
    """ScreensGo: reach a named screen (the form of GUI Exploration Lab).

    Goal: open the screen that the text names; the text tells the screens that lead to it.
    Observation: the screen of a drawn app, 448 x 896 pixels (`device="desktop"`: 1120 x 672).
    Actions: `click(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels;
        `marks=True`: `click 7`), `scroll(up)`, `scroll(down)`, `back()`.
    Reward: 1 for reaching the screen, -0.01 a turn. A click on nothing is told by feedback.
    Endings: terminated on the screen; truncated after 20 turns.
    Success: the screen is shown, whether or not a dialog lies over it.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact, a breadth-first search over the states of the app.
    References: Yan et al., GUI Exploration Lab, 2025.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        depth: clicks between the first screen and the one that is asked for.
    """

    verbs = ("click", "scroll", "back")
    rows, size = 9, "medium"
    depth: int = 3
    level_arguments: ClassVar = (
        {"depth": 2, "rows": 8, "twins": 0, "size": "large", "dialogs": 0},
        {"depth": 3, "rows": 8, "twins": 0, "size": "large", "dialogs": 0},
        {"depth": 3, "rows": 9, "twins": 2, "size": "medium", "dialogs": 0},
        {"depth": 3, "rows": 20, "twins": 2, "size": "medium", "dialogs": 0},
        {"depth": 4, "rows": 24, "twins": 3, "size": "small", "dialogs": 3},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        twins, builder.twins = builder.twins, 0
        inner = builder.tree(self.depth, 3)
        self.target = draws.pick([at for at in inner if len(self.app.route(at)) == self.depth - 1])
        screens, title = self.app.screens, self.app.screens[self.target].title
        elsewhere = [at for at in inner if at not in (self.target, screens[self.target].parent)]
        for at in draws.sample(elsewhere, twins):
            rename_row(builder, at, title)
        builder.add_dialogs(self.dialogs, [at for at in inner if at != self.target])

    def done(self, state: State, seen: int) -> bool:
        return state.screen == self.target

    def task(self) -> str:
        route = self.app.route(self.target)
        steps = " of ".join(f'"{title}"' for title in route)
        return f'Open "{self.app.screens[self.target].title}", which lies in {steps}.'

    def explain(self, action: str) -> str:
        return "it leads there" if action.startswith("click") else super().explain(action)


def rename_row(builder: Builder, screen: int, title: str) -> None:
    """Give the first dead end of a screen the title of another one."""
    screens = builder.app.screens
    for at, block in enumerate(screens[screen].blocks):
        if block[0].kind == "row" and block[0].detail:
            screens[screen].blocks[at] = (block[0]._replace(label=title), *block[1:])
            screens[block[0].leads].title = title
            return


class ScreensFind(ScreenEnv):
    """ScreensFind: read a code somewhere in an app and answer it, or carry it to a field.

    Goal: answer the code that the text asks for; on levels 3 and 4 write it into a field of another
        screen and save.
    Observation: the screen of a drawn app, 448 x 896 pixels (`device="desktop"`: 1120 x 672).
    Actions: `click(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels;
        `marks=True`: `click 7`), `type("words")`, `scroll(up)`, `scroll(down)`, `back()`,
        `answer("words")`.
    Reward: 1 for the right answer or the right field when it is saved, -0.01 a turn.
    Endings: terminated by an answer or by saving; truncated after 30 turns.
    Success: the answer is the code, case and white space aside; or the field holds it, and no other
        was changed.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact, a breadth-first search over the states of the app.
    References: Rawles et al., AndroidWorld, ICLR 2025; Zhou et al., WebArena, ICLR 2024.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        depth: clicks between the first screen and the list with the row.
        carry: whether the code goes into a field.
    """

    verbs = ("click", "type", "scroll", "back", "answer")
    rows, size = 8, "medium"
    depth: int = 1
    carry: bool = False
    level_arguments: ClassVar = (
        {"depth": 0, "rows": 8, "twins": 0, "carry": False, "size": "large", "dialogs": 0},
        {"depth": 2, "rows": 8, "twins": 0, "carry": False, "size": "large", "dialogs": 0},
        {"depth": 2, "rows": 10, "twins": 3, "carry": False, "size": "medium", "dialogs": 0},
        {"depth": 2, "rows": 10, "twins": 3, "carry": True, "size": "medium", "dialogs": 0},
        {"depth": 2, "rows": 18, "twins": 3, "carry": True, "size": "medium", "dialogs": 3},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        # The code stands on a page behind a row of the lowest list.
        inner = builder.tree(self.depth, 2)
        screens, route = self.app.screens, self.app.route
        holder = draws.pick([at for at in inner if len(route(at, itself=True)) == self.depth])
        blocks = [block[0] for block in screens[holder].blocks]
        rows = [each for each in blocks if each.kind == "row" and each.detail]
        row = draws.pick(rows)
        fact = draws.pick([block[0] for block in screens[row.leads].blocks])
        self.code = fact.detail
        self.facts = [(row.leads, fact.label)]

        # The question names the row, by its small print where it has a twin.
        twin = [each.label for each in rows].count(row.label) > 1
        owner = f'"{row.label}"' + (f' with "{row.detail}"' if twin else "")
        place = "".join(f' in "{title}"' for title in route(holder, itself=True))
        self.question = f'"{fact.label}" of {owner}{place}'

        codes = [block[0].detail for each in rows for block in screens[each.leads].blocks]
        others = draws.sample([code for code in codes if code != self.code], 23)
        self.spelled = sorted([*others, self.code])
        if self.carry:
            self._add_form(draws, builder)
        builder.add_dialogs(self.dialogs, inner)

    def _add_form(self, draws: Draws, builder: Builder) -> None:
        form, first = builder.add_screen(builder.title(), 0), self.app.screens[0]
        labels = draws.sample(self.app.domain.fields, 4)
        blocks: list[Block] = [(Widget("field", label, value=at),) for at, label in enumerate(labels)]
        self.app.values = [""] * len(labels)
        self.app.screens[form].blocks = [*blocks, builder.buttons()]
        builder.decorate(form)
        at = draws.number(1, len(first.blocks))
        first.blocks.insert(at, (Widget("row", self.app.screens[form].title, leads=form),))
        chosen = draws.number(0, len(labels) - 1)
        self.wanted = {value: self.code if value == chosen else "" for value in range(len(labels))}
        self.goal = f'the field "{labels[chosen]}" of "{self.app.screens[form].title}"'

    def done(self, state: State, seen: int) -> bool:
        if not self.carry:
            return seen == 1
        values = [(str(state.values[at]), str(goal)) for at, goal in self.wanted.items()]
        return seen == 1 and state.saved and all(_fold(now) == _fold(goal) for now, goal in values)

    def extra_turns(self) -> int:
        return int(not self.carry)

    def judge(self, action: str, feedback: str) -> Outcome:
        is_answer = action.startswith("answer(")
        if is_answer:
            answer = json.loads(action[len("answer(") : -1])
            self.solved = not self.carry and _fold(answer) == _fold(self.code)
        elif self.carry:
            self.solved = self.done(self.state, 1)
        ends = is_answer or self.state.saved
        return Outcome(float(self.solved and ends) - self.step_cost, terminated=ends, feedback=feedback)

    def oracle(self) -> str | None:
        if not self._ended and not self.carry and self.seen == 1:
            return f"answer({json.dumps(self.code)})"
        return super().oracle()

    def words(self) -> list[str]:
        return self.spelled

    def task(self) -> str:
        if self.carry:
            return f"Write the {self.question} into {self.goal}, then save."
        return f"What is the {self.question}? Answer the code."

    def explain(self, action: str) -> str:
        if action.startswith("answer"):
            return "the code is on this screen"
        if action.startswith("type"):
            return "the caret is in the field, so I write the code that I read"
        return "it is on the way" if action.startswith("click") else super().explain(action)


def _fold(words: str) -> str:
    return "".join(words.split()).casefold()
