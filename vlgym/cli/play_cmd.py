"""`vlgym play`: one episode in the terminal, by a model's prompt and parser; images are files."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

from typer import Option

from ..env.seeding import episode_seed
from ..errors import check_choice
from ..files import new_folder
from ..play.human import PROTOCOLS, HumanPolicy, InputEnded, choose_protocol, say
from ..play.policies import OraclePolicy, RandomPolicy
from ..play.rollout import Runner
from ..registry import get_registry
from ..registry.making import make
from .console import Arguments, EnvId, read_arguments

POLICIES = {"human": None, "random": RandomPolicy, "oracle": OraclePolicy}


def play_in_terminal(
    env_id: EnvId,
    seed: Annotated[int | None, Option(min=0,
        help="Seed [default: of the first training episode].")] = None,
    out: Annotated[Path | None, Option(help="Folder for the images; default ./play/ID.")] = None,
    policy: Annotated[str, Option(help=f"Who answers: {', '.join(POLICIES)}.")] = "human",
    arg: Arguments = None,
    picture: Annotated[str, Option(
        help=f"How to draw the image in the terminal: {', '.join(PROTOCOLS)}.")] = "auto",
) -> None:  # fmt: skip
    """Play one episode by hand (or watch random or the oracle): you see and write exactly what a model does."""
    protocol = choose_protocol(check_choice("--picture", picture, PROTOCOLS), sys.stdout)
    player = POLICIES[check_choice("--policy", policy, POLICIES)]
    get_registry().get(env_id)
    seed = episode_seed(env_id, "train", 0) if seed is None else seed

    # A wrong option or id is told before anything is made.
    with closing(make(env_id, **read_arguments(arg or []))) as env:
        person = HumanPolicy(new_folder(out or Path("play") / env_id, "game"), protocol, oracle=True)
        say(f"{env_id}, seed {seed}, reply style {env.parser.name}. Images: {person.pictures}")
        runner = Runner([env], episodes=1, seed=seed)

        # Turn by turn, through the prompt and the parser of a model.
        ended, (slot,) = "not finished", runner.slots
        try:
            while not runner.done:
                turns = runner.turns()
                person.show(turns[0])
                replies = player().reply(turns) if player else [person.ask(turns[0])]
                if player:
                    say(f"{policy} writes: {replies[0].text}")
                (record,) = runner.advance(turns, replies, policy)
                reward = f"reward: {record.reward:g}; return: {env.episode_return:g}"
                say(f"parse: {record.parse}; executed: {', '.join(record.actions) or 'nothing'}; {reward}")
                if feedback := slot.info["vlgym"]["feedback"]:
                    say(f"feedback: {feedback}")
                if runner.done:
                    ended = "terminated" if record.terminated else "truncated"
                    person.draw(slot.observation["image"])
        except InputEnded:
            say("\nEnd of the input.")

        # The last picture shows the end, which no prompt does.
        won = "yes" if slot.info["success"] else "no"
        end = f"success {won}, return {env.episode_return:g}"
        say(f"\nEpisode {ended} after {slot.turn} turn(s): {end}.")
        say(f"Last image: {person.keep(slot.observation['image'])}")
