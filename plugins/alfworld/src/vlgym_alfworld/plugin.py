"""The plugin's cards: specs only. Importing this module imports no environment code."""

from dataclasses import replace
from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe

_REFERENCES = (
    "Shridhar et al., ALFWorld: Aligning Text and Embodied Environments for Interactive Learning, "
    "ICLR 2021, arXiv 2010.03768",
    "Zhai et al., Fine-Tuning Large Vision-Language Models as Decision-Making Agents via "
    "Reinforcement Learning, NeurIPS 2024",
    "VL-DAC, arXiv 2508.04280",
)
_COMMON: dict[str, Any] = {
    "entry_point": "vlgym_alfworld.household:ALFWorld", "family": "alfworld", "max_turns": 50,
    "success_rule": "the goal test of TextWorld's engine holds", "difficulty": "hard",
    "skills": ("reading", "navigation", "planning", "memory"), "oracle": "planner",
    "interaction": ("a sentence from a list", "a household from above", "where it has been"),
    "image_size": (448, 448), "pictures": "exact", "random_success_below": 0.5,
    "system_requirements": ("gcc", "g++", "make", "cmake"), "figure_episodes": 100,
    "references": _REFERENCES, "blind": ("vlgym_alfworld.blind:Searcher",),
}  # fmt: skip
_TASKS = (
    ("Pick", "pick_and_place_simple", 51.0, "an object in a house and put it where the task says"),
    ("Look", "look_at_obj_in_light", 51.0, "an object in a house and look at it under a lamp"),
    ("Clean", "pick_clean_then_place_in_recep", 52.0,
     "an object in a house, clean it, and put it where the task says"),
    ("Heat", "pick_heat_then_place_in_recep", 52.0,
     "an object in a kitchen, heat it, and put it where the task says"),
    ("Cool", "pick_cool_then_place_in_recep", 52.0,
     "an object in a kitchen, cool it, and put it where the task says"),
    ("Pick2", "pick_two_obj_and_place", 51.0,
     "two objects of a kind in a house and put them where the task says"),
)  # fmt: skip
"""Name, ALFRED task type, best reward of a step, and the summary from `Find` on."""

_PROBES = (
    Probe("published", ("@oracle", "@raw nothing", "@oracle..."), kwargs={"compat": "rl4vlm"}, index=5),
    Probe("no text of what is seen", ("@oracle",) * 2, kwargs={"text_observation": False}, index=5),
    Probe("published: an empty reply", ("@raw ", "@raw ", "@oracle"), kwargs={"compat": "rl4vlm"}, index=6),
)
_REFUSED = ("take cup 1 from cabinet 1", "look", "inventory", "use desklamp #10")
_DOOR_TWICE = ("@legal 0", "@legal -2", "@legal -2", "@legal -1", "@legal -1")
_LISTED = ("@oracle", "@legal 3", "@oracle")
_TEMPLATE_PROBES = (
    Probe("templates: refused", _REFUSED, index=8),
    Probe("templates: a door twice", _DOOR_TWICE, index=9),
    Probe("templates: to the end", ("@oracle...",), index=10),
    Probe("templates: listed all the same", _LISTED, {}, {"actions": "listed"}, index=10),
    Probe("templates: with the engine's text", ("@oracle",) * 3, {}, {"text_observation": True}, index=10),
    Probe("templates: the knowing oracle", ("@oracle...",), {}, {"teacher": "knowing"}, index=10),
)
_LEVELS = (
    "pick and place; at most 9 receptacles, 3 to 6 objects",
    "pick, look or clean; at most 16 receptacles, 8 to 14 objects",
    "clean, heat or cool; 7 to 24 receptacles, 12 to 22 objects",
    "heat, cool or pick two; 12 receptacles or more, 16 to 26 objects, 80 turns",
    "pick two; 16 receptacles or more, 22 to 34 objects, 100 turns",
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return a spec for each task type, and one that mixes them, in two versions."""
    published = _published()
    newer = [_with_templates(spec) for spec in published]
    newer[0] = replace(newer[0], levels=_LEVELS)
    pairs = zip(published, newer, strict=True)
    return [*(replace(old, replaced_by=new.id) for old, new in pairs), *newer]


def _with_templates(spec: EnvSpec) -> EnvSpec:
    """Return the version that needs the picture; `spec` stays, to compare with the papers."""
    return replace(
        spec,
        id=spec.id.replace("-v0", "-v1"),
        kwargs={**spec.kwargs, "actions": "templates", "teacher": "seeking"},
        prompt_version=2,
        random_success_below=0.1,
        probes=(*spec.probes, *_TEMPLATE_PROBES),
        blind=("vlgym_alfworld.blind:Searcher", "vlgym_alfworld.blind:Guesser"),
    )


def _published() -> list[EnvSpec]:
    mixed = EnvSpec(
        id="vlgym/ALFWorld-v0",
        summary="Do household tasks of six types in real room layouts, in words.",
        reward_range=(-1.0, 52.0),
        probes=tuple(Probe(task, ("@oracle...",), {"task": task}, index=7) for _, task, *_ in _TASKS),
        **_COMMON,
    )

    # The same with one type of task each.
    specs = [mixed]
    for name, task, best, summary in _TASKS:
        env_id, summary = f"vlgym/ALFWorld{name}-v0", f"Find {summary}."
        own: dict[str, Any] = {"kwargs": {"tasks": [task]}, "reward_range": (-1.0, best), "probes": _PROBES}
        specs.append(replace(mixed, id=env_id, summary=summary, **own))
    return specs
