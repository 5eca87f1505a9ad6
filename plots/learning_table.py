#!/usr/bin/env python3
"""A table in Markdown of what a sweep's designs have learnt, medians and quartiles over seeds:

    learning_table.py FOLDER

The folder is that of a finished `millrace sweep` with a learner, after `millrace pareto`. A seed that has not reached
the target counts as infinitely late.
"""
import json
import math
import pathlib
import sys

# key, heading, digits, with quartiles
COLUMNS = [
    ("learner/compute_to_target", "units to the target", 0, True),
    ("learner/updates_to_target", "updates to it", 0, False),
    ("learner/greedy_at_target", "greedy there", 3, False),
    ("learner/pass@16_at_target", "pass@16 there", 3, False),
    ("learner/entropy_at_target", "entropy there", 3, False),
    ("learner/pass@1", "pass@1 at the end", 3, True),
    ("learner/greedy", "greedy at the end", 3, True),
    ("learner/pass@16", "pass@16 at the end", 3, False),
    ("learner/greedy_largest_drop", "largest drop of greedy", 2, False),
    ("updates/clipped_fraction", "clipped", 3, False),
    ("staleness/mean", "staleness", 0, False),
]


def quantile(values, share):
    """Linear between order statistics; infinite as soon as an infinite one takes part."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    if place == low:
        return ordered[low]
    if math.isinf(ordered[low + 1]):
        return math.inf
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def number(value, digits):
    return "never" if math.isinf(value) else f"{value:.{digits}f}"


def cell(values, digits, with_quartiles):
    if not values:
        return "-"
    median = number(quantile(values, 0.5), digits)
    if not with_quartiles:
        return median if median != "never" else "-"
    quartiles = [number(quantile(values, share), digits) for share in (0.25, 0.75)]
    return median if median == "never" and quartiles[0] == "never" else f"{median} [{', '.join(quartiles)}]"


def samples_of(rows):
    """By design, by metric: one number per seed; infinite where a seed has none."""
    samples = {}
    for row in rows:
        of_design = samples.setdefault(row["design"], {})
        for key, values in row.get("metrics", {}).items():
            of_design.setdefault(key, []).extend(math.inf if value is None else value for value in values)
    return samples


def short(value):
    """The value of an axis in a cell: of an object its numbers and words without their names, but for the kind."""
    if isinstance(value, dict):
        rest = [f"{key} {part}" for key, part in value.items() if key != "kind"]
        return " ".join([value["kind"], *rest] if "kind" in value else rest)
    return str(value)


def main(folder):
    folder = pathlib.Path(folder)
    designs = json.loads((folder / "pareto.json").read_text())["designs"]
    samples = samples_of(json.loads(line) for line in (folder / "merged.jsonl").read_text().splitlines())
    paths = list(dict.fromkeys(path for design in designs for path in design["values"]))
    headings = ["family"] + [path.split(".")[-1] for path in paths] + [heading for _, heading, _, _ in COLUMNS]
    print("| " + " | ".join(headings) + " |")
    print("|" + " --- |" * len(headings))
    for design in designs:
        cells = [design["family"]] + [short(design["values"].get(path, "")) for path in paths]
        if "error" in design:
            cells += [design["error"]] + [""] * (len(COLUMNS) - 1)
        else:
            of_design = samples[design["design"]]
            cells += [cell(of_design.get(key, []), digits, quartiles) for key, _, digits, quartiles in COLUMNS]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
