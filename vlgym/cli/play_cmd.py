"""`vlgym play`: one episode in the terminal, through a model's own prompt and parser; every image goes to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..env import VLEnv
from ..env.prompts import PastTurn, PromptBuilder
from ..env.rendering import encode_png
from ..env.seeding import episode_seed
from ..errors import UserError, check_choice, nearest
from ..files import new_folder
from ..play.human import HINT, complete_reply, number_choices, read_rest, takes_lines
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..play.terminal_pictures import PICTURES, choose_protocol, show_picture
from ..registry import get_registry
from ..registry.making import make
from ..terminal import fit_words, show_safe
from ..types import Message, Turn
from .console import read_arguments, write_messages
from .list_cmd import Arguments
from .replay_cmd import show_recorded

POLICIES = ("human", "random", "oracle")
HELP = """\
Type a whole reply, as a model would write it, or just one of the legal actions or its number: it is then put into the
reply format.
  :oracle   let the oracle answer this turn
  :prompt   show the whole prompt of this turn again
  :help     this text
  :quit     end the game (so does the end of the input)"""


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

    def prompt(self) -> str:
        """Return that prompt as text, each image by the name of its file."""
        return write_messages(self.messages(), self.files)

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
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the episode.")] = None,
    split: Annotated[str | None, typer.Option(help="Take the seed from this split: train, val or test.")] = None,
    index: Annotated[
        int | None,
        typer.Option(min=0, help="Number of the episode within the split (default 0); with --replay, 0 is the newest."),
    ] = None,
    parser: Annotated[str | None, typer.Option(help="Reply style: tag, json, plan or an import string.")] = None,
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
    if seed is not None and split is not None:
        raise UserError("Give --seed or --split, not both: a split sets the seeds of its episodes.")
    get_registry().get(env_id)
    chosen = seed if seed is not None else episode_seed(env_id, split or "train", index or 0)
    arguments = read_arguments(arg or [])
    if parser is not None:
        arguments["parser"] = parser
    env = make(env_id, **arguments)
    try:
        builder = PromptBuilder.for_spec(env.vlgym_spec)
        game = Game(env, env_id, chosen, new_folder(out or Path("play") / env_id, "game"), builder, protocol)
        game.begin()
        _say(f"{env_id}, seed {chosen}, reply style {env.parser.name}. Images: {game.folder}")
        if policy == "human":
            _say(f"{HELP}\n{HINT}" if takes_lines(game.env) else HELP)
        asked = {"random": RandomPolicy, "oracle": OraclePolicy}.get(policy)
        _play_on(game, partial(_ask_policy, asked()) if asked else _ask_human)
        _say_end(game)
    finally:
        env.close()


def _play_on(game: Game, ask: Callable[[Game], str | None]) -> None:
    """Ask for replies until the episode ends or there is none."""
    while not game.ended:
        _say(f"\n--- turn {game.turn + 1} ---\n{game.prompt()}")
        show_picture(game.observation["image"], game.picture, sys.stdout)
        reply = ask(game)
        if reply is None:
            return
        reward = game.answer(reply)
        details = game.info["vlgym"]
        executed = ", ".join(details["actions"]) or "nothing"
        _say(
            f"parse: {details['parse']}; executed: {executed}; reward: {reward:g}; return: {game.env.episode_return:g}"
        )
        if details["feedback"]:
            _say(f"feedback: {details['feedback']}")


def _ask_human(game: Game) -> str | None:
    """Read lines until one is a reply; `None` at the end of the input."""
    if not takes_lines(game.env):
        _say(number_choices(game.env))
    while True:
        sys.stdout.write("> ")
        sys.stdout.flush()
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


def _say_end(game: Game) -> None:
    state = game.ended or "not finished"
    success = "yes" if game.info["success"] else "no"
    last = game.files[id(game.observation["image"])]
    if game.ended:
        show_picture(game.observation["image"], game.picture, sys.stdout)
    _say(
        f"\nEpisode {state} after {game.turn} turn(s): success {success}, return {game.env.episode_return:g}. "
        f"Last image: {last}"
    )


def _say(text: str) -> None:
    """Print with terminal control characters made visible: an environment wrote some of the text."""
    sys.stdout.write(fit_words(show_safe(text), sys.stdout) + "\n")
    sys.stdout.flush()
