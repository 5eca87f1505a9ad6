"""Evidence of runs on a GPU: what the files in tests/gpu-evidence say, and for which kernel sources.

    gpu_evidence.py                 the ctest entry: is there evidence for the sources as they are?
    gpu_evidence.py --hash          the hash of the sources
    gpu_evidence.py --write PART... merges the parts that tools/gpu-check gathered into one evidence file
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "tests" / "gpu-evidence"
SKIPPED = 77
# Everything that is compiled into the CUDA backend. The CPU's own bodies and the emulator are not.
SOURCES = ("kernels/*.h", "kernels/rows/*.h", "kernels/cuda/*")


def sources_hash(root=ROOT):
    """Of paths and contents, whatever the line the checkout was made on."""
    digest = hashlib.sha256()
    paths = sorted({path for pattern in SOURCES for path in root.glob(pattern) if path.is_file()})
    for path in paths:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def judge(folder, current_hash):
    """Returns (exit status, sentence) for the newest evidence in a folder."""
    files = sorted(folder.glob("*.json"), key=lambda path: json.loads(path.read_text())["date"])
    if not files:
        return SKIPPED, "The kernels have not yet been run on hardware: there is no evidence file."
    newest = json.loads(files[-1].read_text())
    described = f"{newest['device']}, {newest['date']} ({files[-1].name})"
    failed = [check["name"] for check in newest["checks"] if not check["passed"]]
    if failed or not newest["checks"]:
        return 1, f"The newest GPU evidence, {described}, is of a run that failed: {', '.join(failed) or 'no checks'}."
    if newest["sources_sha256"] != current_hash:
        return SKIPPED, f"GPU evidence is for other kernel sources: {described}."
    return 0, f"Verified on {described}: {len(newest['checks'])} checks."


def merge(parts, facts):
    merged = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
              "sources_sha256": sources_hash(), **facts, "checks": [], "speeds": []}
    for part in parts:
        content = json.loads(pathlib.Path(part).read_text())
        merged["device"] = content.get("device") or merged.get("device")
        merged["checks"] += content.get("checks", [])
        merged["speeds"] += content.get("speeds", [])
    merged["comparisons"] = comparisons(merged["speeds"])
    return merged


def comparisons(speeds):
    """How many times faster than each peer, round by round: what ran in one round ran minutes apart at most."""
    found = []
    ours = {}
    for speed in speeds:
        ours.setdefault((speed["what"], speed["replicas"]), {"millrace": [], "peers": {}})
        kind = ours[(speed["what"], speed["replicas"])]
        if speed["by"] == "millrace":
            kind["millrace"].append(speed["tokens_per_second"])
        else:
            kind["peers"].setdefault(speed["by"], []).append(speed["tokens_per_second"])
    for (what, replicas), kind in ours.items():
        for peer, theirs in kind["peers"].items():
            ratios = sorted(a / b for a, b in zip(kind["millrace"], theirs))
            if ratios:
                found.append({"what": what, "replicas": replicas, "against": peer,
                              "times_faster": ratios[len(ratios) // 2], "lowest": ratios[0], "highest": ratios[-1]})
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hash", action="store_true")
    parser.add_argument("--write", nargs="+", metavar="PART")
    parser.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--folder", type=pathlib.Path, default=EVIDENCE)
    arguments = parser.parse_args()
    if arguments.hash:
        print(sources_hash())
        return 0
    if arguments.write:
        merged = merge(arguments.write, dict(fact.split("=", 1) for fact in arguments.fact))
        name = re.sub(r"[^a-z0-9]+", "-", merged["device"].lower()).strip("-")
        path = arguments.folder / f"{name}-{merged['date'][:10]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(merged, indent=2) + "\n")
        print(path)
        return 0 if all(check["passed"] for check in merged["checks"]) else 1
    status, sentence = judge(arguments.folder, sources_hash())
    print(sentence)
    return status


if __name__ == "__main__":
    sys.exit(main())
