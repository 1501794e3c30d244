"""The plugin's cards; this imports neither MiniGrid nor Crafter. There is no train split."""

from typing import Any

from vlgym import EnvSpec, hookimpl

_SHARED: dict[str, Any] = {
    "family": "outside",
    "splits": ("val", "test"),
    "history_turns": 16,
    "figure_episodes": 100,
}


def _babyai(title: str, kind: str, summary: str, max_turns: int, random_success: float) -> EnvSpec:
    return EnvSpec(
        id=f"vlgym/BabyAI{title}-v0",
        entry_point="vlgym_outside.babyai:BabyAI",
        summary=summary,
        max_turns=max_turns,
        reward_range=(0.0, 1.0),
        success_rule="the mission is accomplished",
        kwargs={"kind": kind},
        skills=("navigation", "instruction", "partial view"),
        interaction=("a turn, a step or a deed", "the part of a grid ahead", "where it has been"),
        oracle="planner",
        random_success_below=random_success,
        references=("BabyAI, arXiv 1810.08272", "BALROG, arXiv 2411.13543", "minigrid 3.2.0"),
        blind=("vlgym_outside.blind:Rover",),
        **_SHARED,
    )


BABYAI = (
    _babyai("GoTo", "goto", "Go to the named object in a room of eight.", 64, 0.5),
    _babyai("Pickup", "pickup", "Pick up the named object.", 64, 0.35),
    _babyai("Open", "open", "Open the door of the named colour.", 64, 0.35),
    _babyai("PutNext", "putnext", "Put one object next to another.", 128, 0.2),
    _babyai("PickupGoTo", "pick_up_seq_go_to", "Pick up one object and go to another, in order.", 128, 0.35),
)  # the five kinds of mission that BALROG plays

# In BALROG an episode may last 2,000 turns; the 20 that it publishes with pictures ended in death by
# turn 471.
CRAFTER = EnvSpec(
    id="vlgym/Crafter-v0",
    entry_point="vlgym_outside.survival:Crafter",
    summary="Survive in a wilderness, and unlock achievements.",
    max_turns=500,
    reward_range=(-0.9, 1.1),
    success_rule="at least 8 of the 22 achievements are unlocked",
    skills=("survival", "planning", "partial view"),
    interaction=("a step or a deed", "the map around, with icons and numbers", "where it has been"),
    difficulty="hard",
    oracle="none",
    random_success_below=0.05,
    references=("Crafter, arXiv 2109.06780", "BALROG, arXiv 2411.13543", "crafter 1.8.3"),
    **_SHARED,
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [*BABYAI, CRAFTER]
