"""`vlgym eval`: play environments or a suite with any policy, write every turn down, and report."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..endpoint.client import plain_address
from ..env.base import MODALITIES
from ..env.prompts import STYLES, PromptBuilder
from ..env.spec import PLANNERS
from ..env_groups import LIMIT, open_group, read_envs
from ..errors import UserError, check_choice, check_number
from ..evaluation import run_evaluation
from ..evaluation.folder import check_folder, count_finished
from ..evaluation.plan import EPISODES, Part, add_controls, leave_out, list_suites, plan_ids, plan_suite
from ..evaluation.policy_names import find_policy
from ..evaluation.probe import judge_folder, look_first, plan_probe
from ..evaluation.prompting import LETTERS, PATCH, Builders, estimate, lay_out_parts
from ..evaluation.reading_check import check_readings
from ..evaluation.run import Meter, Prices, Watcher
from ..parsers import check_named
from ..play.controls import CONTROLS
from ..play.policies import Policy
from ..registry import get_registry
from ..registry.installing import how_to_install
from ..sight.score import SUITE, SightReport
from ..terminal import Pace, open_progress
from ..types import Reply, StepRecord, Usage
from .console import (
    Config,
    EnvKwargs,
    PolicyArgs,
    Split,
    check_policy,
    closing_policies,
    open_console,
    read_arguments,
    split_names,
    write_messages,
)  # fmt: skip
from .records_cmd import report

HIGHEST = 10_000_000
THEIRS = "opponents."


def evaluate_policy(
    policy: Annotated[str, Option(metavar="NAME[:ARGUMENT]",
        help="Who plays: idle, random, blind, oracle, human, scripted:FILE, replay:FOLDER, "
            "openai:MODEL, hf:FOLDER-OR-NAME, or a plugin's.")],
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder for records and report.")],
    env: Annotated[str | None, Option(metavar="ID[,ID...]",
        help="Environments to play; with --suite, only these of it.")] = None,
    suite: Annotated[str | None, Option(metavar="NAME",
        help="quick, paper, all, can-it-see or another suite of a plugin.")] = None,
    episodes: Annotated[int | None, Option(min=1, max=HIGHEST,
        help="Seeds of each environment [default: 100; suite quick: 10].")] = None,
    split: Split = "test",
    repeats: Annotated[int | None, Option(min=1, max=10_000,
        help="How often each seed is played [default: 1, or the suite's].")] = None,
    planner: Annotated[str | None, Option(
        help="online or global [default: online, or the suite's].")] = None,
    pictures: Annotated[str | None, Option(metavar="KIND[,KIND]",
        help="Play everything with these pictures, too: grey, shuffled (another episode's). The "
            "report shows what sight adds.")] = None,
    modality: Annotated[str | None, Option(
        help="What shows the state: image, text (the picture in words), both or none. [default: "
            "image]")] = None,
    history_turns: Annotated[int | None, Option(min=0, max=HIGHEST,
        help="Past turns in the prompt [default: each environment's own].")] = None,
    history_images: Annotated[int | None, Option(min=0, max=HIGHEST,
        help="Pictures in the prompt, the current one included.")] = None,
    system: Annotated[str, Option(metavar="TEXT",
        help="System message, before an environment's own.")] = "",
    style: Annotated[str, Option(
        help=f"Adds a sentence to the instructions: {', '.join(STYLES)}.")] = "",
    few_shot: Annotated[int, Option(min=0, max=100,
        help="Oracle episodes of the train split that the prompt shows.")] = 0,
    parser: Annotated[str | None, Option(
        help="Reply style: tag, auto, json, plan, choice, or an import string.")] = None,
    env_kwargs: EnvKwargs = None,
    opponents: Annotated[str | None, Option(metavar="NAME[:ARGUMENT]",
        help="Who holds a game's other seats: random, oracle, search, self, or openai:MODEL@URL and "
            "all with a colon that --policy takes; its options: --policy-arg "
            "opponents.NAME=VALUE.")] = None,
    num_envs: Annotated[int | None, Option(min=1, max=4096,
        help="Episodes at once [default: the policy's concurrency, or 8].")] = None,
    envs: Annotated[str, Option(metavar="WHERE",
        help="Environments' processes: local, processes[:N], ray[:N], ray:auto, ray://HOST:PORT or "
            "tcp://HOST:PORT[,HOST:PORT...].")] = "local",
    env_timeout: Annotated[float, Option(metavar="SECONDS",
        help="Time for a worker of --envs to answer, before another replaces it.")] = LIMIT,
    no_probe: Annotated[bool, Option("--no-probe",
        help="Skip the test of the model's sight before the run.")] = False,
    seed: Annotated[int | None, Option(min=0, max=2**31 - 1,
        help="Seed of the policy's sampling.")] = None,
    dry_run: Annotated[bool, Option("--dry-run",
        help="Say what would be asked and how often, check readings; send nothing.")] = False,
    resume: Annotated[bool, Option("--resume", help="Continue the run in --out.")] = False,
    base_url: Annotated[str | None, Option(metavar="URL", help="openai: the server.")] = None,
    temperature: Annotated[float | None, Option(min=0, max=10,
        help="Sampling temperature; 0 is greedy.")] = None,
    max_tokens: Annotated[int | None, Option(min=1, max=HIGHEST, help="Longest reply.")] = None,
    policy_arg: PolicyArgs = None,
    price_in: Annotated[float | None, Option(min=0,
        help="Dollars for a million prompt tokens.")] = None,
    price_out: Annotated[float | None, Option(min=0,
        help="Dollars for a million reply tokens.")] = None,
    max_cost: Annotated[float | None, Option(min=0,
        help="Stop after spending this many dollars.")] = None,
    config: Config = None,
) -> None:  # fmt: skip
    """Evaluate a policy: play held-out episodes, keep every prompt, picture and reply, and report with intervals.

    The report is FOLDER/report.html; `vlgym report FOLDER` computes it again from the records.
    """
    # Options are read and compared first: a typo is told before a model is loaded.
    prices = Prices(price_in, price_out)
    if max_cost is not None and not prices:
        raise UserError("--max-cost needs prices: --price-in and --price-out, dollars for a million tokens.")
    if env is None and suite is None:
        raise UserError(f"Give --env ID[,ID...] or --suite NAME (suites: {', '.join(list_suites())}).")
    sampling = {"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    policy_options, rival_options = _read_policy_options(policy_arg or [], sampling)
    arguments = read_arguments(env_kwargs or [], "--env-kwargs")
    if opponents is not None:
        arguments |= _make_rival(opponents, rival_options, dry_run)
    if modality is not None:
        arguments["modality"] = check_choice("--modality", modality, MODALITIES)
    controls = [check_choice("--pictures", kind, CONTROLS) for kind in split_names(pictures)]
    check_choice("--planner", planner, (None, *PLANNERS))
    check_choice("--style", style or None, (None, *STYLES))
    plan = partial(_plan, env, suite, episodes, split, repeats, planner, arguments)
    plan()
    _check_processes(envs, env_timeout, policy, opponents or "")

    # So is damage of the folder.
    if not dry_run and check_folder(out, resume):
        count_finished(out)
    made = find_policy(policy, policy_options)
    player: Any = None if dry_run else made()
    players: tuple[Any, Any] = (player, arguments.get("opponents"))
    with closing_policies(players):
        # A model's folder may name reply style and past turns of its training; options come first.
        wishes = player.prefers() if hasattr(player, "prefers") else {}
        if parser is not None:
            arguments["parser"] = parser
        elif wishes.get("parser") is not None:
            arguments |= check_named({"parser": wishes["parser"]}, plain_address(policy))
        turns = wishes.get("history_turns") if history_turns is None else history_turns
        images = wishes.get("history_images") if history_images is None else history_images

        # Parts: each environment, with its controls, without those that cannot be made here.
        parts, missing = plan()
        pictured = images != 0 and any(part.pictured for part in parts)
        for each in players:
            check_policy(each, pictures=pictured)
        here = dry_run or envs == "local"
        parts = _leave_out(parts, missing, broken=suite is not None and here)
        if controls and suite != SUITE:  # which has its controls
            parts = _add_controls(parts, controls, pictured)
        layout = PromptBuilder.asked(turns, images)
        layouts = lay_out_parts(parts, layout, system=system, style=style, few_shot=few_shot)
        sees = getattr(player or made.func, "sees", False)
        probed = sees and not no_probe and pictured and suite != SUITE
        if dry_run:
            probe = plan_probe() if probed and SUITE in list_suites() else []
            _print_estimate(parts, layouts, probe, prices)
            return check_readings(parts, open_console().print)

        # Play, and report whatever has been finished.
        noted = {"can_it_see": _look_first(player, num_envs)} if probed else {}
        with (
            _reporting(out, suite) as progress,
            closing(open_group(envs, envs=num_envs, limit=env_timeout, tell=progress.say)) as group,
        ):
            run_evaluation(
                parts, player, out, layout=layouts, num_envs=num_envs, prices=prices, max_cost=max_cost,
                resume=resume, watcher=progress, noted=noted, seed=seed, suite=suite, group=group,
            )  # fmt: skip


def _read_policy_options(texts: Sequence[str], sampling: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the policy and, of `opponents.NAME`, those of who holds other seats."""
    options = {name: value for name, value in sampling.items() if value is not None}
    options |= read_arguments(texts, "--policy-arg")
    names = [name for name in options if name.startswith(THEIRS)]
    return options, {name.removeprefix(THEIRS): options.pop(name) for name in names}


def _make_rival(opponents: str, options: Mapping[str, Any], dry_run: bool) -> dict[str, Any]:
    """Return the argument `opponents` of a game; a dry run makes no policy."""
    if ":" not in opponents:
        return {"opponents": opponents}
    made = find_policy(opponents, options)
    return {} if dry_run else {"opponents": made()}


def _check_processes(envs: str, timeout: float, policy: str, opponents: str) -> None:
    """Refuse environments elsewhere for a human or a rival policy, who play in this process."""
    read_envs(envs, "--envs")
    check_number("--env-timeout", timeout, above=0)
    if envs == "local":
        return
    for option, who, here in (
        ("policy", policy, policy == "human"),
        ("opponents", opponents, opponents == "human" or ":" in opponents),
    ):
        if here:
            raise UserError(f"--{option} {plain_address(who)} plays in this process; leave out --envs.")


def _add_controls(parts: list[Part], controls: Sequence[str], pictured: bool) -> list[Part]:
    """Return the parts with their controls; where no prompt shows a picture, say so."""
    if not pictured:
        line = f"left out: {', '.join(controls)}: the prompts show no pictures"
        open_console(stderr=True).print(line)
    return add_controls(parts, controls)


@contextmanager
def _reporting(out: Path, suite: str | None) -> Iterator["EvaluationProgress"]:
    """Yield the progress; at the end, an interrupted one too, report the finished episodes."""
    progress = EvaluationProgress()
    try:
        yield progress
    finally:
        if progress.begun and count_finished(out):
            report(out)
            if suite == SUITE:
                _print_sight(judge_folder(out))


def _leave_out(parts: list[Part], missing: Sequence[str], *, broken: bool) -> list[Part]:
    """Print which environments are not played, and why; `broken`: those that cannot be made, too."""
    reasons = {}
    for env_id in missing:
        known = get_registry().known.get(env_id)
        remedy = how_to_install(known["distribution"]) if known else "vlgym doctor"
        reasons[env_id] = f"it is not installed: {remedy}"
    if broken:
        parts, failures = leave_out(parts)
        reasons |= failures
    for env_id, reason in reasons.items():
        open_console(stderr=True).print(f"left out: {env_id}: {reason}")
    return parts


def _plan(
    env: str | None, suite: str | None, episodes: int | None, split: str, repeats: int | None,
    planner: str | None, arguments: dict[str, Any],
) -> tuple[list[Part], list[str]]:  # fmt: skip
    ids = split_names(env)
    if env is not None and not ids:
        raise UserError("--env names no environment; write --env vlgym/NumberLine-v1.")
    options: dict[str, Any] = {"split": split, "planner": planner, "arguments": arguments}
    if suite is None:
        return plan_ids(ids, episodes=episodes or EPISODES, repeats=repeats or 1, **options), []

    # With a suite, ids choose from its parts.
    missing: list[str] = []
    if suite == SUITE:
        parts = plan_probe(episodes, repeats=repeats, **options)
    else:
        parts, missing = plan_suite(suite, episodes=episodes, repeats=repeats, **options)
    for env_id in ids:
        check_choice("--env", env_id, sorted({part.env_id for part in parts}))
    return [part for part in parts if not ids or part.env_id in ids], [] if ids else missing


def _print_estimate(parts: Sequence[Part], builders: Builders, probe: Sequence[Part], prices: Prices) -> None:
    console = open_console()
    estimates = [estimate(part, builders.get(part.key)) for part in (*probe, *parts)]
    planned = estimates[len(probe) :]
    console.print(f"First prompt of {planned[0].part}:\n{write_messages(planned[0].first)}\n")
    for each in planned:
        console.print(f"{each.part}: at most {each.requests:,} requests of {each.tokens:,} tokens")
    if probe:
        looks = sum(each.requests for each in estimates[: len(probe)])
        console.print(f"{SUITE}, once for each model: at most {looks:,} requests")

    # All of it, the probe included.
    requests = sum(each.requests for each in estimates)
    tokens = sum(each.requests * each.tokens for each in estimates)
    cost = f", ${prices.cost(Usage(tokens, 0)):,.2f} without the replies" if prices else ""
    console.print(f"in all: at most {requests:,} requests, {tokens:,} prompt tokens{cost}")
    counted = f"A token is counted as {LETTERS} letters or {PATCH} x {PATCH} pixels"
    console.print(f"{counted}; replies come on top. Nothing was sent.")


def _look_first(policy: Policy, num_envs: int | None) -> dict[str, Any]:
    """Print the verdict on the model's sight, and return its entry in the run's record."""
    console = open_console(stderr=True)
    if SUITE not in list_suites():
        console.print(f"{SUITE} was not played: {how_to_install('vlgym-sight')}")
        return {"sees": None, "warnings": [f"{SUITE} was not installed."]}
    note = "(once for each model; --no-probe skips it)"
    console.print(f"{SUITE}: does the model see its pictures? {note}")
    verdict, folder = look_first(policy, num_envs=num_envs, watcher=EvaluationProgress(quiet=True))
    _print_sight(verdict)
    console.print(f"  its replies: {folder}")
    return {"sees": verdict.sees, "warnings": list(verdict.warnings)}


def _print_sight(verdict: SightReport) -> None:
    console = open_console(stderr=True)
    for probe in verdict.probes:
        console.print(f"  {probe.topic}: {probe.shown}, {probe.verdict}")
    for warning in verdict.warnings:
        console.print(f"warning: {warning}", style="yellow")


class EvaluationProgress(Watcher):
    """A bar on a terminal; elsewhere only the lines."""

    begun = False

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._won: Counter[str] = Counter()
        self._new: Counter[str] = Counter()
        self._bars = open_progress(open_console(stderr=True))

    def begin(self, parts: Sequence[Part], meter: Meter, already: set[tuple[str, int]]) -> None:
        self.begun, self.meter, self._pace = True, meter, Pace()
        self._left = Counter({part.key: part.total for part in parts})
        total = self._left.total()
        self._left.subtract(Counter(name for name, _ in already))
        self._bars.start()
        if already:
            self.say(f"{len(already)} of {total} episodes are there already")
        self._all = self._bars.add_task("episodes", total=total, completed=len(already))

    def end(self) -> None:
        self._bars.stop()

    def reply(self, reply: Reply, key: str) -> None:
        line = self._pace.add(reply.usage.completion_tokens if reply.usage else 0)
        if line and self._bars.disable:
            self.say(f"{self.meter.replies:,} replies, {line}")
        words = [f"success {self._won.total() / self._new.total():.2f}"] if self._new else []
        words.append(f"{self.meter.replies:,} replies")
        words += [f"{self.meter.tokens:,} tokens", f"{self._pace}"] if self.meter.tokens else []
        words += [f"${self.meter.cost:.4f}"] if self.meter.prices else []
        self._bars.update(self._all, note="  ".join(words))

    def finish(self, episode: list[StepRecord]) -> None:
        key = episode[0].part
        self._left[key] -= 1
        self._new[key] += 1
        self._won[key] += episode[-1].success
        self._bars.advance(self._all)
        if not self._left[key] and not self.quiet:
            success = self._won[key] / self._new[key]
            self.say(f"{key}: {self._new[key]} episodes done  success {success:.2f}")

    def say(self, line: str) -> None:
        self._bars.console.print(line)
