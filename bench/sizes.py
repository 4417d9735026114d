#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models and prompts that are large: what `sinkscope capture` takes of time and memory.

large: a generated 12-layer model of 6 GB (float32, 0.5 GB a layer) under --weight-budget 1GiB,
       against the same recording with all weights resident, both in two groups of 2,048 tokens.
long:  statistics of 2,048 to 32,768 tokens of a SmolLM2 folder, with the parts of the forward pass.
       From one length to the next only attention may grow more than the prompt.
"""
import argparse
import array
import json
import os
import random
import struct
import sys

from ratios import GIB, MIB, PARAMETERS, Report, run_in_turn, run_once, seconds_pair

LAYERS, D_MODEL, D_MLP, VOCABULARY = 12, 2560, 12_800, 512


def large_shapes():
    shapes = {"model.embed_tokens.weight": [VOCABULARY, D_MODEL], "model.norm.weight": [D_MODEL]}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{block}{norm}.weight"] = [D_MODEL]
        for name in "qkvo":
            shapes[f"{block}self_attn.{name}_proj.weight"] = [D_MODEL, D_MODEL]
        for name in ("gate", "up"):
            shapes[f"{block}mlp.{name}_proj.weight"] = [D_MLP, D_MODEL]
        shapes[f"{block}mlp.down_proj.weight"] = [D_MODEL, D_MLP]
    return shapes


def write_large(folder):
    """A llama of random numbers: one block of them again and again, each tensor from another place."""
    rng = random.Random(1)
    block = array.array("f", (rng.gauss(0, 0.02) for _ in range(1 << 20))).tobytes()
    shapes, header, at = large_shapes(), {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in header.values():
            left = entry["data_offsets"][1] - entry["data_offsets"][0]
            start = 4 * rng.randrange(len(block) // 4)
            while left > 0:
                piece = block[start:start + left]
                file.write(piece)
                left, start = left - len(piece), 0
    # Written last: a folder without it is not complete.
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                   "hidden_size": D_MODEL, "intermediate_size": D_MLP, "num_hidden_layers": LAYERS,
                   "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128,
                   "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
                   "max_position_embeddings": 4096, "hidden_act": "silu",
                   "tie_word_embeddings": True, "torch_dtype": "float32"}, file)


def large(args, report):
    folder = os.path.join(args.scratch, "large")
    if not os.path.exists(os.path.join(folder, "config.json")):
        print(f"writing a model of 6 GB to {folder}", flush=True)
        write_large(folder)
    prompts, out = (os.path.join(args.scratch, f"large.{kind}") for kind in ("jsonl", "h5"))
    rng = random.Random(2)
    with open(prompts, "w", encoding="utf-8") as file:
        for _ in range(2):
            file.write(json.dumps({"tokens": [rng.randrange(VOCABULARY) for _ in range(2048)]}) + "\n")
    both = [[args.program, "capture", folder, "--prompts", prompts, "--record", "stats", "--threads",
             str(args.threads), "--activation-budget", "80MiB", "--weight-budget", budget, "--force",
             "--json", "-o", out] for budget in ("1GiB", "16GiB")]
    streamed, resident = run_in_turn(both, 1)
    os.remove(out)
    report.at_most("6 GB under 1 GiB of weights: peak GB", streamed.peak / 1e9, 1.6,
                   f"resident {resident.peak / 1e9:.2f} GB")
    report.at_most("6 GB under 1 GiB of weights: time", streamed.seconds / resident.seconds, 1.3,
                   seconds_pair(streamed.seconds, resident.seconds))


def long(args, report):
    with open(os.path.join(args.ids, "ids8192.txt"), encoding="utf-8") as file:
        ids = file.read().replace(",", " ").split()
    listed, out = (os.path.join(args.scratch, f"long.{kind}") for kind in ("txt", "h5"))
    rows = []
    for n in (2048, 4096, 8192, 16384, 32768):
        if n > args.longest:
            break
        with open(listed, "w", encoding="utf-8") as file:
            file.write(" ".join((ids * (-(-n // len(ids))))[:n]))
        found = run_once([args.program, "capture", args.folder, "--tokens-file", listed, "--record",
                          "stats", "--threads", str(args.threads), "--force", "--json", "-o", out])
        part = found.answer["seconds"]
        rest = part["forward"] - part["attention"] - part["statistics"] - part["load"]
        rows.append((n, part["attention"], rest + part["statistics"] + part["load"]))
        print(f"{n:>6} tokens: {found.seconds:7.2f} s, attention {part['attention']:.2f}, statistics "
              f"{part['statistics']:.2f}, waited for weights {part['load']:.2f}, products and all else "
              f"{rest:.2f}, writing beside it {part['write']:.2f}; peak {found.peak / MIB:.0f} MiB",
              flush=True)
    os.remove(out)
    report.at_most(f"{rows[-1][0]} tokens, statistics: GiB over the weights",
                   (found.peak - 4 * PARAMETERS) / GIB, 1, "")
    (n, _, before), (_, _, after) = rows[-2:]
    report.at_most(f"{n} to {2 * n} tokens: all but attention grows by", after / before, 2.3,
                   seconds_pair(after, before))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the sinkscope executable")
    parser.add_argument("what", choices=("large", "long"))
    parser.add_argument("--folder", required=True, help="SmolLM2 as a safetensors folder")
    parser.add_argument("--ids", required=True, help="folder with ids8192.txt")
    parser.add_argument("--scratch", required=True, help="folder for the files written")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--longest", type=int, default=32_768, help="tokens")
    args = parser.parse_args()
    report = Report()
    {"large": large, "long": long}[args.what](args, report)
    sys.exit(0 if all(row["met"] for row in report.rows) else 1)


if __name__ == "__main__":
    main()
