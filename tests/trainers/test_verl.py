"""verl: its agent-loop base and token builder, with a fake server, play Gymnasium's episodes."""

import asyncio
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from vlgym.env.seeding import episode_seed

pytest.importorskip("verl", reason="needs an environment of its own: make trainers")
from omegaconf import OmegaConf
from publish import TURNS
from transformers import Qwen2VLProcessor, Qwen2VLVideoProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from baselines.models.tiny import build_tiny
from vlgym.integrations.turn_rows import make_row
from vlgym.integrations.verl import Game, make_rows

EPISODES, TURN_LIMIT, ROOM = 6, 5, 4096
IDS = ("vlgym/NumberLine-v1", "vlgym/CanaryMemory-v0", "vlgym/OneRoomS6Fast-v1")
IMAGES = {"size": {"shortest_edge": 56 * 56, "longest_edge": 224 * 224}}


@pytest.fixture(scope="module")
def processor() -> Qwen2VLProcessor:
    _, tokenizer = build_tiny()
    images = Qwen2VLImageProcessorPil(patch_size=14, merge_size=2, temporal_patch_size=2, **IMAGES)
    videos = Qwen2VLVideoProcessor(patch_size=14, merge_size=2, temporal_patch_size=2)
    return Qwen2VLProcessor(image_processor=images, tokenizer=tokenizer, video_processor=videos, chat_template=TURNS)


class Server:
    """Says random actions that are legal, or nonsense, and plays them in Gymnasium's environment.

    Attributes:
        requests: (ids of the prompt, pictures) of each request.
        replies: in their order.
        results: what Gymnasium's environment answered.
    """

    def __init__(self, tokenizer: Any, env: gymnasium.Env, seed: int, log_probs: bool = True) -> None:
        self.tokenizer, self.env, self.log_probs = tokenizer, env, log_probs
        self.rng = np.random.default_rng(seed)
        self.requests: list[tuple[list[int], list[Any]]] = []
        self.replies: list[str] = []
        self.results: list[tuple[Any, ...]] = []

    async def generate(self, request_id: str, *, prompt_ids, sampling_params, image_data) -> TokenOutput:
        self.requests.append((list(prompt_ids), image_data))
        legal = self.env.unwrapped.legal_actions()
        action = "nothing" if self.rng.random() < 0.1 else self.rng.choice(legal)
        self.replies.append(f"<action>{action}</action>")
        self.results.append(self.env.step(self.replies[-1]))
        ids = self.tokenizer.encode(self.replies[-1] + "<|im_end|>")
        return TokenOutput(token_ids=ids, log_probs=[-1.0] * len(ids) if self.log_probs else None)


def play(row: dict[str, Any], processor: Any, server: Server, room: int = ROOM, turns: int | None = None) -> Any:
    rollout = {"prompt_length": 4096, "response_length": room, "multi_turn": {"max_assistant_turns": turns}}

    async def run() -> AgentLoopOutput:
        config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})
        game = Game(
            trainer_config=DictConfigWrap(config), server_manager=server, tokenizer=processor.tokenizer,
            processor=processor, dataset_cls=RLHFDataset, data_config=DictConfigWrap(OmegaConf.create({})),
            hf_model_type="qwen2_vl",
        )  # fmt: skip
        return await game.run({"temperature": 1.0}, raw_prompt=row["prompt"], extra_info=row["extra_info"])

    return asyncio.run(run())


def read_batch(out: AgentLoopOutput) -> dict[str, Any]:
    """Return what verl's trainer finds of an episode, twice in a batch, in its tensor dict."""
    infos = [out.extra_fields["reward_extra_info"]] * 2
    columns = {key: np.array([each[key] for each in infos]) for key in infos[0]}
    for key, value in out.extra_fields.items():  # as `AgentLoopWorker._postprocess` does
        columns[key] = np.empty(2, dtype=object)
        columns[key][:] = [value] * 2
    batch = DataProto.from_dict(tensors={"x": torch.zeros(2)}, non_tensors=columns).to_tensordict()
    arrays = DataProto.from_tensordict(batch).non_tensor_batch
    return {key: values[1] for key, values in arrays.items()}


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("log_probs", [True, False])
def test_an_episode_of_verls_is_gymnasiums(env_id, log_probs, processor, record_property):
    turns, tokenizer = 0, processor.tokenizer
    rows = make_rows(env_id, EPISODES, split="val", first=2, max_turns=TURN_LIMIT)
    for number, row in enumerate(rows):
        env = gymnasium.make(env_id, max_turns=TURN_LIMIT, disable_env_checker=True)
        observation, info = env.reset(seed=episode_seed(env_id, "val", number + 2))
        server = Server(tokenizer, env, number, log_probs)
        out = play(row, processor, server)
        pictures, texts, total = [observation["image"]], [observation["text"]], 0.0
        invalid, batch = 0, read_batch(out)
        for index in range(len(server.replies)):
            ids, images = server.requests[index]
            assert all(map(np.array_equal, images, pictures))
            assert len(images) == len(pictures)
            prompt = tokenizer.decode(ids)
            assert prompt.count("<|vision_start|>") == len(pictures)
            assert all(text in prompt for text in texts)
            observation, reward, terminated, truncated, info = server.results[index]
            pictures.append(observation["image"])
            texts.append(info["vlgym"]["turn_text"])
            total, turns, invalid = total + float(reward), turns + 1, invalid + info["invalid_action"]
            assert batch["turn_scores"][index] == reward
            assert batch["turns"][index] == make_row(reward, info)
        assert terminated or truncated
        assert len(batch["turns"]) == len(batch["turn_scores"]) == len(server.replies)
        assert out.reward_score == total
        assert (batch["success"], batch["invalid_turns"]) == (info["success"], invalid)
        output_images = out.multi_modal_data["images"]
        assert all(map(np.array_equal, output_images, pictures))
        assert len(output_images) == len(pictures) - 1
        learnt = [token for token, mine in zip(out.response_ids, out.response_mask, strict=True) if mine]
        assert tokenizer.decode(learnt) == "".join(f"{reply}<|im_end|>" for reply in server.replies)
        assert (out.response_logprobs is not None) == log_probs
        if log_probs:
            assert out.response_logprobs == [-1.0 if mine else 0.0 for mine in out.response_mask]
        assert out.prompt_ids == server.requests[0][0]
        assert out.num_turns == 2 * len(server.replies)
        whole = [*out.prompt_ids, *out.response_ids]  # with the trainer's number of tokens for each picture
        text = re.sub(r"(<\|image_pad\|>)+", "<|image_pad|>", tokenizer.decode(whole))
        assert processor(text=[text], images=output_images)["input_ids"][0] == whole
    record_property("comparison", f"{env_id}: {EPISODES} episodes, {turns} turns, 0 differences")


def test_an_episode_ends_where_the_room_or_the_trainers_turns_end(processor):
    (row,) = make_rows("vlgym/NumberLine-v1", 1)

    def run(**limits: int) -> tuple[AgentLoopOutput, Server]:
        env = gymnasium.make("vlgym/NumberLine-v1", disable_env_checker=True)
        env.reset(seed=row_seed)
        server = Server(processor.tokenizer, env, 0)
        return play(row, processor, server, **limits), server

    row_seed = episode_seed("vlgym/NumberLine-v1", "train", 0)
    out, server = run(turns=3)
    assert (len(server.replies), out.num_turns, len(out.multi_modal_data["images"])) == (3, 6, 3)
    whole = len(out.response_ids)
    for room in range(whole - 90, whole, 7):  # the cut comes within a reply or within a picture
        out, _ = run(room=room, turns=3)
        assert len(out.response_ids) == len(out.response_mask) == len(out.response_logprobs) <= room
        spans = processor.tokenizer.decode([*out.prompt_ids, *out.response_ids]).count("<|vision_end|>")
        assert spans == len(out.multi_modal_data["images"])
