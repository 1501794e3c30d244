"""Weights that are split over the processes of a run, by torch's FSDP2 (`fully_shard`).

Every process keeps its part of each weight of the language model, of its gradient and of the optimizer's moments, in
float32 whatever --dtype says: what a step changes is never rounded away. A layer is put together for the time of its
forward and backward pass, in --dtype, by the library's own forward pass. What is not split:

- the vision tower, which is frozen;
- the model that samples. Decoding reads the weights token by token, so putting them together each time would take
  longer than the arithmetic; every process has a whole copy in --dtype, which is filled anew before a rollout.

So a device holds, beside activations, a whole model in --dtype, and its share of 16 bytes per weight (weights,
gradients and moments); and its share of the reference, if there is one.

All processes must make equally many passes, or they would wait for each other for ever; `batch.micro_batches` adds
empty ones where rows differ.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from ..engine.engine import Engine
from ..models.family import Family, Prompt
from ..runs.checkpoint import check_same_shapes
from ..runs.distributed import World


class ShardedEngine(Engine):
    """Scores with split weights, by the flat path alone; it cannot sample.

    Args:
        whole: engine of the same model with whole weights; it computes the vision features.
        mesh: the processes.
        trained: keep the weights in float32 and train them.
    """

    def __init__(self, whole: Engine, mesh: DeviceMesh, *, trained: bool) -> None:
        family = _twin(whole.family)
        frozen = set(family.vision_parameters())
        dtype = family.language_model.embed_tokens.weight.dtype
        policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
        root = _Pass(family.model)
        parts: list[Any] = [*family.language_model.layers, root]
        for part in parts:  # one after the other, so that no second whole model is ever on the device
            _renew(part, frozen, trained=trained)
            fully_shard(part, mesh=mesh, reshard_after_forward=True, mp_policy=policy, ignored_params=frozen)
        super().__init__(family, max_new_tokens=whole.max_new_tokens, vision_of=whole, static=False)
        self._root = root

    def score_flat_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """As in `Scorer`. No rows make an empty pass, which takes part in what the processes exchange."""
        score = super().score_flat_states if len(prompts) else self._score_nothing
        return self._root(partial(score, prompts, ids, mask))

    def score_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """What `score_flat_states` computes: prompts are not shared where weights are split."""
        return self.score_flat_states(prompts, ids, mask)

    def _score_nothing(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[0, R] and [0, H] that depend on every weight."""
        tokens = torch.zeros(1, 2, dtype=torch.int64, device=ids.device)
        none = self.family.flat_hidden(self.embedding(tokens), tokens.expand(3, -1, -1), None)[0, :0].clone()
        return self.logits(none)[:, :1].repeat(1, ids.shape[1]), none  # FSDP warns of views


class _Pass(nn.Module):
    """A pass of scoring as a module: while it runs, FSDP has the weights outside the layers together."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, score: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        return score()


class ShardedWeights:
    """Every weight of the language model, split over the processes.

    Args:
        engine: of the whole model, equal in all processes; from here on it only samples.
        world: the processes.
        keep_reference: keep the frozen model as it is now, split too.
    """

    def __init__(self, engine: Engine, world: World, *, keep_reference: bool) -> None:
        engine.family.model.requires_grad_(False)
        mesh = init_device_mesh(engine.family.device.type, (world.size,))
        self.sampler, self.whole = engine, engine.family
        self.scorer: Engine = ShardedEngine(engine, mesh, trained=True)
        self.reference: Engine | None = ShardedEngine(engine, mesh, trained=False) if keep_reference else None
        self.family = self.scorer.family
        self.parameters: list[nn.Parameter] = [p for p in self.family.model.parameters() if p.requires_grad]
        self._whole = dict(engine.family.model.named_parameters())

    @torch.no_grad()
    def refresh(self) -> None:
        """Fill the sampler's weights from the parts; all processes together."""
        for name, part in self.family.model.named_parameters():
            if isinstance(part, DTensor):
                whole = self._whole[name]
                whole.copy_(cast(DTensor, part.detach().to(whole.dtype)).full_tensor())

    def tensors(self) -> dict[str, Tensor]:
        """The parts of model and reference, and what is not split, once."""
        found = _named("model", self.family.model)
        if self.reference is not None:
            parts = _named("reference", self.reference.family.model)
            found |= {name: part for name, part in parts.items() if isinstance(part, DTensor)}
        return found

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore model and reference, in place.

        Raises:
            UserError: the checkpoint is of another model.
        """
        own = self.tensors()
        check_same_shapes(own, {name: x for name, x in tensors.items() if name.startswith(("model.", "reference."))})
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(tensors[name])


def _twin(family: Family) -> Family:
    """A second tree of modules over the very same tensors."""
    model = family.model
    twin = copy.copy(family)
    twin.adopt(copy.deepcopy(model, {id(x): x for x in (*model.parameters(), *model.buffers())}))
    return twin


def _renew(part: nn.Module, frozen: set[nn.Parameter], *, trained: bool) -> None:
    """Give a part of a twin weights of its own; those that are tied stay tied, those that are split already stay."""
    new: dict[int, nn.Parameter] = {}
    for module in part.modules():
        for name, old in module.named_parameters(recurse=False):
            if old in frozen or isinstance(old, DTensor):
                continue
            if id(old) not in new:
                dtype = torch.float32 if trained else old.dtype
                new[id(old)] = nn.Parameter(old.detach().to(dtype, copy=True), requires_grad=trained)
            setattr(module, name, new[id(old)])


def _named(prefix: str, model: nn.Module) -> dict[str, Tensor]:
    """Parameters, each once, and lasting buffers under `prefix.`, as in checkpoints of whole weights."""
    named: dict[str, Tensor] = dict(model.named_parameters())
    kept = set(model.state_dict())
    named |= {name: x for name, x in model.named_buffers() if name in kept}
    return {f"{prefix}.{name}": x.detach() for name, x in named.items()}
