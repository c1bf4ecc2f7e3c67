#!/usr/bin/env python3
"""Tests of rebuild_tokenizer.py on vocabularies small enough to work out by hand."""
import base64
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rebuild_tokenizer


def vocabulary(*tokens):
    """The 256 bytes and then `tokens`, as lines of a .tiktoken file."""
    everything = [bytes([byte]) for byte in range(256)] + [token.encode() for token in tokens]
    return "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(everything))


def rebuilt(*tokens):
    return json.loads(rebuild_tokenizer.rebuild(*rebuild_tokenizer.read_ranks(vocabulary(*tokens))))


class RebuildTokenizer(unittest.TestCase):
    def test_alphabet_maps_visible_bytes_to_themselves_and_the_others_from_u0100(self):
        alphabet = rebuild_tokenizer.gpt2_alphabet()
        self.assertEqual(len(set(alphabet)), 256)
        self.assertEqual([alphabet[byte] for byte in b"\x00\n !~\x7f\xad\xff"], list("ĀĊĠ!~ġŃÿ"))

    def test_a_merge_is_what_lower_ranks_leave(self):
        self.assertEqual(rebuilt("ab", "abc")["model"]["merges"], [["a", "b"], ["ab", "c"]])

    def test_parts_of_higher_rank_than_the_token_count_too(self):
        self.assertEqual(rebuilt("ab", "abcd", "cd")["model"]["merges"],
                         [["a", "b"], ["ab", "cd"], ["c", "d"]])

    def test_a_token_of_three_parts_has_no_merge(self):
        model = rebuilt("abc")["model"]
        self.assertEqual(model["merges"], [])
        self.assertEqual(model["vocab"]["abc"], 256)

    def test_added_tokens_follow_the_vocabulary(self):
        added = rebuilt("ab")["added_tokens"]
        self.assertEqual([token["id"] for token in added], list(range(257, 257 + 33)))
        self.assertEqual([token["content"] for token in added if not token["special"]],
                         ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                          "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>",
                          "</tool_response>", "<think>", "</think>"])

    def test_names_the_line_that_is_no_token(self):
        for line in ("YQ==", "YQ== x", "*** 1", "YQ== 1 2"):
            with self.assertRaisesRegex(SystemExit, "line 2: found .*, expected a token in base64"):
                rebuild_tokenizer.read_ranks("IQ== 0\n" + line)

    def test_refuses_ranks_with_gaps(self):
        with self.assertRaisesRegex(SystemExit, "gaps"):
            rebuild_tokenizer.read_ranks("YQ== 0\nYg== 2\n")


if __name__ == "__main__":
    unittest.main()
