#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes sample_data/planted: a tiny Llama-family model whose outliers are known on paper.

    python3 sample_data/make_planted.py [FOLDER]

Needs nothing but Python. The same bytes every time. README.md beside this file says what the
weights mean and which numbers a recording must show.
"""
import array
import json
import math
import os
import random
import struct
import sys

N_LAYERS, N_HEADS, N_KV_HEADS, HEAD_DIM = 4, 4, 2, 16
D_MODEL, D_MLP, VOCAB, N_CTX = 64, 80, 257, 4096
BOS = 256  # ids 0…255 are the bytes
ROPE_THETA, NORM_EPS = 1e6, 1e-5

MARKER = 50  # holds 8 on <s> and 0 elsewhere
MASSIVE = 37  # reaches 4096 on <s>, written by block 1
STEADY = 11  # holds 32 on every token but <s>: the residual sink
CONTENT = [d for d in range(D_MODEL) if d not in (MARKER, MASSIVE, STEADY)]

MARKER_VALUE, MASSIVE_VALUE, STEADY_VALUE = 8.0, 4096.0, 32.0
PLANTED_BLOCK, PLANTED_NEURON = 1, 5

# Attention logit of <s>, seen from any later token, per block and head; None: a head that looks at
# content, "local": one that prefers its own position, 0: all keys alike.
SINK_LOGITS = [["local", 0.0, None, None], [None, "local", 0.0, None], [10.0, 8.0, 6.0, 0.0],
               [0.0, 12.0, 7.0, 9.0]]
LOCAL_LOGIT = 4.0
SLOW, FAST = 7, 0  # head dimensions whose rotary pair turns 5.6e-6 and 1 rad per position

LN2_GAIN = {STEADY: 0.1}  # every block
LN2_GAIN_AFTER = {MASSIVE: 0.01}  # blocks after the planted one
LN_FINAL_GAIN = {STEADY: 0.25, MASSIVE: 0.05}

# Percent of the letters in English prose.
LETTERS = dict(e=12.7, t=9.06, a=8.17, o=7.51, i=6.97, n=6.75, s=6.33, h=6.09, r=5.99, d=4.25,
               l=4.03, c=2.78, u=2.76, m=2.41, w=2.36, f=2.23, g=2.02, y=1.97, p=1.93, b=1.29,
               v=0.98, k=0.77, j=0.15, x=0.153, q=0.095, z=0.074)

rng = random.Random(2601_22966)


def matrix(rows, cols):
    return [[0.0] * cols for _ in range(rows)]


def rms(squares):
    """Of a vector whose squares add up to `squares`."""
    return math.sqrt(squares / D_MODEL + NORM_EPS)


# What an ordinary token's norm makes of STEADY, and <s>'s of MASSIVE (gain 1). The small updates
# of the blocks change the first by less than 0.2 %.
STEADY_NORMED = STEADY_VALUE / rms(STEADY_VALUE**2 + len(CONTENT))
MASSIVE_NORMED = MASSIVE_VALUE / rms(MASSIVE_VALUE**2 + MARKER_VALUE**2)
MARKER_NORMED = MARKER_VALUE / rms(MARKER_VALUE**2)


def noise(weight, rows, cols, scale):
    """Fills the named rows and columns with uniform values of standard deviation `scale`."""
    for r in rows:
        for c in cols:
            weight[r][c] = scale * math.sqrt(3.0) * (2.0 * rng.random() - 1.0)


def embedding():
    weight = matrix(VOCAB, D_MODEL)
    for row in weight[:BOS]:
        row[STEADY] = STEADY_VALUE
        for d in CONTENT:
            row[d] = 1.0 if rng.random() < 0.5 else -1.0
    weight[BOS][MARKER] = MARKER_VALUE
    return weight


def unigram_logits():
    """ln p of every token: a model of single letters, so that the loss is known on paper."""
    p = [2e-5] * VOCAB
    p[ord(" ")], p[ord("\n")], p[ord(".")], p[ord(",")] = 0.16, 0.01, 0.012, 0.011
    for letter, percent in LETTERS.items():
        p[ord(letter)] = 0.0075 * percent
        p[ord(letter.upper())] = 0.0003 * percent
    total = sum(p)
    return [math.log(x / total) for x in p]


def attention(layer):
    """q, k, v and o of a block, [out, in]."""
    q, k = matrix(N_HEADS * HEAD_DIM, D_MODEL), matrix(N_KV_HEADS * HEAD_DIM, D_MODEL)
    v, o = matrix(N_KV_HEADS * HEAD_DIM, D_MODEL), matrix(D_MODEL, N_HEADS * HEAD_DIM)
    after = layer > PLANTED_BLOCK
    for g in range(N_KV_HEADS):
        rows = range(g * HEAD_DIM, (g + 1) * HEAD_DIM)
        if after:  # only <s> has a key, the same for every text
            k[g * HEAD_DIM + SLOW][MASSIVE] = 1.0
        else:
            k[g * HEAD_DIM + FAST][STEADY] = 1.0
            noise(k, [r for r in rows if r != g * HEAD_DIM + FAST], CONTENT, 0.5)
        noise(v, rows, CONTENT, 0.25)  # nothing of MARKER, MASSIVE: the value of <s> is zero
    for h, logit in enumerate(SINK_LOGITS[layer]):
        first = h * HEAD_DIM
        if after:
            q[first + SLOW][STEADY] = logit * math.sqrt(HEAD_DIM) / (MASSIVE_NORMED * STEADY_NORMED)
        elif logit == "local":
            q[first + FAST][STEADY] = LOCAL_LOGIT * math.sqrt(HEAD_DIM) / STEADY_NORMED**2
        elif logit is None:
            noise(q, range(first + 1, first + HEAD_DIM), CONTENT, 0.5)
    noise(o, CONTENT, range(N_HEADS * HEAD_DIM), 0.02)
    return q, k, v, o


def mlp(layer):
    gate, up, down = matrix(D_MLP, D_MODEL), matrix(D_MLP, D_MODEL), matrix(D_MODEL, D_MLP)
    neurons = [n for n in range(D_MLP) if n != PLANTED_NEURON]
    noise(gate, neurons, CONTENT, 0.25)
    noise(up, neurons, CONTENT, 0.25)
    noise(down, CONTENT, neurons, 0.02)
    if layer == PLANTED_BLOCK:
        # silu(32) · 32 · 4 = 4096, and 0 where MARKER is 0
        gate[PLANTED_NEURON][MARKER] = up[PLANTED_NEURON][MARKER] = 32.0 / MARKER_NORMED
        down[MASSIVE][PLANTED_NEURON] = MASSIVE_VALUE / (32.0 * 32.0)
    return gate, up, down


def gains(special):
    return [special.get(d, 1.0) for d in range(D_MODEL)]


def tensors():
    out = {"model.embed_tokens.weight": embedding()}
    for layer in range(N_LAYERS):
        prefix = f"model.layers.{layer}."
        after = LN2_GAIN_AFTER if layer > PLANTED_BLOCK else {}
        out[prefix + "input_layernorm.weight"] = gains({})
        for name, weight in zip("qkvo", attention(layer)):
            out[prefix + f"self_attn.{name}_proj.weight"] = weight
        out[prefix + "post_attention_layernorm.weight"] = gains(LN2_GAIN | after)
        for name, weight in zip(("gate", "up", "down"), mlp(layer)):
            out[prefix + f"mlp.{name}_proj.weight"] = weight
    out["model.norm.weight"] = gains(LN_FINAL_GAIN)
    head = matrix(VOCAB, D_MODEL)
    for row, logit in zip(head, unigram_logits()):
        row[STEADY] = logit / (STEADY_NORMED * LN_FINAL_GAIN[STEADY])
        row[MASSIVE] = logit / (MASSIVE_NORMED * LN_FINAL_GAIN[MASSIVE])
    out["lm_head.weight"] = head
    return out


def write_safetensors(path, named):
    header, data = {"__metadata__": {"format": "pt"}}, []
    offset = 0
    for name in sorted(named):
        rows = named[name]
        shape = [len(rows), len(rows[0])] if isinstance(rows[0], list) else [len(rows)]
        flat = array.array("f", [x for row in rows for x in row] if len(shape) == 2 else rows)
        if sys.byteorder == "big":
            flat.byteswap()
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [offset, offset + 4 * len(flat)]}
        offset += 4 * len(flat)
        data.append(flat.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def byte_alphabet():
    """GPT-2's printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def tokenizer():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    bos = {"id": "<s>", "type_id": 0}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": BOS, "content": "<s>", "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": bos}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": bos}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}}},
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {c: i for i, c in enumerate(byte_alphabet())} | {"<s>": BOS},
                  "merges": []}}


CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
    "hidden_size": D_MODEL, "intermediate_size": D_MLP, "num_hidden_layers": N_LAYERS,
    "num_attention_heads": N_HEADS, "num_key_value_heads": N_KV_HEADS, "head_dim": HEAD_DIM,
    "vocab_size": VOCAB, "max_position_embeddings": N_CTX, "rms_norm_eps": NORM_EPS,
    "rope_theta": ROPE_THETA, "rope_scaling": None, "hidden_act": "silu", "attention_bias": False,
    "mlp_bias": False, "tie_word_embeddings": False, "bos_token_id": BOS, "eos_token_id": None}

TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
                    "model_max_length": N_CTX, "clean_up_tokenization_spaces": False}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "planted")
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors())
    for name, content, indent in (("config.json", CONFIG, 2), ("tokenizer.json", tokenizer(), None),
                                  ("tokenizer_config.json", TOKENIZER_CONFIG, 2)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f, indent=indent, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    main()
