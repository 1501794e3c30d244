"""`vlgym play`: one episode in the terminal, through a model's own prompt and parser; every image goes to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..env import VLEnv
from ..env.prompts import PastTurn, PromptBuilder
from ..env.rendering import encode_png
from ..env.seeding import episode_seed
from ..errors import check_choice, nearest
from ..files import new_folder
from ..play.human import HINT, complete_reply, number_choices, read_rest, takes_lines
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..play.terminal_pictures import PICTURES, choose_protocol, show_picture
from ..registry import get_registry
from ..registry.making import make
from ..terminal import fit_words, show_safe
from ..types import Message, Turn
from .console import Arguments, EnvId, read_arguments, write_messages

POLICIES = ("human", "random", "oracle")
HELP = """\
Type a whole reply, as a model would write it, or just one of the legal actions or its number: it is then put into the
reply format.
  :oracle   let the oracle answer this turn
  :prompt   show the whole prompt of this turn, earlier turns included
  :help     this text
  :quit     end the game (so does the end of the input)"""


class Game:
    """One episode: the environment, what the model would be shown, and the files of its images."""

    def __init__(self, env: VLEnv, env_id: str, seed: int, folder: Path) -> None:
        self.env, self.env_id, self.seed, self.folder = env, env_id, seed, folder
        self.builder = PromptBuilder.for_spec(env.vlgym_spec)
        self.history: list[PastTurn] = []
        self.files: dict[int, str] = {}
        self.turn, self.ended = 0, ""
        env.action_space.seed(seed % 2**32)
        self.observation, self.info = env.reset(seed=seed)
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
    env_id: EnvId,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed [default: of the first training episode].")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the images; default ./play/<id>.")] = None,
    policy: Annotated[str, typer.Option(help=f"Who answers: {', '.join(POLICIES)}.")] = "human",
    arg: Arguments = None,
    picture: Annotated[
        str, typer.Option(help=f"How to draw the image in the terminal: {', '.join(PICTURES)}.")
    ] = "auto",
) -> None:
    """Play one episode by hand (or watch random or the oracle): you see and write exactly what a model does."""
    check_choice("--picture", picture, PICTURES)
    protocol = choose_protocol(picture, sys.stdout)
    check_choice("--policy", policy, POLICIES)
    get_registry().get(env_id)
    seed = episode_seed(env_id, "train", 0) if seed is None else seed
    env = make(env_id, **read_arguments(arg or []))
    try:
        game = Game(env, env_id, seed, new_folder(out or Path("play") / env_id, "game"))
        _say(f"{env_id}, seed {seed}, reply style {env.parser.name}. Images: {game.folder}")
        if policy == "human":
            _say(f"{HELP}\n{HINT}" if takes_lines(game.env) else HELP)
        asked = {"random": RandomPolicy, "oracle": OraclePolicy}.get(policy)
        _play_on(game, partial(_ask_policy, asked()) if asked else _ask_human, protocol)
        success = f"success {'yes' if game.info['success'] else 'no'}, return {env.episode_return:g}"
        _say(f"\nEpisode {game.ended or 'not finished'} after {game.turn} turn(s): {success}.")
        _say(f"Last image: {game.files[id(game.observation['image'])]}")
    finally:
        env.close()


def _play_on(game: Game, ask: Callable[[Game], str | None], picture: str) -> None:
    """Ask for replies until the episode ends or there is none."""
    while not game.ended:
        _say(f"\n--- turn {game.turn + 1} ---\n{game.prompt(int(game.turn > 0))}")
        show_picture(game.observation["image"], picture, sys.stdout)
        reply = ask(game)
        if reply is None:
            return
        reward = game.answer(reply)
        details = game.info["vlgym"]
        executed = f"executed: {', '.join(details['actions']) or 'nothing'}"
        _say(f"parse: {details['parse']}; {executed}; reward: {reward:g}; return: {game.env.episode_return:g}")
        if details["feedback"]:
            _say(f"feedback: {details['feedback']}")
    show_picture(game.observation["image"], picture, sys.stdout)


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


def _say(text: str) -> None:
    """Print with terminal control characters made visible: a model or an environment wrote some of the text."""
    sys.stdout.write(fit_words(show_safe(text), sys.stdout) + "\n")
    sys.stdout.flush()
