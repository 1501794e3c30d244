"""EnvSpec: everything that is known about an environment without importing its code.

A plugin's `plugin.py` states it as a literal; nothing else repeats it. `AGENTS.md` shows one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import SpecError, UserError, check_choice, is_printable
from .arguments import describe_hint, fits
from .probes import Probe
from .seeding import SPLITS

CONTRACT = 1  # version of the contract with plugins; a plugin written for another one is refused
PLANNERS = ("online", "global")  # one action a reply, or one reply that holds the whole plan
NOT_RECORDED = ("probes", "blind", "interaction")  # fields that registry.yaml leaves out

ID_PATTERN = re.compile(r"^(?P<namespace>[A-Za-z][\w-]*)/(?P<name>[A-Za-z][\w-]*)-v(?P<version>\d+)$")
_ENTRY_PATTERN = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_CHOICES = {
    "difficulty": ("easy", "medium", "hard"),
    "oracle": ("exact", "planner", "none"),
    "pictures": ("exact", "similar"),
}


@dataclass(frozen=True)
class EnvSpec:
    """Card of one environment.

    Attributes:
        id: `namespace/Name-vN`; first-party ids use `vlgym/`, others their own namespace.
        entry_point: `package.module:Class`, imported only by `make`.
        summary: one line.
        family: name of the plugin's family, for example `cards`.
        max_turns: actions after which the episode is truncated (an invalid reply counts as one).
        reward_range: smallest and largest reward of one turn.
        success_rule: when `info["success"]` is true, in words.
        kwargs: default constructor arguments, JSON-able.
        skills: free tags, for example `("navigation",)`.
        reply_styles: parser names that the environment allows; the first is the default.
        planners: allowed settings, `online` (one action a reply) or `global` (a plan in a reply).
        difficulty: `easy`, `medium` or `hard`.
        splits: splits that exist, a part of `train`, `val`, `test`.
        prompt_version: version of the prompt template; bump it with every change of wording.
        history_turns: past turns in the prompt by default.
        history_images: most images in the prompt by default, the current one included.
        image_size: height and width of the image in pixels.
        oracle: `exact` (optimal), `planner` (good, not proved optimal) or `none`.
        oracle_success: share of seeds that the oracle must win in the conformance test.
        random_success_below: the random policy must succeed less often in the conformance test.
        figure_episodes: episodes of registry.yaml's floor and ceiling; by default 400, or 100 where
            an episode may last more than 100 turns. Where it is given, an episode counts as slow:
            learning blind players and the conformance test play fewer.
        system_requirements: Debian packages needed.
        references: papers and sources.
        contract: contract version that the plugin was written for.
        pictures: `exact` where every machine draws the same pixels (code of the package, with its
            fonts), else `similar`: fonts or renderers of the machine draw. It decides how strictly
            pictures are compared with those of registry.yaml.
        truncates_early: an episode may be truncated before `max_turns` (a limit of frames).
        probes: episodes that reach the rules which random play and the oracle do not; the
            fingerprint plays them.
        blind: blind players of this environment (`vlgym.sight.blind.BlindPlayer`), each
            `package.module:Class`; with the generic ones they play without the picture.
        replaced_by: id of a newer version, where this one is kept for comparison only.
        levels: one line for each difficulty level, 0 the easiest, on what it changes. The class's
            `level_arguments` holds their values.
        interaction: the interaction type: the form of a reply, what must be seen, and what must be
            remembered; may be empty.
    """

    id: str
    entry_point: str
    summary: str
    family: str
    max_turns: int
    reward_range: tuple[float, float]
    success_rule: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    skills: tuple[str, ...] = ()
    reply_styles: tuple[str, ...] = ("auto", "tag", "json")
    planners: tuple[str, ...] = ("online",)
    difficulty: str = "easy"
    splits: tuple[str, ...] = SPLITS
    prompt_version: int = 1
    history_turns: int = 0
    history_images: int = 1
    image_size: tuple[int, int] = (224, 224)
    oracle: str = "exact"
    oracle_success: float = 1.0
    random_success_below: float = 1.0
    figure_episodes: int | None = None
    system_requirements: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    contract: int = CONTRACT
    pictures: str = "similar"
    truncates_early: bool = False
    probes: tuple[Probe, ...] = ()
    blind: tuple[str, ...] = ()
    replaced_by: str = ""
    levels: tuple[str, ...] = ()
    interaction: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, (hint, wanted) in _read_hints().items():
            value = getattr(self, name)
            if isinstance(value, list) and typing.get_origin(hint) is tuple:
                value = tuple(value)
            if name == "probes" and isinstance(value, tuple):
                value = tuple(Probe.from_dict(item) if isinstance(item, Mapping) else item for item in value)
            object.__setattr__(self, name, value)
            self._require(fits(value, hint), name, wanted)

        # Types come first, so that the rules on values can rely on them.
        low, high = self.reward_range
        newer = self.replaced_by
        for name, fine, wanted in (
            ("id", ID_PATTERN.match(self.id), "namespace/Name-vN, for example vlgym/OneRoom-v0"),
            ("entry_point", _ENTRY_PATTERN.match(self.entry_point), "a string package.module:Class"),
            ("summary", self.summary.strip() and "\n" not in self.summary, "one line"),
            ("family", self.family.strip(), "a non-empty string"),
            ("success_rule", self.success_rule.strip(), "a non-empty string"),
            ("max_turns", self.max_turns >= 1, "an integer >= 1"),
            ("reply_styles", self.reply_styles, "at least one parser name"),
            ("splits", self.splits and set(self.splits) <= set(SPLITS), f"a part of {SPLITS}"),
            ("planners", self.planners and set(self.planners) <= set(PLANNERS), f"a part of {PLANNERS}"),
            ("reward_range", low <= high, "two numbers, low <= high"),
            ("image_size", min(self.image_size) > 0, "two positive integers"),
            ("oracle_success", 0 <= self.oracle_success <= 1, "a number in [0, 1]"),
            ("random_success_below", 0 <= self.random_success_below <= 1, "a number in [0, 1]"),
            ("prompt_version", self.prompt_version >= 0, "an integer >= 0"),
            ("history_turns", self.history_turns >= 0, "an integer >= 0"),
            ("history_images", self.history_images >= 0, "an integer >= 0"),
            ("figure_episodes", (self.figure_episodes or 2) >= 2, "None or an integer >= 2"),
            ("blind", all(map(_ENTRY_PATTERN.match, self.blind)), "a tuple of strings package.module:Class"),
            ("levels", all(line.strip() and "\n" not in line for line in self.levels), "a tuple of lines"),
            ("interaction", len(self.interaction) in (0, 3), "three strings, or none"),
            ("replaced_by", not newer or (ID_PATTERN.match(newer) and newer != self.id), "the id of another version"),
        ):
            self._require(fine, name, wanted)

        # Cards are printed on terminals and pages, wherever they came from.
        lists = ("skills", "references", "system_requirements", "levels", "interaction")
        for name in ("summary", "family", "success_rule", *lists):
            text = "".join(getattr(self, name)).replace("\n", "")
            fine = text.isprintable() or all(map(is_printable, text))  # the first is quick, and refuses more
            self._require(fine, name, "text without control characters")
        for name, choices in _CHOICES.items():
            check_choice(f"EnvSpec {self.id!r}: field {name}", getattr(self, name), choices, SpecError)

        # A registry file and other processes get the arguments as JSON.
        try:
            json.dumps(self.kwargs)
        except TypeError as error:
            raise SpecError(f"EnvSpec {self.id}: kwargs must be JSON-able ({error}).") from None

    @property
    def namespace(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/", 1)[0]

    @property
    def title(self) -> str:
        """The id without namespace and version, for example `OneRoom`."""
        return self.id.split("/", 1)[1].rsplit("-v", 1)[0]

    def check_split(self, split: str) -> None:
        """Raise `UserError` where the environment has no such split."""
        if split not in self.splits:
            raise UserError(f"{self.id} has no split {split!r}; it has {', '.join(self.splits)}.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dicts, strings and numbers, fit for YAML and JSON."""
        plain = {**vars(self), "probes": [probe.to_dict() for probe in self.probes]}
        return json.loads(json.dumps(plain))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EnvSpec:
        """Build a spec from `to_dict`'s form.

        Raises:
            SpecError: a field is unknown, missing or malformed; the message names it.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise SpecError(f"EnvSpec: {error}.") from None

    def digest(self) -> str:
        """Return a hash of the card: 16 hexadecimal digits.

        It leaves out fields that change nothing in the environment without a level.
        """
        plain = self.to_dict()
        for name in (*NOT_RECORDED, "pictures", "replaced_by", "levels"):
            del plain[name]
        if not self.truncates_early:  # a later field of the contract
            del plain["truncates_early"]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

    def _require(self, condition: Any, name: str, wanted: str) -> None:
        if not condition:
            raise SpecError(f"EnvSpec {self.id!r}: field {name} is {getattr(self, name)!r}, but must be {wanted}.")


@functools.cache
def _read_hints() -> dict[str, tuple[Any, str]]:
    return {name: (hint, describe_hint(hint)) for name, hint in typing.get_type_hints(EnvSpec).items()}
