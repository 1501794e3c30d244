"""The studies as data: environments, arms, budgets. `baselines/studies/study.py` runs them.

All use the tiny model, warm-started from a noisy oracle. An arm sets what it is named after and,
where it learns from whole episodes, their number; all else is the learners' default.
"""

from dataclasses import dataclass
from typing import Any

from vlgym.env.base import MODALITIES

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

    @property
    def words(self) -> set[str]:
        """The words of its options, `grey`, `modality` and `none` among them."""
        return set(" ".join(self.options).replace("=", " ").split())


@dataclass(frozen=True)
class Study:
    """A figure's worth of runs."""

    title: str
    question: str
    env: str
    arms: tuple[Arm, ...]  # what is compared
    env_steps: int  # of each run
    seeds: int = 5  # runs per arm
    options: tuple[str, ...] = TINY  # for every run
    warm_options: tuple[str, ...] | None = ()  # of a seed's shared warm start; None: one per arm
    bin: int = 512  # environment steps per point of the figure: enough for all longest episodes
    form: str = ""  # of the environment that `options` make; its floor is in screens.json

    @property
    def label(self) -> str:
        """The environment's name, with its form."""
        return self.env.removeprefix("vlgym/") + (f", {self.form}" if self.form else "")


VLDAC, LOOP = Arm("VL-DAC", "baselines.vldac"), Arm("LOOP", "baselines.loop")
RL4VLM = tuple(Arm(f"RL4VLM {x}", "baselines.rl4vlm", ("--thought-weight", x)) for x in ("0.1", "0.3", "0.9"))
SELF_PLAY = Arm("self-play", "baselines.self_play")
LARGE = ("--num-envs", "64", "--rollout-steps", "4", "--minibatch", "128")


def by_episode(targets: int) -> tuple[Arm, Arm]:
    """LOOP with KL, and GRPO: updates of about 256 environment and 4 gradient steps."""
    sizes = ("--num-envs", str(96 // targets), "--minibatch", str(48 // targets))
    loop = Arm("LOOP + KL", "baselines.loop", ("--kl-coef", "0.02", *sizes))
    return loop, Arm("GRPO", "baselines.grpo", sizes)


Needs = tuple[int, tuple[str, ...], tuple[str, ...] | None]  # steps, options, of the warm start
NUMBERLINE: Needs = (8_192, (*LARGE, "--gamma", "0.5", "--kl-coef", "0.02"), ("--warm.reading", "0.99"))
NEEDS: dict[str, Needs] = {
    "NumberLine": NUMBERLINE,
    "EZPoints": (6_144, LARGE, ("--warm.noise", "0.2")),
    "OneRoomS6Fast": (6_144, (*LARGE, "--gamma", "0.95"), ()),
}


def _study(env: str, title: str, question: str, arms: tuple[Arm, ...], needs: Needs, **more: Any) -> Study:
    steps, options, warm = needs
    more |= {"options": (*TINY, *options), "warm_options": warm}
    return Study(f"{env}: {title}", question, f"vlgym/{env}", arms, steps, **more)


STUDIES = {
    "algorithms": _study(
        "NumberLine-v1", "VL-DAC, RL4VLM at three lambdas, LOOP, GRPO",
        "Does the order of the paper's figures 3 and 5 hold for a tiny model on an easy task?",
        (VLDAC, *RL4VLM, *by_episode(2)), NUMBERLINE,
    )
}  # fmt: skip
STUDIES |= {
    f"sight-{family}-v{version}": _study(
        f"{family}-v{version}", "trained with pictures, and with grey ones",
        "How much of what is learnt is not sight?",
        (VLDAC, Arm("VL-DAC, grey", "baselines.vldac", ("--pictures", "grey"))), needs, bin=1_024,
    )
    for family, needs in NEEDS.items() for version in (0, 1)
}  # fmt: skip
STUDIES["words-NumberLine-v1"] = _study(
    "NumberLine-v1", "the picture, words for it, both, neither",
    "Is it held up by what it sees, or by what it decides?",
    tuple(Arm(f"VL-DAC, {x}", "baselines.vldac", ("--env-kwargs", f"modality={x}")) for x in MODALITIES),
    (NUMBERLINE[0], (*NUMBERLINE[1], "--warm.reading", "0.99"), None), seeds=3,
)  # fmt: skip
STUDIES |= {
    f"credit-{number}": _study(
        "NumberLine-v1",
        f"the same skill, {number} target{'s' if number > 1 else ''} in an episode",
        "Does credit for each step gain on credit for the episode as episodes get longer?",
        (VLDAC, *by_episode(number)),
        (8_192, (*LARGE, "--kl-coef", "0.02", *kwargs), ("--warm.reading", "0.99", *kwargs)),
    )
    for number in (1, 2, 4, 8) for kwargs in [("--env-kwargs", f"targets={number}")]
}  # fmt: skip
STUDIES |= {
    f"curve-{env}": _study(
        env, "success while the tiny model learns", "Does it learn, and by sight?", (arm,),
        (steps, options, None), seeds=3, bin=bin,
    )
    for env, arm, steps, bin, options in (
        *((room, VLDAC, 12_288, 2_048, (
            "--gamma", "0.97", "--num-envs", "16", "--rollout-steps", "16", "--eval-episodes", "64",
            "--warm.val-episodes", "16", "--warm.noise", "0.2"))
          for room in ("OneRoom-v1", "Hallway-v1", "MazeS2-v1")),
        ("SokobanDrawn-v0", VLDAC, 6_144, 512, (
            *LARGE, "--gamma", "0.95", "--env-kwargs", "image_size=[196,196]",
            "--history-turns", "0")),
        ("TicTacToe-v0", SELF_PLAY, 6_144, 512, ("--gamma", "1")),
        ("KuhnPoker-v0", SELF_PLAY, 6_144, 512, ("--gamma", "1", "--kl-coef", "0.1")),
        ("CoinGame-v0", SELF_PLAY, 6_144, 2_048, ("--gamma", "0.95")),
    )
}  # fmt: skip
CLICKS = (
    *TINY, *LARGE[:4], "--kl-coef", "0.02", "--image-tokens", "36", "--env-kwargs", "level=0",
    "--parser", "vlgym_screens.screen_parser:BareParser", "--warm.noise", "0", "--warm.batch", "32",
    "--warm.steps", "300", "--warm.check-every", "300",
)  # fmt: skip
STUDIES |= {
    f"curve-ScreensClick-{form}": Study(
        f"ScreensClick-v0, {form}, level 0: success while the tiny model learns",
        "Does it learn, and by sight?", "vlgym/ScreensClick-v0", (VLDAC,), 3_072, seeds=3,
        options=(*CLICKS, "--env-kwargs", argument), warm_options=None, form=form,
    )
    for form, argument in (("marks", "marks=true"), ("grid", "coordinates=grid"))
}  # fmt: skip
