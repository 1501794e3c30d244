"""`vlgym play`: one episode in the terminal, through a model's own prompt and parser; every image goes to a file.

`--replay FOLDER` shows recorded episodes of any trajectory folder instead. Records may be hostile: values of a wrong
type are an error of one line, and text is never sent to the terminal as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..env import VLEnv
from ..env.prompts import PastTurn, PromptBuilder
from ..env.rendering import encode_png
from ..env.seeding import episode_seed
from ..errors import TrajectoryError, UserError, check_choice, nearest
from ..files import new_folder
from ..play.human import HINT, complete_reply, number_choices, read_rest, takes_lines
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..play.terminal_pictures import PICTURES, choose_protocol, show_picture
from ..play.trajectory import METADATA, read_picture, read_trajectories
from ..registry import get_registry
from ..registry.making import make
from ..terminal import fit_words, show_safe
from ..types import Message, StepRecord, Turn
from .console import Arguments, read_arguments, write_messages

POLICIES = ("human", "random", "oracle")
HELP = """\
Type a whole reply, as a model would write it, or just one of the legal actions or its number: it is then put into the
reply format.
  :oracle   let the oracle answer this turn
  :prompt   show the whole prompt of this turn, earlier turns included
  :help     this text
  :quit     end the game (so does the end of the input)"""


EPISODES = "episodes"
"""Folder of a training run with one folder for each recording, named in the order of time."""

read_episodes = partial(read_trajectories, images=False, unfinished=False)
"""Yields the whole episodes of a folder."""


@dataclass
class Game:
    """One episode: the environment, what the model would be shown, and the files of its images."""

    env: VLEnv
    env_id: str
    seed: int
    folder: Path
    builder: PromptBuilder
    picture: str
    observation: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    history: list[PastTurn] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    turn: int = 0
    ended: str = ""

    def begin(self) -> None:
        """Reset with the seed."""
        self.env.action_space.seed(self.seed % 2**32)
        self.observation, self.info = self.env.reset(seed=self.seed)
        self._write_image()

    def messages(self) -> list[Message]:
        """Return the prompt of this turn, exactly as a model gets it."""
        details = self.info["vlgym"]
        return self.builder.build(
            details["instructions"], details["turn_text"], self.observation["image"], self.history,
            system=self.env.system_text,
        )  # fmt: skip

    def prompt(self, last: int = 0) -> str:
        """Return that prompt, or its `last` messages, as text, each image by the name of its file."""
        return write_messages(self.messages()[-last:], self.files)

    def answer(self, reply: str) -> float:
        """Step with the reply and return the reward."""
        self.history.append(PastTurn(self.observation["image"], self.info["vlgym"]["turn_text"], reply))
        self.observation, reward, terminated, truncated, self.info = self.env.step(reply)
        self.turn += 1
        self.ended = "terminated" if terminated else "truncated" if truncated else ""
        self._write_image()
        return float(reward)

    def _write_image(self) -> None:
        path = self.folder / f"turn-{self.turn:03d}.png"
        path.write_bytes(encode_png(self.observation["image"]))
        self.files[id(self.observation["image"])] = str(path)


def play(
    env_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Environment id, for example vlgym/NumberLine-v0.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed [default: of the first training episode].")] = None,
    index: Annotated[
        int | None, typer.Option(min=0, help="With --replay: 0 is the newest episode, 1 the one before.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the images; default ./play/<id>.")] = None,
    policy: Annotated[str, typer.Option(help=f"Who answers: {', '.join(POLICIES)}.")] = "human",
    arg: Arguments = None,
    picture: Annotated[
        str, typer.Option(help=f"How to draw the image in the terminal: {', '.join(PICTURES)}.")
    ] = "auto",
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Print the newest recorded episode instead; into a pipe, all of them. "
            "FOLDER is a training run's, or what `vlgym eval` wrote.",
        ),
    ] = None,
) -> None:
    """Play one episode by hand (or watch random or the oracle): you see and write exactly what a model does."""
    check_choice("--picture", picture, PICTURES)
    protocol = choose_protocol(picture, sys.stdout)
    if replay is not None:
        if env_id is not None:
            raise UserError(f"--replay shows what was recorded; leave out {env_id}.")
        show_recorded(replay, index, protocol)
        return
    if env_id is None:
        raise UserError("Name an environment (all ids: vlgym list), or a folder to show: --replay FOLDER.")
    check_choice("--policy", policy, POLICIES)
    get_registry().get(env_id)
    seed = episode_seed(env_id, "train", 0) if seed is None else seed
    env = make(env_id, **read_arguments(arg or []))
    try:
        builder = PromptBuilder.for_spec(env.vlgym_spec)
        game = Game(env, env_id, seed, new_folder(out or Path("play") / env_id, "game"), builder, protocol)
        game.begin()
        _say(f"{env_id}, seed {seed}, reply style {env.parser.name}. Images: {game.folder}")
        if policy == "human":
            _say(f"{HELP}\n{HINT}" if takes_lines(game.env) else HELP)
        asked = {"random": RandomPolicy, "oracle": OraclePolicy}.get(policy)
        _play_on(game, partial(_ask_policy, asked()) if asked else _ask_human)
        _say_end(game.ended or "not finished", game.turn, game.info["success"], env.episode_return)
        _say(f"Last image: {game.files[id(game.observation['image'])]}")
    finally:
        env.close()


def _play_on(game: Game, ask: Callable[[Game], str | None]) -> None:
    """Ask for replies until the episode ends or there is none."""
    while not game.ended:
        _say(f"\n--- turn {game.turn + 1} ---\n{game.prompt(int(game.turn > 0))}")
        show_picture(game.observation["image"], game.picture, sys.stdout)
        reply = ask(game)
        if reply is None:
            return
        reward = game.answer(reply)
        details = game.info["vlgym"]
        _say_result(details["parse"], details["actions"], reward, game.env.episode_return)
        if details["feedback"]:
            _say(f"feedback: {details['feedback']}")
    show_picture(game.observation["image"], game.picture, sys.stdout)


def _ask_human(game: Game) -> str | None:
    """Read lines until one is a reply; `None` at the end of the input."""
    if not takes_lines(game.env):
        _say(number_choices(game.env))
    while True:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            _say("\nEnd of the input.")
            return None
        text = line.rstrip("\r\n")
        if not sys.stdin.isatty():
            _say(text)
        command = text.strip()
        if command in (":quit", ":q"):
            return None
        if command == ":oracle":
            reply = game.env.solve()
            if reply is not None:
                _say(f"the oracle writes: {reply}")
                return reply
            _say("The oracle has no action here.")
        elif command == ":prompt":
            _say(game.prompt())
        elif command == ":help":
            _say(HELP)
        elif command.startswith(":"):
            _say(f"Unknown command {command!r}.{nearest(command, (':oracle', ':prompt', ':help', ':quit'))}\n{HELP}")
        else:
            typed = read_rest(text) if takes_lines(game.env) else text
            reply = complete_reply(game.env, typed)
            if reply != typed:
                _say(f"written as: {reply}")
            return reply


def _ask_policy(policy: Policy, game: Game) -> str:
    reply = policy.reply([Turn(game.messages(), game.env, game.env_id, game.seed, game.turn)])[0].text
    _say(f"{policy.name} writes: {reply}")
    return reply


def show_recorded(folder: Path, back: int | None, picture: str) -> None:
    """Print recorded episodes.

    Args:
        folder: a trajectory folder, or a training run's.
        back: 0 for the newest episode, 1 for the one before it, and so on. `None` is the newest on a terminal, and
            elsewhere all of them, the newest last.
        picture: how pictures are drawn (`terminal_pictures.PICTURES`, but not `auto`).

    Raises:
        UserError: there is no such episode.
        TrajectoryError: a record is damaged or malformed.
    """
    places = find_recordings(folder)
    if back is None and not sys.stdout.isatty():
        gap = ""
        for place in reversed(places):
            for episode in read_episodes(place):
                sys.stdout.write(gap)
                _print_episode(episode, place, picture)
                gap = "\n"
        if gap:
            return
    wanted, count = back or 0, 0
    for place in places:
        episodes = list(read_episodes(place))
        if wanted < count + len(episodes):
            _print_episode(episodes[count - wanted - 1], place, picture)
            return
        count += len(episodes)
    raise UserError(
        f"--index {wanted}: {folder} holds {count} whole episode(s){f', 0 to {count - 1}' if count else ' yet'}. "
        "0 is the newest."
    )


def find_recordings(folder: Path, name: str = "--replay") -> list[Path]:
    """Return the trajectory folders in a folder, the newest first; an error calls it `name`."""
    if (folder / METADATA).is_file():
        return [folder]
    base = folder / EPISODES if (folder / EPISODES).is_dir() else folder
    found = sorted((path.parent for path in base.glob(f"[!.]*/{METADATA}")), reverse=True)
    if not found:
        raise UserError(
            f"{name} {folder} holds no recorded episode. Name the folder of a training run (`--record-every` says "
            "how often it records), or one that `vlgym eval` wrote."
        )
    return found


def _print_episode(episode: list[StepRecord], place: Path, picture: str) -> None:
    first, last, total = episode[0], episode[-1], 0.0
    _say(f"{first.part or first.env_id}, episode {first.episode}, seed {first.seed}. Recorded in {place}")
    for turn, record in enumerate(episode, 1):
        total += record.reward
        _say(f"\n--- turn {turn} of {len(episode)} ---")
        names: list[str] = []
        for message in record.messages:
            _say(f"[{message['role']}]")
            for part in message["content"]:
                if part["type"] == "image":
                    names.append(part["file_name"])
                _say(f"<image: {place / names[-1]}>" if part["type"] == "image" else part["text"])
        try:
            for name in names[-1:] if picture != "none" else ():
                show_picture(read_picture(place, name)[1], picture, sys.stdout)
        except TrajectoryError as error:
            _say(f"[the image cannot be read: {error}]")
        _say(f"[reply]\n{record.reply}\n{name_span(record.reply, record.span)}")
        _say_result(record.parse, record.actions, record.reward, total, record.cut)
    _say_end("terminated" if last.terminated else "truncated", len(episode), last.success, total)


def name_span(reply: str, span: tuple[int, int] | None) -> str:
    """Return a line on what was read as the action of a reply; `span` is its range of characters."""
    if span is None:
        return "[nothing was read as an action]"
    start, end = span
    if not 0 <= start <= end <= len(reply):
        return f"[the record names characters {start} to {end}, which the reply lacks]"
    return f"[read as the action: {reply[start:end]!r}, characters {start} to {end}]"


def _say_result(parse: str, actions: Sequence[str], reward: float, total: float, cut: bool = False) -> None:
    executed = f"executed: {', '.join(actions) or 'nothing'}; reward: {reward:g}; return: {total:g}"
    _say(f"parse: {parse}{'; cut by a limit' if cut else ''}; {executed}")


def _say_end(state: str, turns: int, success: bool, total: float) -> None:
    _say(f"\nEpisode {state} after {turns} turn(s): success {'yes' if success else 'no'}, return {total:g}.")


def _say(text: str) -> None:
    """Print with terminal control characters made visible: a model or an environment wrote some of the text."""
    sys.stdout.write(fit_words(show_safe(text), sys.stdout) + "\n")
    sys.stdout.flush()
