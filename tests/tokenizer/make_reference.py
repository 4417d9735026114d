#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expected token ids of the PyPI package `tokenizers` for json_reference_test.cpp.

    make_reference.py DUMP.json OUT_FOLDER

DUMP.json holds {"tokens": [...], "merges": ["a b", ...], "texts": [...], "patterns": {name: regex}}
of a byte-level vocabulary, {"tokens": [...], "scores": [...]} of SentencePiece vocabularies as
"llama" (BPE) and "unigram" (with its "charsmap" in base64), and {"tokens": [...]} as GGUF's "bert".
For every case below this writes OUT_FOLDER/<case>/tokenizer.json, and prints
{"<case>": {"texts": [...], "ids": [[...], ...]}, ...}.
"""
import base64
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
    "İSTANBUL ΣΑΣ Straße ﬁne ½ Ⅷ ｆｕｌｌ ㌔ …‥ﷺ",
    "A\u030a \u0345\u0301 e\u20dd \u0903x \u0378 \ue000 \u200d \u200b \ufeff",
    "unaffable, UNBELIEVABLE! antidisestablishmentarianism $5+5=10 \u00bf\u00a7",
    "x" * 101 + " " + "y" * 100 + " z",
    "<s>text</s> more<s>  two",
    "▁ ▁▁x  ",
    "\r\n \u0001\u000b\u008f\u2028",
]

byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def wanted_merges(tokens, scores):
    """The merges a SentencePiece BPE implies: every cut of a piece, the likeliest piece first."""
    ids = {token: i for i, token in enumerate(tokens)}
    found = []
    for piece, score in zip(tokens, scores):
        if piece in ("<unk>", "<s>", "</s>") or piece.startswith("<0x"):
            continue
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                found.append((-score, ids[left], ids[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def spaced(prepend=True):
    parts = [normalizers.Prepend("▁")] if prepend else []
    return normalizers.Sequence(parts + [normalizers.Replace(" ", "▁")])


def sentencepiece_cases(llama, unigram):
    """name: tokenizer, of vocabularies with ▁."""
    tokens = llama["tokens"]
    vocab = {token: i for i, token in enumerate(tokens)}
    merges = wanted_merges(tokens, llama["scores"])
    specials = [AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")]

    def bpe(normalizer, pre, **options):
        tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, **options))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if pre is not None:
            tokenizer.pre_tokenizer = pre
        tokenizer.add_special_tokens(specials)
        return tokenizer

    space = pre_tokenizers.Metaspace
    cases = {
        "llama2": bpe(spaced(), None, byte_fallback=True),
        "llama2_no_bytes": bpe(spaced(), None, byte_fallback=False),
        "gemma": bpe(spaced(False), pre_tokenizers.Split(" ", "merged_with_previous"),
                     byte_fallback=True),
        "metaspace_always": bpe(None, space(prepend_scheme="always"), byte_fallback=True),
        "metaspace_first": bpe(None, space(prepend_scheme="first", split=False),
                               byte_fallback=True),
        "metaspace_never": bpe(normalizers.NFKC(), space(prepend_scheme="never"),
                               byte_fallback=True),
    }
    cases["llama2"].post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])

    pieces = list(zip(unigram["tokens"], unigram["scores"]))
    charsmap = base64.b64decode(unigram["charsmap"])
    for name, normalizer, options in (
            ("t5", normalizers.Sequence([
                normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]), {}),
            ("unigram_bytes", normalizers.Nmt(), {"byte_fallback": True}),
            ("unigram_strip", normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()]),
             {})):
        tokenizer = Tokenizer(models.Unigram(pieces, 0, **options))
        tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = space(prepend_scheme="always")
        tokenizer.add_special_tokens(["</s>", "<mask>"])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", unigram["tokens"].index("</s>"))])
        cases[name] = tokenizer
    return cases


def word_cases(bert):
    """name: tokenizer, of whole words and WordPiece; the GGUF spelling is undone."""
    vocab = {}
    for i, token in enumerate(bert["tokens"]):
        is_marker = token.startswith("[") and token.endswith("]")
        vocab[token[1:] if token.startswith("▁") else token if is_marker else "##" + token] = i

    def word_piece(normalizer, pre, post):
        tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        if post is not None:
            tokenizer.post_processor = post
        return tokenizer

    words = {"[UNK]": 0, "the": 1, "cat": 2, "x": 3, "-": 4, "a\u0301": 5}
    level = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    level.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    level.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"),
         pre_tokenizers.CharDelimiterSplit("e")])
    bert_pre = pre_tokenizers.BertPreTokenizer()
    return {
        "bert": word_piece(normalizers.BertNormalizer(), bert_pre,
                           processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))),
        "bert_cased": word_piece(
            normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False), bert_pre,
            processors.RobertaProcessing(("[SEP]", 102), ("[CLS]", 101))),
        "bert_raw": word_piece(
            normalizers.BertNormalizer(clean_text=False, strip_accents=False), bert_pre, None),
        "word_piece_words": word_piece(normalizers.NFD(), pre_tokenizers.Whitespace(), None),
        "word_level": level,
    }


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
    made = {}
    for name, (pre, normalizer, ignore_merges, tokens, post) in cases.items():
        tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer = pre
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if post is not None:
            tokenizer.post_processor = post
        tokenizer.add_special_tokens(["<|endoftext|>"])
        tokenizer.add_tokens(tokens)
        made[name] = tokenizer
    made |= sentencepiece_cases(dump["llama"], dump["unigram"])
    made |= word_cases(dump["bert"])
    result = {}
    for name, tokenizer in made.items():
        os.makedirs(os.path.join(sys.argv[2], name))
        tokenizer.save(os.path.join(sys.argv[2], name, "tokenizer.json"))
        texts = dump["texts"] + EXTRA
        result[name] = {"texts": texts, "ids": [tokenizer.encode(text).ids for text in texts]}
    json.dump(result, sys.stdout)


main()
