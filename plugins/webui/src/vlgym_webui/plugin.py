"""The plugin's specs and their parts of the MageBench suites. It imports no environment code."""

from dataclasses import replace

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe
from vlgym.registry.suites import SuitePart

PROJECTS = (
    "accordion", "bar-chart", "calculator", "calendar", "cart-stepper", "chat-window", "color-picker",
    "countdown", "dashboard", "kanban", "login-form", "memory-game", "modal-dialog", "music-player",
    "nav-menu", "password-meter", "pricing-table", "profile-card", "quiz", "seat-picker", "slider",
    "sort-table", "star-rating", "tabs", "theme-switch", "tic-tac-toe", "toasts", "todo-list",
    "weather-card", "wizard",
)  # fmt: skip

WEB_UI = EnvSpec(
    id="vlgym/WebUI-v0",
    entry_point="vlgym_webui.web_ui:WebUI",
    summary="Rebuild a small web page in HTML, CSS and JavaScript from a description with pictures.",
    family="webui",
    max_turns=5,
    reward_range=(-1.0, 1.0),
    success_rule="the page as it stands scores an AES of at least 95 percent",
    skills=("reading", "layout", "programming"),
    interaction=("files of code", "web pages", "nothing"),
    reply_styles=("vlgym_webui.code_parser:CodeBlockParser",),
    planners=("online", "global"),
    difficulty="hard",
    image_size=(672, 896),
    oracle="exact",
    random_success_below=0.01,
    figure_episodes=100,  # the test split has 6 projects, and a browser draws every page
    blind=("vlgym_webui.blind:PageWriter",),
    system_requirements=("chromium", "chromium-driver", "fonts-liberation", "fonts-dejavu-core"),
    references=("Zhang et al., MageBench: Bridging Large Multimodal Models to Agents, 2024",),
    probes=(
        Probe("other colours, other sizes", ("@edit color => hue", "@edit font-size => size"), {"project": "tabs"}),
        Probe("other places, other words", ("@edit padding => pad", "@edit e => a"), {"project": "profile-card"}),
        Probe("nearly right", ("@edit border-radius => radius", "@oracle"), {"project": "pricing-table"}),
        Probe("nearly right", ("@edit font-weight => weight", "@oracle"), {"project": "quiz"}),
        Probe("no script", ("@edit addEventListener => add",), {"project": "tabs"}),
        Probe("published", ("@edit color => colour",), {"project": "tabs"}, {"compat": "magebench"}),
    ),
)

WEB_UI_1 = replace(
    WEB_UI,
    id="vlgym/WebUI-v1",
    summary="Rebuild a small web page in HTML, CSS and JavaScript; its looks are in the pictures only.",
    kwargs={"descriptions": "plain"},
    probes=(
        *(Probe("a description without looks", (), {"project": project}) for project in PROJECTS),
        *WEB_UI.probes,
    ),
)
"""The version whose descriptions leave the looks to the pictures, as MageBench's do."""


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return the family's specs."""
    return [replace(WEB_UI, replaced_by=WEB_UI_1.id), WEB_UI_1]


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """All our projects, and 20 of them for the mini set; three repeats of each, as published."""
    items, planners = tuple({"project": project} for project in PROJECTS), ("global", "online")
    return [
        SuitePart("magebench", WEB_UI_1.id, items, repeats=3, planners=planners),
        SuitePart("magebench-mini", WEB_UI_1.id, items[:20], repeats=3, planners=planners),
    ]
