"""The plugin's specs; importing this module does not import MiniGrid. No environment has a train split."""

from __future__ import annotations

from vlgym import EnvSpec, hookimpl


def _babyai(title: str, kind: str, summary: str, max_turns: int, random_success_below: float) -> EnvSpec:
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
        figure_episodes=100,
        random_success_below=random_success_below,
        references=("BabyAI, arXiv 1810.08272", "BALROG, arXiv 2411.13543", "minigrid 3.2.0"),
        blind=("vlgym_outside.blind:Rover",),
        family="outside",
        splits=("val", "test"),
        history_turns=16,
    )


BABYAI = (
    _babyai("GoTo", "goto", "Go to the named object in a room of eight.", 64, 0.5),
    _babyai("Pickup", "pickup", "Pick up the named object.", 64, 0.35),
    _babyai("Open", "open", "Open the door of the named colour.", 64, 0.35),
    _babyai("PutNext", "putnext", "Put one object next to another.", 128, 0.2),
    _babyai("PickupGoTo", "pick_up_seq_go_to", "Pick up one object and go to another, in order.", 128, 0.35),
)
"""The five kinds of mission that BALROG plays."""


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [*BABYAI]
