"""The tiny vision-language model and its tokenizer, built offline: the default of every command.

It is a `Qwen2VLForConditionalGeneration` with random weights, which knows nothing before its warm
start. With the library's std of 0.02 a model this small sits on a plateau where it ignores the
image; with 0.08 (embeddings 0.02, patch embedding 0.03) it reads printed digits after some hundred
batches.

The tokenizer is byte-level BPE, trained on a list of words from prompts of visual games. Any text
round-trips; words of the list are single tokens, so prompts are short. Training breaks ties by
spelling, so the vocabulary does not depend on versions of libraries.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

PAD, EOS, BOT = "<|endoftext|>", "<|im_end|>", "<|im_start|>"
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
IMAGE_PAD, VIDEO_PAD = "<|image_pad|>", "<|video_pad|>"
SPECIAL_TOKENS = (PAD, BOT, EOS, VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD)
TAGS = ("<action>", "</action>")  # text, but whole tokens

# Every word is one token, alone and after a space. Checkpoints refuse another vocabulary.
WORDS = """
a about above action actions add after again agent all already an and answer any append are as ask
at away back be been before begin below between board both box boxes but by can cannot card cards
carry cell choose chosen close closed colour column complete current dealer decide described
direction distance do does done door down draw drop each east either empty end ends episode equal
equals every example expression face facing far final find first floor follow for formula forward
found from game get give go goal green grey ground had hand has have here hit hold holding how if
image in inside instruction into is it its json key keys know last least left legal less like line
list look lower make many map maze means medkit message minus more most move moved moves moving must
name near need needed next no north not now number numbers object objects observation of off on one
only open operator or other out over path pick picked picture place plan play player plus point
points position possible press previous put reach reached red reply rest result reward right room
row rule rules same say see seen shown shows side sign so solve south stand start state step steps
still stop straight such sum symbol take target task tell text than that the their them then there
these they think this thought thoughts three through tile to toggle total toward towards turn turns
two until up use used using value view visible wall walls want was way we west what when where which
while white who will win with without word world write written wrong yellow you your zero user
assistant system ball blue purple king queen jack ace suit hearts spades clubs diamonds value
exactly once closer smaller larger greater higher same briefly reach takes rotates robot camera sees
degrees leads ahead playing play count counts finish appended incomplete nothing arrow wins another
draws soft loses lose blackjack alive health kit restores picking picked subtracts makes balls four
sidewalk cones street stepping color names touch penalty behind black targets cross free onto push
pushes pushed pull stuck squares brick corner few good frame rubber duck Sokoban NumberLine EZPoints
Points Formula Health Stay Say End Arrow Picked Touching Moving Boxes Push Make D Q J K A Act Action
Actions After Answer At Blackjack Choose Current Do Each Find For Format Go Goal Hallway If In It
Legal Look Move No Number Pick Play Point Reach Reply Room State Step Take Target Task The Then
There Think This To Turn Use When Write You Your ACTION JSON 0 1 2 3 4 5 6 7 8 9 10 11 12 24 . , : ;
? ! ( ) [ ] { } + - * / = " ' < > ": ", {" "} []. ). ), .. ... </ "," - _
"""


def train_merges(words: Mapping[str, int], limit: int) -> list[tuple[str, str]]:
    """Learn at most `limit` BPE merges of words in the byte-level alphabet, with their counts: join
    the most frequent neighbours until every word is one token. Ties go to the last in order."""
    spellings = {word: list(word) for word in words}
    merges: list[tuple[str, str]] = []
    pairs: Counter[tuple[str, str]] = Counter()
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)  # words with that pair

    def count(word: str, sign: int) -> None:
        for pair in pairwise(spellings[word]):
            pairs[pair] += sign * words[word]
            holders[pair].add(word)

    for word in words:
        count(word, 1)
    while len(merges) < limit and (pairs := +pairs):  # without zeros
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)

        # Only words with that pair change.
        for word in holders.pop(best):
            count(word, -1)
            parts, i = spellings[word], 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1]]
                i += 1
            count(word, 1)
    return merges


@lru_cache(maxsize=1)
def _trained() -> tuple[dict[str, int], list[tuple[str, str]]]:
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    words: Counter[str] = Counter()
    for word in WORDS.split():
        for text in (word, " " + word):
            words.update(piece for piece, _ in split.pre_tokenize_str(text))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = train_merges(words, 2048 - len(alphabet) - len(SPECIAL_TOKENS) - len(TAGS))
    tokens = dict.fromkeys([*alphabet, *(a + b for a, b in merges)])
    return {token: number for number, token in enumerate(tokens)}, merges


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build the tokenizer; half a second the first time."""
    vocabulary, merges = _trained()
    tokenizer = Tokenizer(models.BPE(vocab=dict(vocabulary), merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(x, special=False, normalized=False) for x in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=EOS, pad_token=PAD, padding_side="left",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


TEMPLATE = (
    "{% if tools %}<|im_start|>system\nTools:\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}Call one by "
    '<tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call><|im_end|>\n{% endif %}'
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content or [] %}{% if part.type == 'text' %}{{ part.text }}"
    "{% endif %}{% endfor %}{% for part in message.content or [] %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}"
    "{% for call in message.tool_calls or [] %}"
    "<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The default model's layout for a server of its export. Tools and calls of them are for TRL."""

CALLS = {
    "defaults": {"role": "assistant"}, "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>", "close_pattern": r"</tool_call>\s*", "repeats": True,
            "content": "json", "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}  # fmt: skip
"""How the library reads a reply in that layout (`response_template`)."""


@dataclass(frozen=True)
class TinyConfig:
    """Shape and initialisation of a tiny model."""

    hidden_size: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    intermediate_size: int = 256
    vision_depth: int = 1
    vision_width: int = 96
    vision_heads: int = 3
    std: float = 0.08
    embedding_std: float = 0.02
    patch_std: float = 0.03
    norm_std: float = 0.0  # of norm weights and biases around the library's values


def build_tiny(config: TinyConfig = TinyConfig(), seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Build the model and its tokenizer; no global generator is read or moved."""
    tokenizer = build_tokenizer()
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, CALLS
    hf_config = Qwen2VLConfig(
        text_config=text_options(config, tokenizer), vision_config=vision_options(config),
        architectures=["Qwen2VLForConditionalGeneration"], **media_options(tokenizer),
    )  # fmt: skip
    hf_config.vlgym_tiny = asdict(config)  # by it a saved tiny model is recognised
    with torch.random.fork_rng(devices=[]):  # the library's initialisation moves the generator
        model = Qwen2VLForConditionalGeneration(hf_config)
    return initialise(model, tokenizer, config, seed), tokenizer


def text_options(config: TinyConfig, tokenizer: Any) -> dict[str, Any]:
    """Options of the library's text model; the sections of rotary positions sum to half a head."""
    half = config.hidden_size // config.heads // 2
    first, second = half // 4, (half - half // 4) // 2
    sections = [first, second, half - first - second]
    return {
        "vocab_size": len(tokenizer), "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size, "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads, "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": 8192, "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": sections},
    }  # fmt: skip


def vision_options(config: TinyConfig) -> dict[str, Any]:
    """Options of the library's vision tower."""
    return {
        "depth": config.vision_depth, "embed_dim": config.vision_width,
        "hidden_size": config.hidden_size, "num_heads": config.vision_heads, "mlp_ratio": 2,
    }  # fmt: skip


def media_options(tokenizer: Any) -> dict[str, Any]:
    """Ids of Qwen's placeholders."""
    ids = tokenizer.convert_tokens_to_ids
    return {
        "image_token_id": ids(IMAGE_PAD), "video_token_id": ids(VIDEO_PAD),
        "vision_start_token_id": ids(VISION_START), "vision_end_token_id": ids(VISION_END),
    }  # fmt: skip


@torch.no_grad()
def initialise(model: PreTrainedModel, tokenizer: Any, config: TinyConfig, seed: int) -> PreTrainedModel:
    """Draw the weights; return the model, in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    stds = {"embed_tokens": config.embedding_std, "patch_embed": config.patch_std}
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            std = next((std for part, std in stds.items() if part in name), config.std)
            parameter.normal_(0.0, std, generator=generator)
        elif config.norm_std:  # norms and biases; the library's values are not random
            parameter.add_(torch.empty_like(parameter).normal_(0.0, config.norm_std, generator=generator))

    # The library's `generate` stops where our engine does.
    model.generation_config.eos_token_id = model.config.text_config.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.eval()
