"""What processes tell each other, in three real ones: every number, text and tensor arrives whole, in all of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import torch
from processes import together

from baselines.learning.warm_start import WarmReport, share_warm_start
from baselines.runs import distributed, joining

COUNT = 3


def exchange() -> None:
    """Print what this process was told."""
    torch.set_num_threads(1)
    world = joining.join("cpu", minutes=1.0)
    rank = world.rank
    found: dict[str, Any] = {
        "rows": distributed.gather(torch.full((rank, 2), float(rank)), world).tolist(),
        "counts": distributed.gather_counts(5 - rank, world),
        "texts": distributed.gather_texts("é" * rank, world),
        "said": distributed.first_says(f"I am {rank}", world),
        "sums": distributed.sum_values([rank / 3, 1e-12], world),
        "total": distributed.total(5 - rank, world),
        "most": distributed.most(5 - rank, world),
        "any": [distributed.any_of(rank == 1, world), distributed.any_of(False, world)],
    }
    taken = torch.full((2,), float(rank), requires_grad=True)
    before = taken._version
    distributed.take_over([taken], world)
    found["taken"], found["noticed"] = taken.tolist(), taken._version > before

    kinds = (torch.float32, torch.bfloat16, torch.float32)
    first, second, frozen = (torch.nn.Parameter(torch.zeros(2, dtype=kind)) for kind in kinds)
    first.grad = torch.tensor([1.0, float(rank)])
    second.grad = torch.ones(2, dtype=torch.bfloat16) if rank else None
    frozen.requires_grad_(False)
    distributed.sum_gradients([first, second, frozen], world)
    assert second.grad is not None
    assert second.grad.dtype == torch.bfloat16
    assert frozen.grad is None
    found["gradients"] = [first.grad.tolist(), second.grad.tolist()]

    model = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.constant_(model.weight, 10.0 + rank)
    engine: Any = SimpleNamespace(family=SimpleNamespace(model=model), max_new_tokens=100 + rank)
    report = WarmReport(steps=rank + 3, max_new_tokens=20 + rank, success=[(1, 0.5)], loss=float("nan"))
    told = share_warm_start(report, engine, world)
    found["warm"] = [told.steps, engine.max_new_tokens, *model.weight.flatten().tolist()]
    print(json.dumps(found))
    distributed.wait(world)
    joining.leave()


def test_three_processes_are_told_the_same_and_all_of_it(tmp_path):
    told = [json.loads(text) for text in together(COUNT, exchange, tmp_path)]
    assert told == told[:1] * COUNT
    assert told[0] == {
        "rows": [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]], "counts": [5, 4, 3], "texts": ["", "é", "éé"], "said": "I am 0",
        "sums": [1.0, 3e-12], "total": 12, "most": 5, "any": [True, False], "taken": [0.0, 0.0],
        "noticed": True,
        "gradients": [[3.0, 3.0], [2.0, 2.0]], "warm": [3, 20, 10.0, 10.0],
    }  # fmt: skip
