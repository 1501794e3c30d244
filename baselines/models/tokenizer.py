"""The tiny models' tokenizer: byte-level BPE, trained here and now on a word list, with no file and no network.

Any text round-trips, because all 256 bytes are tokens; words of the list (those that prompts of visual games are made
of) are single tokens, so prompts stay short. Training is ours, with ties broken by spelling, so the vocabulary is the
same for every version of every library. It is not a tokenizer for real text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, EOS, BOT = "<|endoftext|>", "<|im_end|>", "<|im_start|>"
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
IMAGE_PAD, VIDEO_PAD = "<|image_pad|>", "<|video_pad|>"
SPECIAL_TOKENS = (PAD, BOT, EOS, VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD)

# Whole tokens for the default reply style; ordinary text in every other respect.
TAGS = ("<action>", "</action>")

# Words of prompts and replies. Every word becomes one token, alone and after a space; a changed list is a changed
# vocabulary, which checkpoints of tiny models refuse.
WORDS = """
a about above action actions add after again agent all already an and answer any append are as ask at away back be been
before begin below between board both box boxes but by can cannot card cards carry cell choose chosen close closed
colour column complete current dealer decide described direction distance do does done door down draw drop each east
either empty end ends episode equal equals every example expression face facing far final find first floor follow for
formula forward found from game get give go goal green grey ground had hand has have here hit hold holding how if image
in inside instruction into is it its json key keys know last least left legal less like line list look lower make many
map maze means medkit message minus more most move moved moves moving must name near need needed next no north not now
number numbers object objects observation of off on one only open operator or other out over path pick picked picture
place plan play player plus point points position possible press previous put reach reached red reply rest result reward
right room row rule rules same say see seen shown shows side sign so solve south stand start state step steps still stop
straight such sum symbol take target task tell text than that the their them then there these they think this thought
thoughts three through tile to toggle total toward towards turn turns two until up use used using value view visible
wall walls want was way we west what when where which while white who will win with without word world write written
wrong yellow you your zero user assistant system ball blue purple king queen jack ace suit hearts spades clubs diamonds
value exactly once closer smaller larger greater higher same briefly reach takes rotates robot camera sees degrees leads
ahead playing play count counts finish appended incomplete nothing arrow wins another draws soft loses lose blackjack
alive health kit restores picking picked subtracts makes balls four sidewalk cones street stepping color names touch
penalty behind black targets cross free onto push pushes pushed pull stuck squares brick corner few good frame rubber
duck Sokoban NumberLine EZPoints Points Formula Health Stay Say End Arrow Picked Touching Moving Boxes Push Make D Q J K
A Act Action Actions After Answer At Blackjack Choose Current Do Each Find For Format Go Goal Hallway If In It Legal
Look Move No Number Pick Play Point Reach Reply Room State Step Take Target Task The Then There Think This To Turn Use
When Write You Your ACTION JSON 0 1 2 3 4 5 6 7 8 9 10 11 12 24 . , : ; ? ! ( ) [ ] { } + - * / = " ' < > ": ", {" "}
[]. ). ), .. ... </ "," - _
"""

_VOCABULARY_LIMIT = 2048


def train_merges(words: Mapping[str, int], limit: int) -> list[tuple[str, str]]:
    """Learn BPE merges, in order: join the most frequent neighbouring pair until every word is one token or `limit`
    merges are made. Ties go to the pair that sorts last, so the result depends on nothing but the arguments.

    `words` are pre-tokenised, in the byte-level alphabet, with counts.
    """
    spellings = {word: list(word) for word in words}
    merges: list[tuple[str, str]] = []
    while len(merges) < limit:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in spellings.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for parts in spellings.values():
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1]]
                i += 1
    return merges


@lru_cache(maxsize=1)
def _trained() -> tuple[dict[str, int], list[tuple[str, str]]]:
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    words: Counter[str] = Counter()
    for word in WORDS.split():
        for text in (word, " " + word):
            words.update(piece for piece, _ in split.pre_tokenize_str(text))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = train_merges(words, _VOCABULARY_LIMIT - len(alphabet) - len(SPECIAL_TOKENS) - len(TAGS))
    vocabulary: dict[str, int] = {}
    for token in [*alphabet, *(a + b for a, b in merges)]:
        vocabulary.setdefault(token, len(vocabulary))
    return vocabulary, merges


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build the tokenizer; the same one in every process. Takes about half a second the first time."""
    vocabulary, merges = _trained()
    tokenizer = Tokenizer(models.BPE(vocab=dict(vocabulary), merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
