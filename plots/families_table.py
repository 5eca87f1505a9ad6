#!/usr/bin/env python3
"""A table in Markdown of the best design of each family at every value of an axis:

    families_table.py FOLDER PATH

The folder is that of a finished `millrace sweep`, after `millrace pareto`; PATH is an axis that all families have, such
as horizon.units. Best is meant by the mean of the last objective. Differences are to the first family, of equal
replications, with their 95 % Student-t half-width; they are not corrected for the choice of the best.
"""
import json
import math
import pathlib
import statistics
import sys

# Quantile .975 of Student's t, by degrees of freedom; beyond them that of the normal distribution will do.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
     2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]


def samples_of(folder, metric):
    samples = {}
    for line in (folder / "merged.jsonl").read_text().splitlines():
        row = json.loads(line)
        values = row.get("metrics", {}).get(metric, [])
        samples.setdefault(row["design"], []).extend(values)
    return {design: values for design, values in samples.items() if values and None not in values}


def best_designs(designs, samples, path, goal):
    """By value of the axis, by family: a design."""
    sign = -1.0 if goal == "maximize" else 1.0
    best = {}
    for design in designs:
        if design["design"] not in samples or path not in design["values"]:
            continue
        at = best.setdefault(design["values"][path], {})
        known = at.get(design["family"])
        mean = sign * statistics.fmean(samples[design["design"]])
        if known is None or mean < sign * statistics.fmean(samples[known["design"]]):
            at[design["family"]] = design
    return best


def difference(values, others):
    pairs = [a - b for a, b in zip(values, others)]
    text = f"{statistics.fmean(pairs):+.3f}"
    if len(pairs) < 2:
        return text
    t = T[len(pairs) - 2] if len(pairs) - 2 < len(T) else 1.96
    return text + f" +- {t * statistics.stdev(pairs) / math.sqrt(len(pairs)):.3f}"


def main(folder, path):
    folder = pathlib.Path(folder)
    document = json.loads((folder / "pareto.json").read_text())
    objective = document["objectives"][-1]
    samples = samples_of(folder, objective["metric"])
    best = best_designs(document["designs"], samples, path, objective["goal"])
    first, *others = document["families"]
    print(f"| {path} | " + " | ".join([first] + [cell for name in others for cell in (name, "difference")]) + " |")
    print("|" + " --- |" * (2 + 2 * len(others)))
    for value, by_family in best.items():
        cells = [str(value)]
        for name in document["families"]:
            design = by_family.get(name)
            if design is None:
                cells += ["-"] if name == first else ["-", "-"]
                continue
            mine = samples[design["design"]]
            axes = ", ".join(f"{key.split('.', 1)[-1]} {axis}" for key, axis in design["values"].items() if key != path)
            cells.append(f"{statistics.fmean(mine):.3f} at {axes}")
            if name != first:
                cells.append(difference(mine, samples[by_family[first]["design"]]) if first in by_family else "-")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
