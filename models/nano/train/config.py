"""Sizes of the small model, and the fixed texts of Clef's prompt."""

CONFIG = dict(
    # Text backbone: every fourth layer attends fully, the others are Gated DeltaNet.
    hidden=128, layers=8, interval=4, mlp=320, theta=10000.0,
    key_heads=2, value_heads=4, linear_dim=32,
    heads=2, kv_heads=1, head_dim=64, rotary=16, mrope_section=[3, 3, 2],
    # Vision encoder.
    vision_hidden=96, vision_layers=3, vision_heads=4, vision_mlp=384, vision_grid=16,
    # Joint schema head.
    width=128, head_heads=4, head_mlp=384, routing=2, decoder=2,
)

PATCH = 16
BLOCK = 32  # Pixels of one token's side: two patches.

# Pictures and frames are scaled into these limits (processor_config.json), so that any picture
# costs at most 16 tokens and looks like those of the training.
PICTURE_PIXELS = (4096, 16384)
CLIP_PIXELS = (4096, 8 * 12288)  # Of all frames together.
CLIP_FRAMES = (4, 8)
CLIP_FPS = 2

SYSTEM = (
    "Read the complete state and schema. Decide every field jointly. Each answer must be exactly "
    "one of that field's allowed options."
)
DEFAULT_TRUE = "The proposition is true or the answer is yes."
DEFAULT_FALSE = "The proposition is false or the answer is no."

# In the release's order of ids (model.md 9.1).
SPECIAL_TOKENS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>",
    "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
    "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
    "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
    "<tts_text_bos_single>", "<|audio_pad|>",
]
NOT_SPECIAL = {
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
}

# Whole lines of the prompt are tokens too: about 40 % fewer tokens a record.
PROMPT_LINES = (
    ["system\n" + SYSTEM, "user\nSTATE:\n", "\n\nSCHEMA FIELDS:\n", "\nFIELD ", "\nID: ",
     "\nALLOWED OPTIONS:\n", '{"option_id":"', '{"description":"', '","option_id":"',
     "END FIELD\n", DEFAULT_TRUE, DEFAULT_FALSE,
     "assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:"]
    + ["\nTYPE: %s\nINSTRUCTION: " % t for t in ("noul", "choice", "score")]
    + ["OPTION %d: " % i for i in range(1, 10)]
)

TYPES = ("noul", "choice", "score")
