"""Trains the tokenizer: make_tokenizer.py OUT [ENTRIES]."""

import sys

import tokenizer
from mixture import tokenizer_texts


def main(path, entries=2048):
    texts = list(tokenizer_texts(5, 12000))
    trained = tokenizer.train(texts, int(entries))
    trained.save(path, pretty=True)
    encoder = tokenizer.Encoder(path)
    encoder.check(texts[:4000] + ["NFD e\u0301, naïve  spaces\n\n x", "<think>a</think> OPTION 1: ", "日本 1234"])
    print("%d rows, %d entries" % (encoder.size, len(encoder.vocab)))


if __name__ == "__main__":
    main(*sys.argv[1:])
