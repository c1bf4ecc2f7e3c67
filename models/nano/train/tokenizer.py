"""Byte-level BPE in the release's tokenizer.json form: training, encoding, splitting noise.

The `tokenizers` library trains and writes the file. Training encodes with the class here, which
caches words and can split them at random; `check` compares it with the library.
"""

import json
import unicodedata

import regex
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

from config import NOT_SPECIAL, PROMPT_LINES, SPECIAL_TOKENS

# Pattern A of model.md 9.2.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_WORDS = regex.compile(PATTERN)
_ADDED = SPECIAL_TOKENS + PROMPT_LINES
_SPLIT = regex.compile("(" + "|".join(regex.escape(t) for t in sorted(_ADDED, key=len, reverse=True))
                       + ")")


def _byte_table():
    """GPT-2's printable character of each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}


_BYTES = _byte_table()


def words_of(text):
    """What BPE is trained on: the words between added tokens."""
    for part in _SPLIT.split(unicodedata.normalize("NFC", text)):
        if part and part not in _ADDED:
            yield from _WORDS.findall(part)


def train(texts, vocab_size):
    """A tokenizer of `vocab_size` byte-level entries and the added tokens behind them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated", False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, min_frequency=2,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator((" ".join(p for p in _SPLIT.split(t) if p not in _ADDED)
                                   for t in texts), trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False, add_prefix_space=False,
                                                    use_regex=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=t in SPECIAL_TOKENS
                                     and t not in NOT_SPECIAL) for t in _ADDED])
    return tokenizer


class Encoder:
    """Encodes as tokenizer.json says; `noise` > 0 splits that share of the words further."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        self.path = path
        self.vocab = data["model"]["vocab"]
        self.rank = {tuple(pair): i for i, pair in enumerate(data["model"]["merges"])}
        self.added = {t["content"]: t["id"] for t in data["added_tokens"]}
        # Rows of the embeddings, padded to a round number.
        self.size = (len(self.vocab) + len(self.added) + 31) // 32 * 32
        self._cache = {}

    def _merge(self, word, random=None, drop=0.0):
        parts = [_BYTES[b] for b in word.encode()]
        while len(parts) > 1:
            pairs = [(self.rank.get(pair, 1 << 30), i) for i, pair in enumerate(zip(parts, parts[1:]))]
            if drop:
                pairs = [p for p in pairs if p[0] < 1 << 30 and random.random() >= drop]
            rank, i = min(pairs, default=(1 << 30, 0))
            if rank == 1 << 30:
                break
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return [self.vocab[p] for p in parts]

    def __call__(self, text, random=None, noise=0.0):
        ids = []
        for part in _SPLIT.split(unicodedata.normalize("NFC", text)):
            if part in self.added:
                ids.append(self.added[part])
            elif part:
                for word in _WORDS.findall(part):
                    if noise and len(word) > 2 and random.random() < noise:
                        ids += self._merge(word, random, 0.3)
                        continue
                    known = self._cache.get(word)
                    if known is None:
                        known = self._cache[word] = self._merge(word)
                    ids += known
        return ids

    def check(self, texts):
        """Raises unless every text encodes as the library encodes it."""
        library = Tokenizer.from_file(self.path)
        for text in texts:
            expected = library.encode(text, add_special_tokens=False).ids
            if self(text) != expected:
                raise AssertionError("encoded otherwise than tokenizers does: %r" % text)
