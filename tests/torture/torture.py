#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills recordings at random moments and looks at what is left.

After each SIGKILL the unfinished file must open, its whole layers must equal those of an undisturbed
recording to the bit, and --resume must finish it to a file in which h5diff finds no difference. Every
second round kills the resumed recording once more. Only the standard library and h5diff are used.
"""
import argparse
import array
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the built sinkscope")
    parser.add_argument("--checker", required=True, help="the built check_whole_layers")
    parser.add_argument("--model", action="append", required=True, help="may be given several times")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def write_wide_model(folder, rng, n_heads=16_000, n_layers=3, d_model=16, head_dim=2, vocabulary=64):
    """A llama of random numbers with so many heads that a layer's maps are 16,000 chunks, which is
    the most that one may have."""
    shapes = {"model.embed_tokens.weight": (vocabulary, d_model), "model.norm.weight": (d_model,)}
    for layer in range(n_layers):
        block = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{block}{norm}.weight"] = (d_model,)
        for name, rows, columns in (("self_attn.q_proj", n_heads * head_dim, d_model),
                                    ("self_attn.k_proj", head_dim, d_model),
                                    ("self_attn.v_proj", head_dim, d_model),
                                    ("self_attn.o_proj", d_model, n_heads * head_dim),
                                    ("mlp.gate_proj", 8, d_model), ("mlp.up_proj", 8, d_model),
                                    ("mlp.down_proj", d_model, 8)):
            shapes[f"{block}{name}.weight"] = (rows, columns)
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        array.array("f", (rng.uniform(-0.3, 0.3) for _ in range(at // 4))).tofile(file)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                   "hidden_size": d_model, "intermediate_size": 8, "num_hidden_layers": n_layers,
                   "num_attention_heads": n_heads, "num_key_value_heads": 1, "head_dim": head_dim,
                   "vocab_size": vocabulary, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
                   "max_position_embeddings": 64, "hidden_act": "silu",
                   "tie_word_embeddings": True, "torch_dtype": "float32"}, file)


def prompts(path, vocabulary, lengths, rng):
    with open(path, "w", encoding="utf-8") as file:
        for n in lengths:
            ids = [rng.randrange(vocabulary) for _ in range(n)]
            file.write(json.dumps({"tokens": ids}) + "\n")


def wait_for_part(path, process):
    """Until the recording has made its file, or has ended."""
    while process.poll() is None and not os.path.exists(path + ".part"):
        time.sleep(0.001)


class Case:
    """One kind of recording: its command and its undisturbed file."""

    def __init__(self, name, program, folder, command):
        self.name, self.command = name, [program, "capture", *command, "-q"]
        self.reference = os.path.join(folder, f"{name}.h5")
        begin = time.monotonic()
        process = self.start(self.reference, False)
        wait_for_part(self.reference, process)
        self.seconds_before = time.monotonic() - begin
        if process.wait() != 0:
            sys.exit(f"{name}: {process.stderr.read()}")
        process.stderr.close()
        self.seconds = time.monotonic() - begin - self.seconds_before  # of recording

    def start(self, path, resume):
        flags = ["--resume"] if resume else []
        return subprocess.Popen([*self.command, "-o", path, *flags], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)


def cases(args, folder, rng):
    found = []
    for number, model in enumerate(args.model):
        info = json.loads(subprocess.run([args.program, "info", model, "--json"], check=True,
                                         capture_output=True, text=True).stdout)
        vocabulary = info["vocab_size"]
        many, one = (os.path.join(folder, f"{kind}{number}.jsonl") for kind in ("many", "one"))
        prompts(many, vocabulary, [rng.randrange(40, 300) for _ in range(24)], rng)
        prompts(one, vocabulary, [900], rng)
        common = [model, "--threads", "2", "--activation-budget", "1MiB"]
        found += [
            Case(f"statistics{number}", args.program, folder,
                 [*common, "--prompts", many, "--record", "stats"]),
            Case(f"everything{number}", args.program, folder,
                 [*common, "--prompts", many, "--record", "all,logits"]),
            Case(f"maps{number}", args.program, folder, [*common, "--prompts", one, "--record", "maps"]),
        ]
    wide, few = os.path.join(folder, "wide"), os.path.join(folder, "few.jsonl")
    write_wide_model(wide, rng)
    prompts(few, 64, [7, 5], rng)
    found.append(Case("most_chunks", args.program, folder,
                      [wide, "--threads", "2", "--prompts", few, "--record", "maps"]))
    return found


class Counts:
    kills = in_recording = after_end = before_start = unreadable = wrong = resumed = unresumed = 0


def kill_once(case, path, resume, rng):
    """Whether the recording was still at work. Nine of ten are killed after the file was made."""
    process = case.start(path, resume)
    moment = rng.uniform(0, case.seconds_before)
    if rng.random() < 0.9:
        wait_for_part(path, process)
        moment = rng.uniform(0, 1.02) * case.seconds
    try:
        process.wait(moment)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    finally:
        process.stderr.close()


def look(case, path, checker, counts):
    part = path + ".part"
    if os.path.exists(path):
        counts.after_end += 1
        return
    if not os.path.exists(part):
        counts.before_start += 1
        return
    counts.in_recording += 1
    result = subprocess.run([checker, case.reference, part], capture_output=True, text=True)
    if result.returncode == 0:
        return
    counts.unreadable += result.returncode != 1
    counts.wrong += result.returncode == 1
    print(f"{case.name}: {result.stdout.strip()} (exit {result.returncode})", file=sys.stderr)


def is_same_file(reference, path):
    """h5diff exits 0 where arrays have other shapes, too: -c names what it did not compare. Of those
    only an empty list is nothing to compare."""
    result = subprocess.run(["h5diff", "-c", reference, path], capture_output=True, text=True)
    not_compared = [line for line in result.stdout.splitlines() if line.startswith("Not comparable")
                    and not ("/input/bos_positions>" in line and "empty dataset" in line)]
    return result.returncode == 0 and not not_compared


def finish(case, path, counts):
    process = case.start(path, True)
    _, errors = process.communicate()
    same = process.returncode == 0 and is_same_file(case.reference, path)
    left = [name for name in os.listdir(os.path.dirname(path)) if name.startswith("run.h5.")]
    if same and not left:
        counts.resumed += 1
        return
    counts.unresumed += 1
    print(f"{case.name}: resume exit {process.returncode}, same file: {same}, left over: {left}\n"
          f"{errors}", file=sys.stderr)


def main():
    args = arguments()
    rng = random.Random(args.seed)
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="sinkscope-torture-") as folder:
        all_cases = cases(args, folder, rng)
        while counts.kills < args.kills:
            case = all_cases[counts.kills % len(all_cases)]
            place = tempfile.mkdtemp(dir=folder)
            path = os.path.join(place, "run.h5")
            for again in range(1 + counts.kills % 2):
                counts.kills += kill_once(case, path, again > 0, rng)
                look(case, path, args.checker, counts)
            finish(case, path, counts)
            subprocess.run(["rm", "-r", place], check=True)
    print(f"{counts.kills} kills ({counts.in_recording} while recording, {counts.before_start} before "
          f"the file was there, {counts.after_end} runs ended first): {counts.unreadable} unreadable "
          f"files, {counts.wrong} with wrong values in whole layers, {counts.resumed} resumed to an "
          f"equal file, {counts.unresumed} not")
    return 1 if counts.unreadable or counts.wrong or counts.unresumed else 0


if __name__ == "__main__":
    sys.exit(main())
