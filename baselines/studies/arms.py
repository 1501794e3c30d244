"""The studies as data: environments, arms, budgets. `baselines/study.py` runs them.

All use the tiny model, warm-started from a noisy oracle as the learners' default is. Rates, clip range and batch sizes
are the learners' defaults in every arm; an arm sets what it is named after and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TINY = ("--lr", "3e-4", "--gamma", "0.9", "--eval-episodes", "200", "--save-every", "10")


@dataclass(frozen=True)
class Arm:
    """One learner with its options."""

    label: str
    module: str
    options: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The label as part of a folder's name."""
        return "".join(c if c.isalnum() or c in ".-" else "_" for c in self.label.lower())


@dataclass(frozen=True)
class Study:
    """A figure's worth of runs.

    Attributes:
        title, question: what the page says.
        env: trained on.
        arms: what is compared; env_steps: budget of each run; seeds: runs per arm.
        options: for every run; warm_options: for the warm start that all arms of a seed share, None where each run
            makes its own.
        bin: environment steps per point of the figure. Environments start together, so early on only episodes that are
            won end: a bin must hold as many steps as all environments need for the longest episodes.
    """

    title: str
    question: str
    env: str
    arms: tuple[Arm, ...]
    env_steps: int
    seeds: int = 4
    options: tuple[str, ...] = TINY
    warm_options: tuple[str, ...] | None = ()
    bin: int = 512


def _rl4vlm(weight: float, label: str | None = None, changes: tuple[str, ...] = ()) -> Arm:
    return Arm(label or f"RL4VLM {weight:g}", "baselines.rl4vlm", ("--thought-weight", f"{weight:g}", *changes))


VLDAC, LOOP, GRPO = Arm("VL-DAC", "baselines.vldac"), Arm("LOOP", "baselines.loop"), Arm("GRPO", "baselines.grpo")
ALGORITHMS = (VLDAC, _rl4vlm(0.1), _rl4vlm(0.3), _rl4vlm(0.9), LOOP, GRPO)
WARM_UP, STOP, KL = ("--value-warmup", "2"), ("--stop-gradient",), ("--kl-coef", "0.05")
STABLE = (*WARM_UP, *STOP, *KL)
FOUR = ("--minibatch", "4")  # of eight whole episodes: as many gradient steps per rollout as 32 have by default
ROOM_WARM = ("--warm.check-every", "25", "--warm.val-episodes", "48")
ROOM_OPTIONS = (*TINY, "--gamma", "0.99", "--eval-episodes", "100")

STUDIES: dict[str, Study] = {
    "numberline": Study(
        title="NumberLine: VL-DAC, RL4VLM at three lambdas, LOOP, GRPO",
        question="Does the order of the paper's figures 3 and 5 hold for a tiny model on an easy task?",
        env="vlgym/NumberLine-v0",
        arms=ALGORITHMS,
        env_steps=6_144,
    ),
    "ezpoints": Study(
        title="EZPoints: VL-DAC, RL4VLM at three lambdas, LOOP, GRPO",
        question="The same on arithmetic with two cards, where the thoughts carry the reasoning.",
        env="vlgym/EZPoints-v0",
        arms=ALGORITHMS,
        env_steps=4_096,
        warm_options=("--warm.noise", "0.2", "--warm.check-every", "50"),
    ),
    "oneroom": Study(
        title="OneRoom at a reduced resolution: VL-DAC, stabilised RL4VLM, LOOP, GRPO",
        question=(
            "Sparse reward over episodes of up to 180 steps in a 3-D room, as the paper compares (figures 3 and 5, "
            "table 1): RL4VLM with KL, value warm-up and stop-gradient, LOOP with the KL."
        ),
        env="vlgym/OneRoom-v0",
        arms=(
            VLDAC,
            *(_rl4vlm(weight, f"RL4VLM {weight:g}, stabilised", STABLE) for weight in (0.1, 0.3, 0.9)),
            Arm("LOOP + KL", "baselines.loop", (*KL, *FOUR)),
            Arm("GRPO", "baselines.grpo", FOUR),
        ),
        env_steps=12_288,
        seeds=3,
        warm_options=(*ROOM_WARM, "--warm.check-every", "50", "--warm.noise", "0.2"),
        # Few environments and long rollouts: 32 environments would play most of the budget in their first episodes.
        options=(*ROOM_OPTIONS, "--eval-episodes", "64", "--num-envs", "8", "--rollout-steps", "32"),
        bin=1_536,  # of the 1,440 steps that eight environments need, in whole rollouts
    ),
    "oneroom-fast": Study(
        title="OneRoomS6Fast at a reduced resolution: VL-DAC, RL4VLM at three lambdas, LOOP, GRPO",
        question="Sparse reward in a 3-D room with strides so long that this budget holds hundreds of episodes.",
        env="vlgym/OneRoomS6Fast-v0",
        arms=ALGORITHMS,
        env_steps=6_144,
        warm_options=ROOM_WARM,
        options=ROOM_OPTIONS,
        bin=2_048,  # of the 1,600 steps that 32 environments need, in whole rollouts
    ),
}
STUDIES |= {
    f"sight-{name}": replace(
        STUDIES[base],
        title=f"{name}: trained with pictures, and with grey ones",
        question="How much of what is learnt is not sight?",
        env=f"vlgym/{name}",
        arms=(VLDAC, Arm("VL-DAC, grey", "baselines.vldac", ("--pictures", "grey"))),
        seeds=5,
    )
    for base, family in (("numberline", "NumberLine"), ("ezpoints", "EZPoints"), ("oneroom-fast", "OneRoomS6Fast"))
    for name in (f"{family}-v0", f"{family}-v1")
}


def _curve(env: str, env_steps: int, *options: str, arm: Arm = VLDAC, bin: int = 512) -> Study:
    return Study(
        title=f"{env}: success while the tiny model learns",
        question="Does the tiny model learn it, and by sight?",
        env=f"vlgym/{env}",
        arms=(arm,),
        env_steps=env_steps,
        seeds=3,
        options=(*TINY, "--eval-episodes", "100", *options),
        warm_options=None,
        bin=bin,
    )


SELF_PLAY = Arm("self-play", "baselines.self_play")
LARGE = ("--num-envs", "64", "--rollout-steps", "4", "--minibatch", "128")
NOW = ("--history-turns", "0", "--history-images", "1")  # one picture a prompt
STUDIES |= {
    f"curve-{study.env.removeprefix('vlgym/')}": study
    for study in (
        _curve("EZPoints-v1", 6_144, *LARGE, "--warm.noise", "0.2", "--image-tokens", "36"),
        _curve("OneRoomS6Fast-v1", 6_144, *LARGE, "--gamma", "0.95", *NOW),
        _curve("OneRoom-v1", 12_288, "--gamma", "0.97", "--num-envs", "16", "--rollout-steps", "16", *NOW, bin=2_048),
        _curve("SokobanDrawn-v0", 6_144, *LARGE, "--gamma", "0.95", "--env-kwargs", "image_size=[196,196]",
               "--image-tokens", "49", *NOW),
        _curve("TicTacToe-v0", 6_144, "--gamma", "1", "--image-tokens", "36", arm=SELF_PLAY),
        _curve("KuhnPoker-v0", 6_144, "--gamma", "1", "--image-tokens", "64", "--kl-coef", "0.1", arm=SELF_PLAY),
        _curve("CoinGame-v0", 6_144, "--gamma", "0.95", "--image-tokens", "36", *NOW, arm=SELF_PLAY),
    )
}  # fmt: skip
