"""Tiny random models of families without a fast path, with their own processors and templates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as tf
from tokenizers import AddedToken

from baselines.models.tiny import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer

VISION = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
LAYERS = {"depth": 2, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
ROPE = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}
Built = tuple[Any, Any]  # configuration, processor


def _tokenizer(*special: str, **named: str) -> tuple[Any, Callable[[str], int]]:
    tokenizer = build_tokenizer()
    added = [AddedToken(token, special=True, normalized=False) for token in special]
    tokenizer.add_tokens(added, special_tokens=True)
    if named:
        tokenizer._set_model_specific_special_tokens(named)
    return tokenizer, tokenizer.convert_tokens_to_ids


def text_part(tokenizer: Any, **more: Any) -> dict[str, Any]:
    ids = tokenizer.convert_tokens_to_ids
    return {
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "max_position_embeddings": 2048, "bos_token_id": None, "eos_token_id": ids(EOS),
        "pad_token_id": ids(PAD), **more,
    }  # fmt: skip


def _processor(kind: Any, images: Any, tokenizer: Any, image: str, **own: Any) -> Any:
    """A processor of images and text alone."""

    def check(self: Any, name: str, part: Any) -> Any:
        return None if part is None else kind.check_argument_for_proper_class(self, name, part)

    template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
        "{% if part.type == 'image' %}" + image + "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    bare: Any = type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})
    parts = dict.fromkeys(kind.get_attributes()) | {"image_processor": images, "tokenizer": tokenizer}
    made = bare(**parts, chat_template=template, **own)
    bare.get_attributes = classmethod(lambda cls: ["image_processor", "tokenizer"])  # those saved
    return made


def _idefics3() -> Built:
    cells = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    tokenizer, ids = _tokenizer("<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *cells)
    config = tf.Idefics3Config(
        text_config=text_part(tokenizer, model_type="llama"), scale_factor=2,
        vision_config={"image_size": 32, "patch_size": 8, **VISION},
        image_token_id=ids("<image>"), pad_token_id=ids(PAD),
    )  # fmt: skip
    images = tf.Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    return config, _processor(tf.Idefics3Processor, images, tokenizer, "<image>", image_seq_len=4)


def _internvl() -> Built:
    named = {
        "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }  # fmt: skip
    tokenizer, ids = _tokenizer(*named.values(), **named)
    config = tf.InternVLConfig(
        text_config=text_part(tokenizer, model_type="qwen2"), image_token_id=ids("<IMG_CONTEXT>"), image_seq_length=4,
        vision_config={"image_size": [32, 32], "patch_size": [8, 8], **VISION},
    )  # fmt: skip
    size = {"height": 32, "width": 32}
    images = tf.GotOcr2ImageProcessorPil(size=size, crop_to_patches=True, max_patches=4)
    return config, _processor(tf.InternVLProcessor, images, tokenizer, "<IMG_CONTEXT>\n", image_seq_length=4)


def _glm4v() -> Built:
    begin, end = "<|begin_of_image|>", "<|end_of_image|>"
    videos = ("<|begin_of_video|>", "<|end_of_video|>")
    tokenizer, ids = _tokenizer("<|image|>", "<|video|>", begin, end, *videos)
    config = tf.Glm4vConfig(
        text_config=text_part(tokenizer, rope_parameters=ROPE | {"mrope_section": [1, 1, 2]}),
        vision_config={**LAYERS, "patch_size": 8, "image_size": 64, "spatial_merge_size": 2},
        image_token_id=ids("<|image|>"), video_token_id=ids("<|video|>"), image_start_token_id=ids(begin),
        image_end_token_id=ids(end), video_start_token_id=ids("<|begin_of_video|>"),
        video_end_token_id=ids("<|end_of_video|>"),
    )  # fmt: skip
    size = {"shortest_edge": 512, "longest_edge": 8192}
    images = tf.Glm4vImageProcessorPil(patch_size=8, merge_size=2, size=size)
    return config, _processor(tf.Glm4vProcessor, images, tokenizer, f"{begin}<|image|>{end}")


def _llava_onevision() -> Built:
    tokenizer, ids = _tokenizer("<image>", "<video>")
    grids = [[32, 32], [32, 64], [64, 32], [64, 64]]
    vision = {"model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8, "vision_use_head": False}
    config = tf.LlavaOnevisionConfig(
        text_config=text_part(tokenizer, model_type="qwen2"), vision_config=vision | VISION, image_grid_pinpoints=grids,
        image_token_index=ids("<image>"), video_token_index=ids("<video>"),
    )  # fmt: skip
    images = tf.LlavaOnevisionImageProcessorPil(size={"height": 32, "width": 32}, image_grid_pinpoints=grids)
    own = {"num_image_tokens": 16, "vision_feature_select_strategy": "full"}
    return config, _processor(tf.LlavaOnevisionProcessor, images, tokenizer, "<image>\n", **own)


def _qwen3_5() -> Built:
    tokenizer, ids = _tokenizer()
    linear = {f"linear_{name}_head_dim": 8 for name in ("key", "value")}
    config = tf.Qwen3_5Config(
        text_config=text_part(
            tokenizer, rope_parameters=ROPE | {"mrope_section": [2, 1, 1], "mrope_interleaved": True}, **linear,
            layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=4,
        ),
        vision_config={**LAYERS, "patch_size": 8, "num_position_embeddings": 16, "spatial_merge_size": 2},
        image_token_id=ids(IMAGE_PAD), video_token_id=ids(VIDEO_PAD), vision_start_token_id=ids(VISION_START),
        vision_end_token_id=ids(VISION_END),
    )  # fmt: skip
    size = {"shortest_edge": 256, "longest_edge": 4096}
    images = tf.Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, size=size)
    return config, _processor(tf.Qwen3VLProcessor, images, tokenizer, VISION_START + IMAGE_PAD + VISION_END)


def _gemma3() -> Built:
    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer, ids = _tokenizer(*named.values(), **named)
    config = tf.Gemma3Config(
        text_config=text_part(
            tokenizer, bos_token_id=ids("<|im_start|>"), sliding_window=16,
            layer_types=["sliding_attention", "full_attention"],
        ),
        vision_config=VISION | {"image_size": 56, "patch_size": 14, "vision_use_head": False},
        mm_tokens_per_image=4, boi_token_index=ids("<start_of_image>"), eoi_token_index=ids("<end_of_image>"),
        image_token_index=ids("<image_soft_token>"),
    )  # fmt: skip
    images = tf.Gemma3ImageProcessorPil(size={"height": 56, "width": 56})
    return config, _processor(tf.Gemma3Processor, images, tokenizer, "<start_of_image>", image_seq_length=4)


def _gemma4() -> Built:
    named = {
        "image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>",
        "audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>",
    }  # fmt: skip
    tokenizer, ids = _tokenizer(*named.values(), "<|video|>", **named)
    config = tf.Gemma4Config(
        text_config=text_part(
            tokenizer, bos_token_id=ids("<|im_start|>"), sliding_window=16, global_head_dim=8,
            layer_types=["sliding_attention", "full_attention"], vocab_size_per_layer_input=len(tokenizer),
            hidden_size_per_layer_input=8, final_logit_softcapping=30.0,
        ),
        vision_config=VISION | {
            "num_key_value_heads": 2, "head_dim": 8, "patch_size": 8, "pooling_kernel_size": 2,
            "position_embedding_size": 64,
        },
        audio_config=None, boi_token_id=ids("<|image>"), eoi_token_id=ids("<image|>"), image_token_id=ids("<|image|>"),
        video_token_id=ids("<|video|>"), audio_token_id=ids("<|audio|>"),
    )  # fmt: skip
    images = tf.Gemma4ImageProcessorPil(patch_size=8, pooling_kernel_size=2, max_soft_tokens=70)
    return config, _processor(tf.Gemma4Processor, images, tokenizer, "<|image|>")


BUILDERS: dict[str, Callable[[], Built]] = {
    "idefics3": _idefics3, "internvl": _internvl, "glm4v": _glm4v, "llava_onevision": _llava_onevision,
    "qwen3_5": _qwen3_5, "gemma3": _gemma3, "gemma4": _gemma4,
}  # fmt: skip
"""By the model type of config.json."""


def build_random(kind: Any, config: Any) -> Any:
    """A model in which every weight matters, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind.from_config(config)
        for weight in model.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.2)
    return model


def save(name: str, folder: Path) -> Path:
    config, processor = BUILDERS[name]()
    model = build_random(tf.AutoModelForImageTextToText, config)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
