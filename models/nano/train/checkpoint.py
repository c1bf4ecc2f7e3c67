"""Reads and writes checkpoints in the release's layout (model.md 1)."""

import json
import os
import shutil

import torch
from safetensors.torch import load_file, save_file

import config
from tokenizer import Encoder


def _write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def model_config(c, ids):
    """config.json."""
    kinds = ["full_attention" if (i + 1) % c["interval"] == 0 else "linear_attention"
             for i in range(c["layers"])]
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "dtype": "bfloat16",
        "image_token_id": ids["<|image_pad|>"],
        "model_type": "qwen3_5",
        "text_config": {
            "attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True,
            "bos_token_id": None, "dtype": "bfloat16", "eos_token_id": ids["<|endoftext|>"],
            "full_attention_interval": c["interval"], "head_dim": c["head_dim"],
            "hidden_act": "silu", "hidden_size": c["hidden"], "initializer_range": 0.02,
            "intermediate_size": c["mlp"], "layer_types": kinds, "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": c["linear_dim"], "linear_num_key_heads": c["key_heads"],
            "linear_num_value_heads": c["value_heads"], "linear_value_head_dim": c["linear_dim"],
            "mamba_ssm_dtype": "float32", "max_position_embeddings": 262144, "mlp_only_layers": [],
            "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 0,
            "mtp_use_dedicated_embeddings": False, "num_attention_heads": c["heads"],
            "num_hidden_layers": c["layers"], "num_key_value_heads": c["kv_heads"],
            "pad_token_id": None, "partial_rotary_factor": c["rotary"] / c["head_dim"],
            "rms_norm_eps": 1e-06,
            "rope_parameters": {
                "mrope_interleaved": True, "mrope_section": c["mrope_section"],
                "partial_rotary_factor": c["rotary"] / c["head_dim"],
                "rope_theta": int(c["theta"]), "rope_type": "default"},
            "tie_word_embeddings": False, "use_cache": True, "vocab_size": c["vocab"]},
        "tie_word_embeddings": False,
        "transformers_version": "5.10.2",
        "video_token_id": ids["<|video_pad|>"],
        "vision_config": {
            "deepstack_visual_indexes": [], "depth": c["vision_layers"], "dtype": "bfloat16",
            "hidden_act": "gelu_pytorch_tanh", "hidden_size": c["vision_hidden"], "in_channels": 3,
            "initializer_range": 0.02, "intermediate_size": c["vision_mlp"],
            "model_type": "qwen3_5_vision", "num_heads": c["vision_heads"],
            "num_position_embeddings": c["vision_grid"] ** 2, "out_hidden_size": c["hidden"],
            "patch_size": config.PATCH, "spatial_merge_size": 2, "temporal_patch_size": 2},
        "vision_end_token_id": ids["<|vision_end|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
    }


def head_config(c):
    """joint_head_config.json."""
    return {"hidden_size": c["hidden"], "width": c["width"], "routing_layers": c["routing"],
            "layers": c["decoder"], "heads": c["head_heads"], "feedforward": c["head_mlp"]}


def processor_config():
    """processor_config.json, with the small model's own limits of pixels and frames."""
    same = {"do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "merge_size": 2,
            "patch_size": config.PATCH, "resample": 3, "rescale_factor": 0.00392156862745098,
            "temporal_patch_size": 2}
    size = lambda limits: {"longest_edge": limits[1], "shortest_edge": limits[0]}
    return {
        "image_processor": {**same, "image_processor_type": "Qwen2VLImageProcessor",
                            "size": size(config.PICTURE_PIXELS)},
        "processor_class": "Qwen3VLProcessor",
        "video_processor": {**same, "do_sample_frames": True, "fps": config.CLIP_FPS,
                            "max_frames": config.CLIP_FRAMES[1], "min_frames": config.CLIP_FRAMES[0],
                            "return_metadata": False, "size": size(config.CLIP_PIXELS),
                            "video_processor_type": "Qwen3VLVideoProcessor"},
    }


def tokenizer_config():
    media = {"audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>",
             "audio_token": "<|audio_pad|>", "image_token": "<|image_pad|>",
             "video_token": "<|video_pad|>", "vision_bos_token": "<|vision_start|>",
             "vision_eos_token": "<|vision_end|>"}
    return {"add_prefix_space": False, "backend": "tokenizers", "bos_token": None,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
            "model_max_length": 262144, **media, "pad_token": "<|endoftext|>",
            "pretokenize_regex": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
                                 r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}


def to_tensors(state):
    """A state dict of model.Clef -> (backbone, head) tensors of the release, BF16."""
    backbone, head = {}, {}
    for name, value in state.items():
        value = value.detach().to(torch.bfloat16).contiguous()
        if name == "model.visual.patch_embed.proj.weight":
            value = value.view(-1, 3, 2, config.PATCH, config.PATCH)
        if name.startswith("head."):
            head[name.removeprefix("head.")] = value
        else:
            backbone[name] = value
    return backbone, head


def save(state, c, tokenizer_path, folder):
    """Writes a whole checkpoint directory."""
    os.makedirs(folder, exist_ok=True)
    backbone, head = to_tensors(state)
    save_file(backbone, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    save_file(head, os.path.join(folder, "joint_head.safetensors"), metadata={"format": "pt"})
    ids = Encoder(tokenizer_path).added
    files = {"config.json": model_config(c, ids), "joint_head_config.json": head_config(c),
             "processor_config.json": processor_config(), "tokenizer_config.json": tokenizer_config(),
             "generation_config.json": {"_from_model_config": True,
                                        "eos_token_id": ids["<|endoftext|>"],
                                        "transformers_version": "5.10.2", "use_cache": True}}
    for name, value in files.items():
        _write_json(os.path.join(folder, name), value)
    target = os.path.join(folder, "tokenizer.json")
    if os.path.abspath(tokenizer_path) != os.path.abspath(target):
        shutil.copyfile(tokenizer_path, target)


def load(folder):
    """(model, encoder) of a checkpoint directory written by `save`; float32 on its BF16 weights."""
    from model import Clef

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        text = json.load(file)["text_config"]
    encoder = Encoder(os.path.join(folder, "tokenizer.json"))
    model = Clef(dict(config.CONFIG, vocab=text["vocab_size"]))
    state = load_file(os.path.join(folder, "model.safetensors"))
    head = load_file(os.path.join(folder, "joint_head.safetensors"))
    state.update({"head." + k: v for k, v in head.items()})
    state = {k: v.float() for k, v in state.items()}
    key = "model.visual.patch_embed.proj.weight"
    state[key] = state[key].reshape(state[key].shape[0], -1)
    model.load_state_dict(state)
    return model.eval(), encoder
