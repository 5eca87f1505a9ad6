#!/usr/bin/python3
"""Two builds of millrace must print the same bytes:  same_bytes_test.py MILLRACE OTHER_MILLRACE SOURCE_DIR

Runs every shipped scenario and every good one of the decoder's corpus, shortened, in both builds with one thread and
with two. Equal JSON includes the digest of the order of all events, so this holds optimised code against sanitised, or
one compiler against another. Scenarios with a learner are left out: a compiler may order the sums of a model's
arithmetic in its own way.
"""
import json
import pathlib
import subprocess
import sys

SHORTENED = ["--set", "horizon.updates=40", "--set", "horizon.warmup_updates=8", "--set", "replications=2"]
LONGEST_S = 120
EXPLAINED = 3  # failures shown in full; the rest are likely the same


def output(binary, scenario, jobs):
    """What the run prints, and the run as a command; None with the reason when it failed."""
    words = [str(binary), "run", str(scenario), *SHORTENED, "--format", "json", "--jobs", str(jobs)]
    try:
        done = subprocess.run(words, capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no end after {LONGEST_S} s: {' '.join(words)}"
    if done.returncode != 0 or b"order_digest" not in done.stdout:
        complaint = "\n    ".join(done.stderr.decode(errors="replace").splitlines()[:15])
        return None, f"exit code {done.returncode}: {' '.join(words)}\n    {complaint}"
    return done.stdout, " ".join(words)


def first_difference(a, b):
    """Where two texts part, with the line of each."""
    offset = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    line = a.count(b"\n", 0, offset)
    begin = a.rfind(b"\n", 0, offset) + 1  # the same in both: they are equal up to the offset

    def shown(text):
        end = text.find(b"\n", begin)
        return text[begin:end if end >= 0 else len(text)].decode(errors="replace")

    return f"line {line + 1}, column {offset - begin + 1} (byte {offset})\n    {shown(a)}\n    {shown(b)}"


def main(arguments):
    if len(arguments) != 3:
        print("usage: same_bytes_test.py MILLRACE OTHER_MILLRACE SOURCE_DIR", file=sys.stderr)
        return 2
    binaries = [pathlib.Path(argument).resolve() for argument in arguments[:2]]
    root = pathlib.Path(arguments[2]).resolve()
    shipped = sorted((root / "scenarios").glob("*.json")) + sorted((root / "scenarios" / "paper").glob("*.json"))
    corpus = sorted((root / "tests" / "scenario" / "corpus" / "good").glob("*.json"))
    corpus = [file for file in corpus if "learner" not in json.loads(file.read_text(encoding="utf-8"))]
    failures = 0
    if len(shipped) < 13 or len(corpus) < 15:
        print(f"scenarios are missing: found {len(shipped)} shipped and {len(corpus)} in the corpus", file=sys.stderr)
        failures += 1

    for scenario in shipped + corpus:
        runs = [output(binary, scenario, jobs) for binary in binaries for jobs in (1, 2)]
        problems = [what for result, what in runs if result is None]
        first, reference = runs[0]
        if not problems:
            problems = [f"{reference}\n  {what}\n  differ at {first_difference(first, result)}"
                        for result, what in runs[1:] if result != first]
        if problems:
            failures += 1
            detail = f":\n  {problems[0]}" if failures <= EXPLAINED else ""
            print(f"{scenario.relative_to(root)} differs or fails{detail}", file=sys.stderr)

    print(f"{len(shipped)} shipped scenarios and {len(corpus)} of the corpus in two builds: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
