"""Base weights in 4 bits (NF4, with quantised constants), by bitsandbytes, under adapters that are trained
(Dettmers et al., 2023, arXiv 2305.14314).

Imported only where `--quantize nf4` asks for it. What becomes small are the linear layers of the language model, which
are most of a model; embeddings, output layer and vision tower stay as they are. The layers compute in the model's type:
each product first unpacks its weights, so a pass takes longer.
"""

from __future__ import annotations

import re

import torch
from bitsandbytes import matmul_4bit
from bitsandbytes.functional import dequantize_4bit
from bitsandbytes.nn import Linear4bit, Params4bit
from torch import Tensor, nn

from .family import Family

TYPE = "nf4"


class FrozenLinear(Linear4bit):
    """A linear layer in 4 bits.

    The library's own `forward` repacks its weights on some processors when no gradient is asked for, and then gives
    none when one is; this one never does.
    """

    weight: Params4bit

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs] of the same type, differentiable in `x`."""
        bias = None if self.bias is None else self.bias.to(x.dtype)
        product: Tensor = matmul_4bit(x, self.weight, quant_state=self.weight.quant_state, bias=bias)
        return product.to(x.dtype)

    def unpack(self) -> Tensor:
        """The weights that it computes with, [outputs, inputs] float32."""
        weights: Tensor = dequantize_4bit(self.weight.data, self.weight.quant_state)
        return weights.float()


def quantize(family: Family, targets: str, device: str) -> None:
    """Put the linear layers of a language model into 4 bits, in place, one after the other, and the model on a device.

    Build engines afterwards: they list the weights they watch when they are made.

    Args:
        family: the model, without adapters.
        targets: pattern of the layers' paths in the language model.
        device: where they are to be; only packed weights go there.
    """
    layers = dict(family.language_model.named_modules())
    for path, linear in layers.items():
        if re.fullmatch(targets, path) and type(linear) is nn.Linear:
            parent, _, name = path.rpartition(".")
            setattr(layers[parent], name, _pack(linear, device))
    family.model.to(device)


def _pack(linear: nn.Linear, device: str) -> FrozenLinear:
    kind = linear.weight.dtype
    packed = FrozenLinear(
        linear.in_features, linear.out_features, bias=False, compute_dtype=kind, quant_type=TYPE, device="meta"
    )
    packed.weight = Params4bit(
        linear.weight.data, requires_grad=False, compress_statistics=True, quant_type=TYPE, module=packed
    )
    packed.bias = None if linear.bias is None else nn.Parameter(linear.bias.data, requires_grad=False)
    return packed.to(torch.device(device))
