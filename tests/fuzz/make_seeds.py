#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seed corpus of every fuzz target, in OUT_FOLDER/<target>/: small valid files and a few that
are almost valid.

    make_seeds.py OUT_FOLDER
"""
import base64
import json
import os
import random
import struct
import sys


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def safetensors(entries, metadata=None, tail=b""):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape, n in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + n]}
        data += bytes(range(n % 256)) + bytes(n - n % 256)
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + data + tail


def safetensors_seeds():
    yield safetensors([("a", "F32", [2, 3], 24), ("b.weight", "BF16", [4], 8)], {"format": "pt"})
    yield safetensors([("x", "F4", [2, 8], 8), ("s", "F8_E8M0", [], 1), ("e", "I32", [2, 0], 0)])
    yield safetensors([("w", "F8_E4M3", [3, 1], 3), ("w_scale_inv", "F32", [1, 1], 4)])
    yield safetensors([("t", "F16", [2, 2], 8)], tail=b"x")
    yield struct.pack("<Q", 6) + b"{}    "
    yield struct.pack("<Q", 1 << 63) + b"{}"
    yield b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"


def gguf_value(kind, value):
    formats = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
               11: "<q", 12: "<d"}
    if kind == 8:
        return text(value)
    if kind == 9:
        item, items = value
        return struct.pack("<IQ", item, len(items)) + b"".join(gguf_value(item, v) for v in items)
    return struct.pack(formats[kind], value)


def gguf(keys, tensors, alignment=32, version=3):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + gguf_value(kind, value)
    offset, data = 0, b""
    for name, dims, type_id, n_bytes in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        out += struct.pack("<IQ", type_id, len(data))
        data += bytes(n_bytes) + bytes(-n_bytes % alignment)
    return out + bytes(-len(out) % alignment) + data


def charsmap():
    """A precompiled charsmap that makes "A" an "x". What belongs to no key is a value."""
    units = [1 << 31] * 256
    units[0], units[0x40] = 1 << 10, 2 << 10 | 1 << 8 | 0x41
    return struct.pack("<257I", 1024, *units) + b"x\x00"


def gguf_seeds():
    llama = [("general.architecture", 8, "llama"), ("llama.block_count", 4, 1),
             ("llama.embedding_length", 4, 8), ("llama.attention.head_count", 9, (4, [2])),
             ("llama.attention.head_count_kv", 4, 1), ("llama.feed_forward_length", 4, 4),
             ("llama.context_length", 4, 16), ("llama.attention.layer_norm_rms_epsilon", 6, 1e-5)]
    pieces = ["<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "▁a", "ab"]
    spm = [("tokenizer.ggml.model", 8, "llama"), ("tokenizer.ggml.tokens", 9, (8, pieces)),
           ("tokenizer.ggml.scores", 9, (6, [-float(i) for i in range(10)])),
           ("tokenizer.ggml.token_type", 9, (5, [2, 3, 3, 6, 6, 1, 1, 1, 1, 1]))]
    bpe = [("tokenizer.ggml.model", 8, "gpt2"), ("tokenizer.ggml.pre", 8, "gpt-2"),
           ("tokenizer.ggml.tokens", 9, (8, ["a", "b", "Ġ", "ab", "A"])),
           ("tokenizer.ggml.merges", 9, (8, ["a b"]))]
    bert = [("tokenizer.ggml.model", 8, "bert"),
            ("tokenizer.ggml.tokens", 9, (8, ["[PAD]", "[UNK]", "▁ab", "c", "▁12"])),
            ("tokenizer.ggml.unknown_token_id", 4, 1), ("tokenizer.ggml.cls_token_id", 4, 0),
            ("tokenizer.ggml.seperator_token_id", 4, 0)]
    t5 = [("tokenizer.ggml.model", 8, "t5")] + spm[1:] + [
        ("tokenizer.ggml.precompiled_charsmap", 9, (0, list(charsmap()))),
        ("tokenizer.ggml.remove_extra_whitespaces", 7, True)]
    tensors = [("token_embd.weight", [8, 10], 0, 320), ("output_norm.weight", [8], 0, 32),
               ("blk.0.attn_norm.weight", [8], 0, 32), ("blk.0.attn_q.weight", [8, 8], 1, 128),
               ("blk.0.attn_k.weight", [8, 4], 0, 128), ("blk.0.ffn_down.weight", [32, 1], 8, 34)]
    for vocabulary in (spm, bpe, bert, t5):
        yield gguf(llama + vocabulary, tensors)
    for arch in ("qwen3", "gemma2", "gpt2", "bert", "qwen2moe", "gpt-oss"):
        yield gguf([(k.replace("llama", arch), t, v.replace("llama", arch) if t == 8 else v)
                    for k, t, v in llama], tensors)
    yield gguf([("general.alignment", 4, 64)] + llama, tensors[:2], alignment=64, version=2)
    yield gguf([("split.no", 2, 0), ("split.count", 2, 2)], [("x", [256, 2], 250, 64)])


def config_seeds():
    base = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8,
            "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 32, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
            "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": False,
            "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": [2, 3]}
    yield base
    for rope in ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
                 {"type": "linear", "factor": 2.0},
                 {"rope_type": "yarn", "factor": 4.0, "truncate": False, "mscale": 1.0},
                 {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}):
        yield {**base, "rope_scaling": rope}
    for family in ("qwen2", "qwen3", "qwen3_moe", "qwen3_next", "gemma2", "gemma3_text", "gpt2",
                   "gpt_neox", "bert", "gpt_oss", "olmo2", "mistral", "deepseek_v3"):
        yield {**base, "model_type": family, "head_dim": 6, "sliding_window": 4,
               "layer_types": ["full_attention", "sliding_attention"], "num_experts": 4,
               "num_experts_per_tok": 2, "n_embd": 8, "n_layer": 2, "n_head": 2,
               "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
               "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    yield {"model_type": "gemma3", "text_config": base}


def tokenizer_seeds():
    added = [{"id": 6, "content": "<s>", "single_word": False, "lstrip": True, "rstrip": False,
              "normalized": False, "special": True}]
    vocab = {"Ġ": 0, "a": 1, "b": 2, "Ġa": 3, "ab": 4, "A": 5}
    bpe = {"type": "BPE", "vocab": vocab, "merges": ["a b", ["Ġ", "a"]], "unk_token": None,
           "ignore_merges": True, "fuse_unk": True, "byte_fallback": True}
    template = {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}}
    trie = base64.b64encode(charsmap()).decode()
    normalizers = [
        None, {"type": "NFC"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": True},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
        {"type": "Prepend", "prepend": "▁"}, {"type": "Nmt"},
        {"type": "BertNormalizer", "clean_text": True, "strip_accents": None},
        {"type": "Precompiled", "precompiled_charsmap": trie}]
    pre = [
        None, {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
        {"type": "Split", "pattern": {"Regex": "\\w+|[^\\w\\s]+"}, "behavior": "Isolated",
         "invert": False},
        {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
        {"type": "Digits", "individual_digits": True}, {"type": "BertPreTokenizer"},
        {"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}]
    models = [
        bpe, {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
              "vocab": [["<unk>", 0.0], ["▁", -1.5], ["a", -2.0], ["ab", -2.5]]},
        {"type": "WordPiece", "vocab": {"[UNK]": 0, "ab": 1, "##b": 2}, "unk_token": "[UNK]",
         "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
        {"type": "WordLevel", "vocab": {"[UNK]": 0, "ab": 1}, "unk_token": "[UNK]"}]
    for i, normalizer in enumerate(normalizers):
        yield {"added_tokens": added, "normalizer": normalizer, "pre_tokenizer": pre[i % len(pre)],
               "post_processor": template if i % 2 else None, "model": models[i % len(models)]}
    for i, stage in enumerate(pre):
        yield {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [s for s in (stage, pre[1])
                                                                       if s]},
               "post_processor": {"type": "BertProcessing", "sep": ["x", 1], "cls": ["y", 0]},
               "model": models[(i + 1) % len(models)]}


def field(number, payload):
    """A protobuf field: bytes, a float or a whole number below 128."""
    if isinstance(payload, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", payload)
    tag = number << 3 | (2 if isinstance(payload, bytes) else 0)
    head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    if not isinstance(payload, bytes):
        return head + bytes([payload])
    size = len(payload)
    return head + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + payload


def sentencepiece_seeds():
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁", -1.0, 1), ("a", -2.0, 1),
              ("b", -3.0, 1), ("ab", -1.5, 1), ("▁ab", -1.2, 1), ("<mask>", 0.0, 4),
              ("x", -4.0, 5)]
    some = b"".join(field(1, field(1, p.encode()) + field(2, s) + field(3, t))
                    for p, s, t in pieces)
    every_byte = b"".join(field(1, field(1, f"<0x{b:02X}>".encode()) + field(2, 0.0) + field(3, 6))
                          for b in range(256))
    for kind in (1, 2, 3, 4):
        yield some + field(2, field(3, kind)) + field(3, field(3, 1) + field(4, 1))
        yield some + field(2, field(3, kind)) + field(3, field(2, charsmap()) + field(4, 0))
    yield some + every_byte + field(2, field(3, 2) + field(35, 1))


def edit_seeds():
    yield {"edit": "residual.clip", "limit": 100, "sites": ["hook_resid_post"], "tokens": "first"}
    yield {"edit": "residual.set", "value": "mean", "dims": [507], "tokens": "rest"}
    yield {"edit": "residual.set", "scale": 0.5, "dims": "0-3,7", "tokens": "ids:5-127"}
    for mode in ("zero", "mean", "clamp", "direct", "denominator", "direct_const", "remove_const"):
        yield {"edit": "norm.probe", "mode": mode, "tau": 2, "dims": [1], "norms": ["ln1"]}
    for what in ("none", "layernorm", "dyt", "gatednorm", "tensorwise", "preaffine"):
        yield [{"edit": "norm.replace", "with": what, "start": "identity", "rank": 16}]
    for kind in ("softmax1", "sink_logit", "clipped", "sparsemax", "entmax15", "sigmoid"):
        yield {"edit": "attention.normalizer", "kind": kind, "b": [0.5, 1], "gamma": -0.1,
               "zeta": 1.1, "layers": "0-5", "heads": [1, 3]}
    yield [{"edit": "attention.mask_key", "keys": [0], "renormalize": True},
           {"edit": "attention.value", "tokens": [0], "scale": 0}]
    yield {"edit": "attention.gate", "value": 0.5, "layers": "all"}
    yield {"edit": "mlp.activation", "activation": "gelu"}
    yield {"edit": "quantize", "scheme": "w8a8", "sites": "all"}


def capture_seeds():
    rng = random.Random(7)
    for reading in range(16):
        yield bytes([reading])
        for n in range(1, 4):
            yield bytes([reading]) + bytes(rng.randrange(256) for _ in range(10 * n))


def as_json(seeds):
    for seed in seeds:
        yield json.dumps(seed, ensure_ascii=False).encode()


def main():
    targets = {
        "safetensors": safetensors_seeds(), "gguf": gguf_seeds(), "config": as_json(config_seeds()),
        "tokenizer_json": as_json(tokenizer_seeds()), "edits": as_json(edit_seeds()),
        "sentencepiece": sentencepiece_seeds(), "capture": capture_seeds()}
    for target, seeds in targets.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for i, seed in enumerate(seeds):
            with open(os.path.join(folder, f"seed{i:03}"), "wb") as f:
                f.write(seed)


main()
