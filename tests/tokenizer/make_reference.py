#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expected token ids of the PyPI package `tokenizers` for json_reference_test.cpp.

    make_reference.py DUMP.json OUT_FOLDER

DUMP.json holds {"tokens": [...], "merges": ["a b", ...], "texts": [...], "patterns": {name: regex}}
of a byte-level vocabulary. For every case below this writes OUT_FOLDER/<case>/tokenizer.json, and
prints {"<case>": {"texts": [...], "ids": [[...], ...]}, ...}.
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

# Beside the golden texts: what the split patterns and added tokens disagree about.
EXTRA = [
    "a\u180eb \u180e c",
    "It's IT'S it\u2019s 'ſ we'LL",
    "x²³ ½ ٣٤٥ 12345 6",
    "Cafe\u0301 Caf\u00e9 \u1e9b\u0323",
    "tabs\t\tand\r\nlines\n\n \n end  ",
    "\u00a0\u3000\u2028wide spaces\u0085",
    "CamelCaseHTTPServer's x/\n/y",
    "说我👨\u200d👩\u200d👧 e\u0301\u0301",
    "a\x00b\x1cc\x7f",
    "<a>x <a> y<b> \t z \n <c> <b><c>",
    "cat concat cat. _cat cat2 écat cat\u0301 (cat)",
    "caf\u00e9X cafe\u0301X <|endoftext|><|endoftext|> <|endoftext",
    "-the-final--countdown- --",
]

byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        dump = json.load(f)
    vocab = {token: i for i, token in enumerate(dump["tokens"])}
    merges = [tuple(line.split(" ")) for line in dump["merges"]]
    patterns = dump["patterns"]
    bos = vocab["<|endoftext|>"]
    added = [
        AddedToken("<a>", lstrip=True, special=True, normalized=False),
        AddedToken("<b>", rstrip=True, special=True, normalized=False),
        AddedToken("<c>", lstrip=True, rstrip=True),
        AddedToken("cat", single_word=True, normalized=False),
        AddedToken("caf\u00e9X", normalized=True),
    ]
    template = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", bos)])
    # name: (pre-tokenizer, normalizer, ignore_merges, added tokens, post-processor)
    cases = {
        "gpt2": (gpt2, None, False, [], processors.ByteLevel()),
        "gpt2_prefix_space": (pre_tokenizers.ByteLevel(add_prefix_space=True), None, False, added,
                              None),
        "llama3": (sequence(split(patterns["llama3"]), byte_level), None, True, [],
                   processors.Sequence([processors.ByteLevel(), template])),
        "llama3_merged": (sequence(split(patterns["llama3"]), byte_level), None, False, [], None),
        "qwen2": (sequence(split(patterns["qwen2"]), byte_level), normalizers.NFC(), False, added,
                  None),
        "smollm": (sequence(pre_tokenizers.Digits(True), gpt2), None, False, [], None),
        "gpt4o": (sequence(split(patterns["gpt-4o"]), byte_level), None, True, [], None),
        "digit_runs": (sequence(pre_tokenizers.Digits(False), gpt2),
                       normalizers.Sequence([normalizers.NFD(), normalizers.NFC()]), False, added,
                       None),
        "nfd": (gpt2, normalizers.NFD(), False, added, None),
        "nfkc": (gpt2, normalizers.NFKC(), False, [], None),
        "literal_removed": (sequence(pre_tokenizers.Split("-", "removed"), gpt2), None, False, [],
                            None),
        "merged_with_previous": (sequence(split(r"[-\s]", "merged_with_previous"), byte_level),
                                 None, False, [], None),
        "merged_with_next": (sequence(split(r"[-\s]", "merged_with_next"), byte_level), None,
                             False, [], None),
        "contiguous": (sequence(split(r"[-\s]", "contiguous"), byte_level), None, False, [], None),
        "inverted": (sequence(split(r"\w+", "removed", True), byte_level), None, False, [], None),
        "after_bytes": (sequence(byte_level, pre_tokenizers.Digits(True)), None, False, [], None),
        "union_class": (sequence(split(" ?[^(\\s|[.,!?\u2026])]+"), byte_level), None, False, [],
                        None),
    }
    result = {}
    for name, (pre, normalizer, ignore_merges, tokens, post) in cases.items():
        tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer = pre
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if post is not None:
            tokenizer.post_processor = post
        tokenizer.add_special_tokens(["<|endoftext|>"])
        tokenizer.add_tokens(tokens)
        os.makedirs(os.path.join(sys.argv[2], name))
        tokenizer.save(os.path.join(sys.argv[2], name, "tokenizer.json"))
        texts = dump["texts"] + EXTRA
        result[name] = {"texts": texts, "ids": [tokenizer.encode(text).ids for text in texts]}
    json.dump(result, sys.stdout)


main()
