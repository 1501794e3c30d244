"""The plugin's cards; importing this module imports no environment code."""

from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe

_PARSER = "vlgym_screens.screen_parser:ScreenParser"


def _card(
    title: str, place: str, summary: str, max_turns: int, bound: float, skills: tuple[str, ...], **more: Any
) -> EnvSpec:
    return EnvSpec(
        id=f"vlgym/{title}-v0",
        entry_point=f"vlgym_screens.{place}:{title}",
        summary=summary,
        family="screens",
        max_turns=max_turns,
        skills=skills,
        reply_styles=(_PARSER, "auto", "tag", "json"),
        image_size=(896, 448),
        random_success_below=bound,
        pictures="exact",
        blind=("vlgym_screens.blind:Habit",),
        **more,
    )


CLICK = _card(
    "ScreensClick", "click", "Click the element of a screen that a sentence names.", 1, 0.2, ("grounding", "reading"),
    reward_range=(-0.01, 0.99),
    success_rule="the click lies in the box of the element that is named",
    interaction=("one click", "a screen of an app", "nothing"),
    references=("Li et al., ScreenSpot-Pro, 2025", "Cheng et al., SeeClick, ACL 2024"),
    levels=(
        "ten rows and six controls, as far as they fit",
        "two icons at each row",
        "five rows that have a twin",
        "small",
        "three icons at each row, seven twins",
    ),
    probes=(
        Probe("nothing is there", ("click(0, 1000)",)),
        Probe("a box, and JSON", ("click(start_box='[10,20,30,40]')",)),
        Probe("marks", ("click 3",), kwargs={"marks": True}),
        Probe(
            "pixels of a desktop", ("@raw pyautogui.click(x=900, y=20)",),
            kwargs={"coordinates": "pixels", "device": "desktop"},
        ),
    ),
)  # fmt: skip
GO = _card(
    "ScreensGo", "trees", "Reach a named screen of an app, past dead ends.", 20, 0.1,
    ("grounding", "reading", "navigation"),
    reward_range=(-0.01, 0.99),
    success_rule="the screen that is named is shown",
    interaction=("a click, a scroll, back", "screens of an app", "nothing"),
    references=("Yan et al., GUI Exploration Lab, 2025",),
    levels=(
        "two clicks away",
        "three clicks away",
        "two dead ends with the same name",
        "lists that scroll",
        "four clicks away, three dialogs in the way",
    ),
    probes=(
        Probe("to the end", ("@oracle...",)),
        Probe("back and forth", ("@legal 1", "back()", "back()", "scroll(down)", "click(0, 500)")),
    ),
)  # fmt: skip
SET = _card(
    "ScreensSet", "settings", "Bring settings and fields into a stated state, then save.", 40, 0.1,
    ("grounding", "reading", "planning"),
    reward_range=(-0.01, 0.99),
    success_rule="all that is stated is so, and all else as it was, when it is saved",
    interaction=("a click, words, a scroll, back", "screens of an app", "what was changed"),
    references=("Rawles et al., AndroidWorld, ICLR 2025",),
    levels=(
        "one value on the first screen",
        "three values",
        "two screens",
        "screens that scroll",
        "four values, two dialogs in the way",
    ),
    probes=(
        Probe("to the end", ("@oracle...",)),
        Probe("a change too many", ("@legal 3", "@legal 5", "@oracle...")),
        Probe("words", ('type("Oslo")',)),
    ),
)  # fmt: skip
FIND = _card(
    "ScreensFind", "trees", "Read a code in an app and answer it, or carry it to a field.", 30, 0.15,
    ("reading", "navigation", "memory"),
    reward_range=(-0.01, 0.99),
    success_rule="the code is answered, or the field holds it when it is saved",
    interaction=("a click, words, a scroll, back", "screens of an app", "a code"),
    history_turns=2,
    references=("Rawles et al., AndroidWorld, ICLR 2025", "Zhou et al., WebArena, ICLR 2024"),
    levels=(
        "on a page of the first screen",
        "two clicks further",
        "three rows that have a twin",
        "the code goes into a field of another screen",
        "lists that scroll, three dialogs in the way",
    ),
    probes=(
        Probe("to the end", ("@oracle...",)),
        Probe("a wrong code", ('answer("AAAA")',)),
        Probe("carried", ("@oracle...",), {"level": 3}),
    ),
)  # fmt: skip
LOOK = _card(
    "ScreensLook", "look", "Read codes that are too small, with as few looks closer as needed.", 10, 0.2,
    ("reading", "looking closer"),
    reward_range=(-0.06, 0.99),
    success_rule="the codes are answered",
    interaction=("a look or an answer", "a sheet and its parts, enlarged", "codes that were read"),
    history_turns=2,
    history_images=3,
    references=("Zheng et al., DeepEyes, 2025", "Wu and Xie, V*, CVPR 2024"),
    levels=(
        "12 names, half of the codes legible",
        "12 names",
        "18 names",
        "two codes",
        "eight names that resemble another one",
    ),
    probes=(
        Probe("to the end", ("@oracle...",)),
        Probe("looks", ("zoom(0, 0)", "zoom_out()", "zoom(1000, 1000)", 'answer("no")')),
        Probe("two codes", ("@oracle...",), {"level": 4}),
    ),
)  # fmt: skip


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return the family's cards."""
    return [CLICK, GO, SET, FIND, LOOK]
