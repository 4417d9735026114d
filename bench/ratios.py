#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed and memory of `sinkscope` as ratios to a yardstick, both measured in this run on this machine.

Whole processes: wall time from start to exit, peak resident memory from wait4. Two sides are run in
turn, A B A B, and medians compared. Only the standard library is imported: a child inherits the
peak of the process that starts it.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

MIB, GIB = 2**20, 2**30
PARAMETERS = 134_515_008  # SmolLM2-135M, tied: 538 MB of float32


class Measured(NamedTuple):
    seconds: float
    peak: int  # bytes
    answer: dict  # what the program printed as JSON


def run_once(command):
    # Both sides write a new file: to free the pages of an old one is no part of the job.
    for flag, output in zip(command, command[1:]):
        if flag in ("-o", "--out") and os.path.exists(output):
            os.remove(output)
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        out, errors = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"bench: exit {child.returncode} from: {' '.join(command)}\n{errors}")
    text = out.strip()
    if not text.startswith("{"):
        text = text.rsplit("\n", 1)[-1]
    return Measured(seconds, usage.ru_maxrss * 1024, json.loads(text) if text.startswith("{") else {})


def run_in_turn(sides, n):
    """Medians per side after one run of each that does not count (page cache, imports)."""
    for command in sides:
        run_once(command)
    results = [[] for _ in sides]
    for _ in range(n):
        for command, found in zip(sides, results):
            found.append(run_once(command))
    return [Measured(statistics.median(r.seconds for r in found),
                     int(statistics.median(r.peak for r in found)), median_answer(found))
            for found in results]


def median_answer(found):
    """Medians of the numbers both sides may report about themselves."""
    keys = ("forward_s", "load_s", "write_s", "total_s")
    parts = [r.answer.get("seconds", {}) for r in found]
    answer = {k: statistics.median(r.answer[k] for r in found)
              for k in keys if all(k in r.answer for r in found)}
    for part in ("load", "forward", "write"):
        if all(part in p for p in parts):
            answer[part + "_s"] = statistics.median(p[part] for p in parts)
    return answer


class Report:
    def __init__(self):
        self.rows = []

    def at_least(self, what, found, target, detail):
        self.add(what, found, f"≥ {target:g}", found >= target, detail)

    def at_most(self, what, found, target, detail):
        self.add(what, found, f"≤ {target:g}", found <= target, detail)

    def add(self, what, found, target, met, detail):
        self.rows.append({"what": what, "found": found, "target": target, "met": bool(met),
                          "detail": detail})
        print(f"{what:<52} {found:8.2f}   {target:<7} {'met' if met else 'MISSED':<7} {detail}",
              flush=True)


def seconds_pair(ours, theirs):
    return f"{ours:.2f} s against {theirs:.2f} s"


def bytes_pair(ours, theirs):
    return f"{ours / MIB:.0f} MiB against {theirs / MIB:.0f} MiB"


class Bench:
    def __init__(self, args):
        self.args, self.report = args, Report()

    def out(self, side):
        return os.path.join(self.args.scratch, f"{side}.h5")

    def ids(self, n):
        return os.path.join(self.args.ids, f"ids{n}.txt")

    def ours(self, model, n, record):
        return [self.args.program, "capture", model, "--tokens-file", self.ids(n), "--record", record,
                "--threads", str(self.args.threads), "--force", "--json", "-o", self.out("ours")]

    def theirs(self, model, n, *flags):
        return [*self.args.yardstick, model, "--tokens-file", self.ids(n), "--threads",
                str(self.args.threads), "--out", self.out("theirs"), *flags]

    def maps(self, name, model):
        a, b = run_in_turn([self.ours(model, 512, "maps"), self.theirs(model, 512)], self.args.n)
        what = f"512 tokens, maps, {name}"
        self.report.at_least(f"{what}: times faster", b.seconds / a.seconds, 5,
                             seconds_pair(a.seconds, b.seconds))
        self.report.at_most(f"{what}: peak memory", a.peak / b.peak, 0.6, bytes_pair(a.peak, b.peak))
        ours, theirs = a.answer["forward_s"], b.answer["forward_s"]
        self.report.at_most(f"{what}: forward", ours / theirs, 1, seconds_pair(ours, theirs))

    def recording(self):
        model = self.args.folder
        a, b = run_in_turn([self.ours(model, 512, "maps"), self.ours(model, 512, "stats")], self.args.n)
        self.report.at_most("512 tokens: maps against statistics", a.seconds / b.seconds, 1.25,
                            seconds_pair(a.seconds, b.seconds))

    def what_if(self):
        """A full rerun with one edit against the capture that it is compared with."""
        model, baseline = self.args.folder, self.out("baseline")
        plain = self.ours(model, 512, "stream")
        run_once([*plain[:-1], baseline])
        edits = {"a clip": '{"edit":"residual.clip","limit":100}',
                 "softmax1": '{"edit":"attention.normalizer","kind":"softmax1"}',
                 "key 0 dropped": '{"edit":"attention.mask_key","keys":[0]}'}
        rerun = [self.args.program, "whatif", model, "--baseline", baseline, "--threads",
                 str(self.args.threads), "--force", "--json", "-o", self.out("edited"), "--edit"]
        a, *others = run_in_turn([plain, *([*rerun, edit] for edit in edits.values())], self.args.n)
        for name, b in zip(edits, others):
            self.report.at_most(f"512 tokens: rerun with {name}, against a capture",
                                b.seconds / a.seconds, 1.2, seconds_pair(b.seconds, a.seconds))

    def norms(self):
        (a,) = run_in_turn([[self.args.program, "norms", self.args.gguf]], self.args.n)
        self.report.at_most("norms of the GGUF: seconds", a.seconds, 0.3, "")
        self.report.at_most("norms of the GGUF: MB", a.peak / 1e6, 60, "")

    def long_maps(self):
        a = run_once(self.ours(self.args.folder, 2048, "maps"))
        size = os.path.getsize(self.out("ours"))
        self.report.at_most("2,048 tokens, all maps: peak GB", a.peak / 1e9, 1.3,
                            f"{a.seconds:.1f} s for a file of {size / 1e9:.2f} GB")

    def long_statistics(self):
        model = self.args.folder
        a, b = run_in_turn([self.ours(model, 8192, "stats"), self.theirs(model, 8192, "--no-maps")],
                           self.args.long_n)
        self.report.at_most("8,192 tokens, statistics: GiB over the weights",
                            (a.peak - 4 * PARAMETERS) / GIB, 1, bytes_pair(a.peak, b.peak))
        ours, theirs = a.answer["forward_s"], b.answer["forward_s"]
        self.report.at_most("8,192 tokens, statistics: forward", ours / theirs, 2,
                            seconds_pair(ours, theirs) + " (fused)")
        self.report.at_most("8,192 tokens, statistics: whole process", a.seconds / b.seconds, 2,
                            seconds_pair(a.seconds, b.seconds))

    def clean(self):
        for side in ("ours", "theirs", "baseline", "edited"):
            for suffix in ("", ".part", ".part.tmp"):
                if os.path.exists(self.out(side) + suffix):
                    os.remove(self.out(side) + suffix)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the sinkscope executable")
    parser.add_argument("--yardstick", nargs=2, required=True, metavar=("PYTHON", "SCRIPT"))
    parser.add_argument("--folder", required=True, help="the model as a safetensors folder")
    parser.add_argument("--gguf", required=True, help="the same as GGUF")
    parser.add_argument("--ids", required=True, help="folder with ids512.txt and longer ones")
    parser.add_argument("--scratch", required=True, help="folder for the files written")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-n", type=int, default=5, help="measurements per side")
    parser.add_argument("--long-n", type=int, default=1, help="the same for 8,192 tokens")
    parser.add_argument("--quick", action="store_true", help="leave out 8,192 tokens")
    parser.add_argument("--only", help="run only this one: folder gguf recording what-if norms long-maps long-statistics")
    args = parser.parse_args()
    bench = Bench(args)
    parts = {"folder": lambda: bench.maps("safetensors", args.folder),
             "gguf": lambda: bench.maps("GGUF", args.gguf), "recording": bench.recording,
             "what-if": bench.what_if,
             "norms": bench.norms, "long-maps": bench.long_maps,
             "long-statistics": bench.long_statistics}
    if args.quick:
        del parts["long-statistics"]
    load = os.getloadavg()[0]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {args.threads} threads, "
          f"load {load:.1f}, medians of {args.n}")
    try:
        for name, part in parts.items():
            if args.only in (None, name):
                part()
                bench.clean()
    finally:
        bench.clean()
    with open(os.path.join(args.scratch, "ratios.json"), "w", encoding="utf-8") as f:
        json.dump({"load": load, "rows": bench.report.rows}, f, indent=1)
    missed = sum(not row["met"] for row in bench.report.rows)
    print(f"{len(bench.report.rows) - missed} met, {missed} missed")


if __name__ == "__main__":
    main()
