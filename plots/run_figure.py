#!/usr/bin/python3
"""Draws the result of one run:  run_figure.py RESULT.json STEM  writes STEM.svg, STEM.png and STEM.csv.

RESULT.json is what `millrace run --output RESULT.json` wrote; STEM.csv holds the numbers drawn. Equal results give
equal bytes. Exit codes as millrace's: 0 done, 2 usage, 3 not a millrace result.
"""
import math
import sys
import textwrap

from figure_style import BLUE, GREY, VERMILION, Reading, clipped, exit_code, load_result, new_figure, number, save

from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import blended_transform_factory

from histograms import KINDS, bar_width
from utilisation import ROLES

MOST_ROWS = 7

COMPARED = [
    ("Replay ratio", "replay/mean"), ("Compute ratio γ", "compute/gamma_simulated"),
    ("Gradient variance", "noise/relative_variance"), ("Compute to target", "noise/relative_compute_to_target"),
    ("Mean staleness", "staleness/mean"), ("Update period, s", "time/update_period_s"),
]


def main(arguments):
    if len(arguments) != 2:
        print("usage: run_figure.py RESULT.json STEM    writes STEM.svg, STEM.png and STEM.csv", file=sys.stderr)
        return 2
    path, stem = arguments

    def work():
        story = read_story(path)
        save(draw(story), tidy_rows(story), stem)

    return exit_code("run_figure.py", work)


# ---- what is drawn --------------------------------------------------------------------------------------------------


def read_story(path):
    result = load_result(path)
    with Reading(path):
        return {"heading": heading(result), "histograms": [histogram(result, *kind) for kind in KINDS],
                "comparison": comparison(result), "utilisation": utilisation(result),
                "warnings": [str(warning) for warning in result["warnings"]]}


def heading(result):
    scenario, replications = result["scenario"], result["replications"]
    trainers, store = scenario["trainers"], scenario["store"]
    kind = {"replay_buffer": "replay buffer N =", "transfer_queue": "transfer queue of"}[store["kind"]]
    pipeline = (f'W = {scenario["workers"]["count"]} workers,  T = {trainers["count"]} trainers,  {kind} '
                f'{store["capacity"]},  batch B = {trainers["batch"]},  groups of G = {scenario["groups"]["size"]}')
    run = (f'{replications} replication{"s" if replications > 1 else ""} of {scenario["horizon"]["updates"]} updates, '
           f'the first {result["warmup_updates"]} discarded; '
           + ("± is the 95 % interval" if replications > 1 else "one replication gives no interval")
           + ("; interrupted before all replications were complete" if result["interrupted"] else ""))
    return str(scenario["name"]), pipeline, run


def histogram(result, key, title, population, axis, if_empty):
    """Bars as (first value, last value, share), with mean and p99."""
    counts = result["histograms"][key]["counts"]
    total = sum(counts)
    if total == 0:
        return {"key": key, "title": title, "bars": [], "if_empty": if_empty}
    width = bar_width(len(counts))
    bars = [(first, first + width - 1, sum(counts[first:first + width]) / total)
            for first in range(0, len(counts), width)]
    p99 = next(value for value in range(len(counts)) if sum(counts[:value + 1]) >= 0.99 * total)
    return {"key": key, "title": title, "population": population, "bars": bars, "width": width, "p99": p99,
            "axis": axis + (f" (bars of {width})" if width > 1 else ""),
            "mean": sum(value * count for value, count in enumerate(counts)) / total}


def comparison(result):
    """One row per metric that has a formula or a published number."""
    others = {entry["metric"] for entry in result["published"]} - {key for _, key in COMPARED} - {"compute/gamma"}
    rows = []
    for title, key in COMPARED + [(other.split("/")[-1], other) for other in sorted(others)]:
        keys = [key.removesuffix("_simulated"), key]  # compute/gamma itself is a formula
        simulated = result["metrics"].get(key)
        formula = next((float(result["formulas"][k]) for k in keys if k in result["formulas"]), None)
        published = [(float(entry["value"]), str(entry["source"]))
                     for entry in result["published"] if entry["metric"] in keys]
        if simulated is None or simulated["replications"] == 0 or (formula is None and not published):
            continue
        rows.append({"title": title, "key": key, "mean": float(simulated["mean"]), "formula": formula,
                     "half_width": float(simulated["half_width"]) if "half_width" in simulated else None,
                     "published": published})
    return rows[:MOST_ROWS]


def utilisation(result):
    metrics = result["metrics"]
    bars = [(role, [(state, float(metrics[f"{role}/{state}"]["mean"]), look) for state, look in states])
            for role, states in ROLES]
    cost = (f'{number(metrics["compute/reserved_gpu_s_per_update"]["mean"])} reserved GPU-s per update, '
            f'{number(metrics["compute/active_gpu_s_per_update"]["mean"])} of them active')
    price = metrics.get("compute/usd_per_update")
    return {"bars": bars, "cost": cost + (f'\n{number(1000 * price["mean"])} USD per 1,000 updates' if price else "")}


def tidy_rows(story):
    yield "panel", "metric", "series", "from", "to", "value", "half_width", "source"
    for panel in story["histograms"]:
        for first, last, share in panel["bars"]:
            yield "histogram", panel["key"], "share", first, last, share, None, None
        for series in ("mean", "p99") if panel["bars"] else ():
            yield "histogram", panel["key"], series, None, None, panel[series], None, None
    for row in story["comparison"]:
        yield "comparison", row["key"], "simulated", None, None, row["mean"], row["half_width"], None
        if row["formula"] is not None:
            yield "comparison", row["key"], "formula", None, None, row["formula"], None, None
        for value, source in row["published"]:
            yield "comparison", row["key"], "published", None, None, value, None, source
    for role, states in story["utilisation"]["bars"]:
        for state, share, _ in states:
            yield "utilisation", f"{role}/{state}", "share", None, None, share, None, None


# ---- how it is drawn ------------------------------------------------------------------------------------------------


def draw(story):
    name, pipeline, run = story["heading"]
    figure = new_figure(13.33, 7.5)
    figure.text(0.04, 0.93, clipped(name, 54), size=21, weight="bold")
    figure.text(0.04, 0.89, pipeline, size=13)
    figure.text(0.04, 0.862, run, color=GREY)
    for left, panel in zip((0.04, 0.365, 0.69), story["histograms"]):
        draw_histogram(figure, left, panel)
    footer = [f"Warning: {warning}" for warning in story["warnings"]] + draw_comparison(figure, story["comparison"])
    draw_utilisation(figure, story["utilisation"])
    lines = [line for text in footer for line in textwrap.wrap(text, 190)]
    lines = lines[:2] + textwrap.wrap(" ".join(lines[2:]), 190, max_lines=1, placeholder=" …")
    figure.text(0.04, 0.075, "\n".join(lines), size=8, color=GREY, va="top", linespacing=1.35)
    return figure


def draw_histogram(figure, left, panel):
    axes = figure.add_axes((left + 0.028, 0.575, 0.25, 0.185))
    figure.text(left, 0.805, panel["title"], weight="bold", size=12.5)
    if not panel["bars"]:
        axes.set(facecolor="#F2F2F2", xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.text(0.5, 0.5, "none: " + panel["if_empty"], transform=axes.transAxes, color=GREY, ha="center")
        return
    shares = [100 * share for _, _, share in panel["bars"]]
    axes.bar([(first + last) / 2 for first, last, _ in panel["bars"]], shares, 0.85 * panel["width"], color=BLUE)
    axes.axvline(panel["mean"], color="black", linewidth=1.4)
    axes.axvline(panel["p99"], color=VERMILION, linewidth=1.4, linestyle=(0, (4, 2)))
    # Under the title instead of at the lines, where the two would collide when mean and p99 are near.
    figure.text(left, 0.776, f'— mean {number(panel["mean"], 3)}')
    figure.text(left + 0.1, 0.776, f'- -  p99 {panel["p99"]}', color=VERMILION)
    axes.set(xlim=(-0.6, max(panel["bars"][-1][1], 3) + 0.6), ylim=(0, 1.08 * max(shares)), xlabel=panel["axis"])
    axes.set_ylabel(f'% of {panel["population"]}', size=9)
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def draw_comparison(figure, rows):
    """Returns the footnote on the published numbers, if there are any."""
    sources = list(dict.fromkeys(source for row in rows for _, source in row["published"]))
    figure.text(0.04, 0.465, "Simulation against closed forms and published numbers", weight="bold", size=12.5)
    if not rows:
        figure.text(0.04, 0.43, "none: this scenario has neither a closed form nor published numbers", color=GREY)
        return []
    figure.text(0.345, 0.43, "● simulated", color=BLUE)
    figure.text(0.455, 0.43, "| formula")
    figure.text(0.525, 0.43, "✕ published" if sources else "", color=VERMILION)
    height = min(0.045 * len(rows), 0.27)
    axes = figure.add_axes((0.165, 0.42 - height, 0.16, height), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    axes.axvline(1, color="black", linewidth=1.4)
    axes.spines["left"].set_visible(False)
    beside = blended_transform_factory(figure.transFigure, axes.transData)

    def write(x, y, text, **style):
        figure.text(x, y, text, transform=beside, **{"va": "center", **style})

    ratios = [1.0]
    for y, row in enumerate(rows):
        write(0.04, y + 0.02, row["title"], va="bottom")
        write(0.04, y + 0.1, row["key"], va="top", size=6.5, color=GREY)
        interval = "" if row["half_width"] is None else f' ± {number(row["half_width"], 2)}'
        write(0.345, y, number(row["mean"]) + interval, color=BLUE)
        write(0.455, y, "–" if row["formula"] is None else number(row["formula"]))
        marks = [f"{value:.4g} [{sources.index(source) + 1}]" for value, source in row["published"]]
        write(0.525, y, "  ".join(marks[:2]) + (" …" if len(marks) > 2 else ""), color=VERMILION)

        axes.axhline(y, color="#E5E5E5", linewidth=0.8, zorder=0)
        reference = row["mean"] if row["formula"] is None else row["formula"]
        if reference <= 0:
            continue  # a ratio to zero has no place on the axis; the numbers are written beside it
        spread = row["half_width"] or 0.0
        axes.plot([(row["mean"] - spread) / reference, (row["mean"] + spread) / reference], [y, y], color=BLUE, lw=2)
        # Hollow where the simulation itself stands in for the missing formula.
        axes.plot(row["mean"] / reference, y, "o", color=BLUE, markersize=7, zorder=3,
                  markerfacecolor="white" if row["formula"] is None else BLUE)
        crosses = [value / reference for value, _ in row["published"]]
        axes.plot(crosses, [y] * len(crosses), "x", color=VERMILION, markersize=7, markeredgewidth=1.8, zorder=4)
        ratios += [row["mean"] / reference] + crosses
    scale_ratio_axis(axes, [ratio for ratio in ratios if ratio > 0])
    replaced = " (○ none: to the simulation)" if any(row["formula"] is None for row in rows) else ""
    axes.set_xlabel("ratio to the formula" + replaced, size=9)
    return ["Published: " + "   ".join(f"[{i}] {source}" for i, source in enumerate(sources, 1))] if sources else []


def scale_ratio_axis(axes, ratios):
    reach = 1.15 * max([abs(ratio - 1) for ratio in ratios] + [0.05])
    if reach < 0.8:
        axes.set_xlim(1 - reach, 1 + reach)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    else:  # beyond a factor of about two, halves and doubles stand at equal distances
        doublings = 1.15 * max(abs(math.log2(ratio)) for ratio in ratios)
        axes.set_xscale("log", base=2)
        axes.set_xlim(2**-doublings, 2**doublings)
        step = math.ceil(doublings / 2.5)
        axes.xaxis.set_major_locator(FixedLocator([2.0 ** (step * power) for power in range(-2, 3)]))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.4g}"))
    axes.tick_params(labelsize=9)


def draw_utilisation(figure, story):
    figure.text(0.66, 0.465, "What the GPUs do", weight="bold", size=12.5)
    for bottom, (role, states) in zip((0.375, 0.255), story["bars"]):
        axes = figure.add_axes((0.718, bottom, 0.25, 0.055), xlim=(0, 100))
        axes.set_axis_off()
        left = 0.0
        for state, share, (colour, hatch) in states:
            percent = f"{100 * share:.1f}" if 0.0005 <= share < 0.9995 else f"{100 * share:.0f}"
            axes.barh(0, 100 * share, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8,
                      label=f"{state} {percent} %")
            left += 100 * share
        figure.text(0.66, bottom + 0.0275, role, va="center", size=11)
        axes.legend(loc="upper left", bbox_to_anchor=(0.656, bottom), bbox_transform=figure.transFigure, frameon=False,
                    ncol=len(states), fontsize=8, handlelength=1.2, handletextpad=0.4, columnspacing=0.9, borderpad=0)
    figure.text(0.66, 0.19, story["cost"], color=GREY, va="top", linespacing=1.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
