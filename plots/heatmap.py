"""A metric over the buffer size and the split of GPUs, as coloured cells."""
import math
import textwrap

import matplotlib
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

import conclusion
from designs import has_metric, known_metrics, load_any, not_shown, value_text
from figure_style import (BLACK, BadRequest, axis_words, clipped, metric_title, new_figure, note, number,
                          plain_ticks, text_size, title, title_height)

SPLIT = "workers.count/trainers.count"
MOST_NUMBERS = 170  # cells in a figure up to which their values are written in them
WIDE = 20.0         # a span of more than this factor gets logarithmic colours


def arguments(parser):
    parser.add_argument("inputs", nargs="+", metavar="DIR | RESULT.json", help="folder of a sweep, or results of runs")
    parser.add_argument("--metric", default="compute/gamma_simulated", help="what to colour by (%(default)s)")
    parser.add_argument("--x", metavar="PATH", help=f"axis across ({SPLIT}, or what there is of it)")
    parser.add_argument("--y", metavar="PATH", help="axis upwards (store.capacity)")
    parser.add_argument("--title", help="heading of the figure")


def make(options):
    name, families, designs, objectives = load_any(options.inputs)
    story = tell(families, designs, options.metric, options.x, options.y, objectives, name)
    story["title"] = options.title or story["headline"]
    if story["not_shown"]:
        note("millrace plot", story["not_shown"])
    return draw(story), rows(story)


def tell(families, designs, metric, x=None, y=None, objectives=(), name=""):
    """Cells by family; where designs share a cell (they differ in other axes), the best value stands for them."""
    if not any(has_metric(design, metric) for design in designs):
        raise BadRequest(f"no design has the metric {metric}; there are {', '.join(known_metrics(designs)) or 'none'}")
    paths = set().union(*(design["values"] for design in designs))
    x = x or next((p for p in (SPLIT, "trainers.count", "workers.count") if set(p.split("/")) <= paths), None)
    y = y or "store.capacity"
    if x is None or not set(x.split("/")) <= paths:
        raise BadRequest(f"no design has a value of {x or SPLIT}: say by --x which axis goes across; there are "
                         + (", ".join(sorted(paths)) or "none"))
    goal = conclusion.goal_of(metric, objectives)
    shown = [one for one in designs if one["family"] in families and set(x.split("/")) <= set(one["values"])]
    off_grid = between(shown, x, y)
    panels = []
    for family in families:
        cells = {}
        for design in shown:
            if design["family"] == family and design["design"] not in off_grid:
                cells.setdefault((place(design, x), place(design, y)), []).append(design)
        if cells:
            panels.append({"family": family, "cells": {at: settle(here, metric, goal) for at, here in cells.items()}})
    if not any(has_metric(design, metric) for design in shown if design["design"] not in off_grid):
        raise BadRequest(f"no design with a value of {x} has the metric {metric}: there is nothing to draw")
    headline, of_heading = conclusion.extreme(shown, families, metric, goal)
    columns, lines = ({at[k] for panel in panels for at in panel["cells"]} for k in (0, 1))
    return {"metric": metric, "goal": goal, "x": x, "y": y, "name": name, "panels": panels, "columns": sorted(columns),
            "lines": sorted(lines), "most": max(c["designs"] for p in panels for c in p["cells"].values()),
            "headline": headline, "of_heading": of_heading, "off_grid": off_grid,
            "not_shown": not_shown(families, designs, x.split("/"))}


def between(designs, x, y):
    """Ids of designs that the sweep added at values which none of its own designs has: a row of its own for each would
    be empty but for one cell."""
    own = [one for one in designs if not one.get("refined")] or designs
    columns, lines = ({place(one, path) for one in own} for path in (x, y))
    return {one["design"] for one in designs if place(one, x) not in columns or place(one, y) not in lines}


def not_drawn(count):
    """What a figure says of them."""
    if not count:
        return ""
    return f"Not drawn: {count} design{'s' if count > 1 else ''} that the sweep added between values of its axes."


def place(design, path):
    """(what it is sorted by, what is written) of the design's value; designs without one stand together."""
    if path not in design["values"] and not set(path.split("/")) <= set(design["values"]):
        return (-math.inf, "", "–")
    values = [design["values"][part] for part in path.split("/")]
    if path == SPLIT:
        return (values[0] / values[1], "", f"{values[0]}:{values[1]}")
    text = value_text(values[0])
    if isinstance(values[0], (int, float)) and not isinstance(values[0], bool):
        return (float(values[0]), "", text)
    return (math.inf, text, text)


def settle(designs, metric, goal):
    found = [design for design in designs if has_metric(design, metric)]
    best = (min if goal == "minimize" else max)(
        found, key=lambda design: design["metrics"][metric]["mean"], default=None)
    failed = best is None and any("error" in design for design in designs)
    kinds = {design.get("membership") for design in designs}
    return {"value": None if best is None else float(best["metrics"][metric]["mean"]), "designs": len(designs),
            "failed": failed, "state": "done" if best else "failed" if failed else "without the metric",
            "frontier": next((kind for kind in ("in", "undecided") if kind in kinds), ""),
            "design": (best or designs[0])["design"]}


def rows(story):
    yield "family", story["x"], story["y"], "metric", "value", "state", "designs", "frontier", "design"
    for panel in story["panels"]:
        for line in story["lines"]:
            for column in story["columns"]:
                cell = panel["cells"].get((column, line))
                state = "missing" if cell is None else cell["state"]
                yield (panel["family"], column[2], line[2], story["metric"], cell and cell["value"], state,
                       cell["designs"] if cell else 0, cell["frontier"] if cell else "",
                       cell["design"] if cell else "")


def draw(story):
    panels, columns, lines = story["panels"], story["columns"], story["lines"]
    # A panel whose designs have no value upwards (no buffer) is one line high.
    heights = [lines if any(at[1][2] != "–" for at in panel["cells"]) else [] for panel in panels]
    used = [[line for line in lines if (line[2] != "–" if tall else line[2] == "–")
             or any(at[1] == line for at in panel["cells"])] for tall, panel in zip(heights, panels)]
    width = min(14.0, max(7.2, 2.1 + len(panels) * (0.62 * len(columns) + 0.9) + 1.25))
    cells = [panel["cells"].get((column, line)) for panel, own in zip(panels, used)
             for line in own for column in columns]
    drawn = [panel["cells"][at] for panel in panels for at in panel["cells"]]
    notes = ["; ".join(text for text, shown in (
        (story["name"], story["name"]),
        (conclusion.NOISE_WORDS, conclusion.assumes_noise([story["metric"]])),
        ("outlined: on the frontier", any(cell["frontier"] == "in" for cell in drawn)),
        ("dashed outline: undecided", any(cell["frontier"] == "undecided" for cell in drawn)),
        ("hatched: not run", any(cell is None or (cell["value"] is None and not cell["failed"]) for cell in cells)),
        ("crossed: failed", any(cell and cell["failed"] for cell in cells))) if shown)]
    if story["most"] > 1:
        which = "least" if story["goal"] == "minimize" else "greatest"
        notes.append(f"a cell with several designs (at most {story['most']}, which differ in other axes) shows the "
                     f"{which} value")
    if story["title"] == story["headline"] and story["of_heading"]:
        notes.append(story["of_heading"])
    notes += [text for text in (not_drawn(len(story["off_grid"])), story["not_shown"]) if text]
    height = title_height(width, story["title"], notes) + 0.8 + max(1.9, 0.42 * max(len(u) for u in used))
    figure = new_figure(width, height)
    top = title(figure, story["title"], notes) - 0.12 / height
    values = [c["value"] for p in panels for c in p["cells"].values() if c["value"] is not None]
    low, high = min(values), max(values)
    log = low > 0 and high > WIDE * low
    norm = (LogNorm if log else Normalize)(low, high if high > low else low + (abs(low) or 1.0))
    colours = matplotlib.colormaps["cividis"]

    numbers = len(columns) * sum(len(u) for u in used) <= MOST_NUMBERS
    left, right, bottom = 0.9 / width, 1 - 1.5 / width, 0.68 / height
    each = (right - left + 0.45 / width) / len(panels)
    first = None
    mark = 0
    for k, (panel, own) in enumerate(zip(panels, used)):
        tall = (top - bottom) * len(own) / max(len(u) for u in used)
        axes = figure.add_axes((left + k * each, bottom, each - 0.45 / width, tall))
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(own) - 0.5))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        size = number_size(figure, axes, columns, own, values) if numbers else 0
        for i, column in enumerate(columns):
            for j, line in enumerate(own):
                draw_cell(axes, panel["cells"].get((column, line)), i, j, norm, colours, size, f"cell-{mark}")
                mark += 1
        for (i, column) in enumerate(columns):
            for j, line in enumerate(own):
                if (column, line) in panel["cells"]:
                    outline(axes, i, j, panel["cells"][(column, line)]["frontier"])
        step = max(1, math.ceil(len(columns) / (each * width / 0.42)))
        axes.set_xticks(range(0, len(columns), step), [column[2] for column in columns[::step]])
        axes.set_yticks(range(len(own)), [line[2] if line[2] != "–" else "none" for line in own])
        axes.set_xlabel("W : T, workers : trainers" if story["x"] == SPLIT else axis_name(story["x"]))
        if k == 0 or own != used[0]:
            axes.set_ylabel(axis_name(story["y"]) if any(line[2] != "–" for line in own) else "", labelpad=2)
        else:
            axes.set_yticklabels([])
        if panel["family"]:
            axes.set_title(clipped(panel["family"], int(14 * each * width)), size=11, loc="left", weight="bold")
        first = first or axes
    bar_axes = figure.add_axes((1 - 1.3 / width, bottom, 0.16 / width, top - bottom))
    bar = figure.colorbar(matplotlib.cm.ScalarMappable(norm, colours), cax=bar_axes)
    bar.outline.set_visible(False)
    plain_ticks(bar_axes.yaxis, log)
    longest = max(12, int(12 * height * (top - bottom)))
    words = textwrap.wrap(axis_words(story["metric"]), longest)
    if len(words) > 2:
        words = textwrap.wrap(metric_title(story["metric"]), longest, max_lines=2, placeholder=" …")
    bar_axes.set_ylabel("\n".join(words), size=9)
    return figure


def outline(axes, i, j, frontier):
    """Black under white, so that it is seen on dark and on bright cells."""
    if not frontier:
        return
    dash = "-" if frontier == "in" else (0, (3, 2.2))
    for edge, width, style in ((BLACK, 4.0 if frontier == "in" else 2.8, "-"), ("white", 1.6, dash)):
        axes.add_patch(Rectangle((i - 0.45, j - 0.44), 0.9, 0.88, fill=False, edgecolor=edge, linewidth=width,
                                 linestyle=style, zorder=3, gid=f"outline-{frontier}-{i}-{j}-{edge}"))


def axis_name(path):
    return {"store.capacity": "N, rollouts in the buffer", "trainers.count": "T, trainers",
            "workers.count": "W, workers", "trainers.batch": "B, rollouts per update"}.get(path, path)


def number_size(figure, axes, columns, lines, values):
    """The type size at which every value fits into its cell; 0 when that is too small to read."""
    box = axes.get_window_extent()
    room = box.width / len(columns) - 8
    widest = max(text_size(figure, number(value, 3), size=10)[0] for value in values)
    size = min(9.5, 10 * room / widest, 10 * (box.height / len(lines) - 6) / 14)
    return size if size >= 6 else 0


def draw_cell(axes, cell, i, j, norm, colours, size, gid):
    look = {"facecolor": "white", "edgecolor": "#BBBBBB", "hatch": "///", "linewidth": 0}
    if cell is not None and cell["failed"]:
        look.update(edgecolor="#555555", hatch="xxx")
    if cell is not None and cell["value"] is not None:
        look = {"facecolor": colours(norm(cell["value"])), "edgecolor": "white", "linewidth": 1}
    axes.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, gid=gid, **look))
    if cell is not None and cell["value"] is not None and size:
        red, green, blue, _ = colours(norm(cell["value"]))
        bright = 0.299 * red + 0.587 * green + 0.114 * blue
        axes.text(i, j, number(cell["value"], 3), size=size, ha="center", va="center",
                  color=BLACK if bright > 0.5 else "white")
