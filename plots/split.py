"""Throughput against the split of GPUs between workers and trainers, with the bound of the slower side."""
import csv
import os
import re

from matplotlib.lines import Line2D

from designs import (TRAINERS, WORKERS, distinguishes, has_metric, load_any, mean_and_spread, not_shown, symbol,
                     value_text)
from figure_style import (BLACK, GREY, LOOKS, ORANGE, PALE, SKY, BadInput, BadRequest, clipped, new_figure, number,
                          note, plain_ticks, title)

PERIOD, GAMMA, SIMULATED, RESERVED = ("time/update_period_s", "compute/gamma", "compute/gamma_simulated",
                                      "compute/reserved_gpu_s_per_update")
RATES = {"updates": "Updates per second", "rollouts": "Rollouts trained on per second"}
PER_GPU = " and GPU"  # where numbers of GPUs differ
MOST_LINES = 6
LONGEST_LABEL = 64  # letters
KEY_LETTERS = 125  # in a row of the key
SAME = 0.01  # rates that differ by less than this share are drawn as one line


def arguments(parser):
    parser.add_argument("inputs", nargs="+", metavar="DIR | RESULT.json",
                        help="folder of a sweep over workers.count and trainers.count, or results of runs")
    parser.add_argument("--rate", choices=list(RATES), default="updates", help="what to draw (%(default)s)")
    parser.add_argument("--measured", metavar="FILE.csv",
                        help="measured points, with columns workers, trainers and per_second")
    parser.add_argument("--title", help="heading of the figure")


def make(options):
    name, families, designs, _ = load_any(options.inputs)
    story = tell(families, designs, options.rate)
    story["measured"] = read_measured(options.measured) if options.measured else []
    story.update(name=name, title=options.title or story["headline"])
    if story["not_shown"]:
        note("millrace plot", story["not_shown"])
    return draw(story), rows(story)


def tell(families, designs, rate):
    """One line per family and per value of the other axes; results of single runs are one line per kind of store."""
    points = []
    missing = not_shown(families, designs, [WORKERS, TRAINERS])
    designs = [design for design in designs
               if {WORKERS, TRAINERS} <= set(design["values"]) and has_metric(design, PERIOD)]
    totals = sorted({design["values"][WORKERS] + design["values"][TRAINERS] for design in designs})
    per_gpu = len(totals) > 1
    for design in designs:
        values = design["values"]
        workers, trainers = values[WORKERS], values[TRAINERS]
        period, spread = mean_and_spread(design, PERIOD)
        batch = mean_and_spread(design, "rollouts/trained_per_update")[0] if rate == "rollouts" else 1.0
        batch /= workers + trainers if per_gpu else 1
        points.append({"design": design["design"], "family": design["family"], "workers": workers, "trainers": trainers,
                       "line": line_name(design, families), "share": workers / (workers + trainers),
                       "rate": batch / period, "half_width": batch * spread / period**2,
                       **bound(design, workers, trainers, batch)})
    if not points:
        raise BadRequest(f"no design has values of {WORKERS} and {TRAINERS} and the metric {PERIOD}")
    names = list(dict.fromkeys(point["line"] for point in points))
    lines = [(name, sorted((p for p in points if p["line"] == name), key=lambda p: (p["share"], p["design"])))
             for name in names]
    lines = without_repeats(lines)
    best_first = sorted(range(len(lines)), key=lambda i: -max(p["rate"] for p in lines[i][1]))
    drawn = [lines[i] for i in sorted(best_first[:MOST_LINES])]
    return {"rate": rate, "lines": drawn, "left_out": len(lines) - len(drawn),
            "points": [p for _, members in drawn for p in members],
            "totals": totals, "per_gpu": per_gpu, "name": "", "not_shown": missing,
            "headline": headline(rate, points, families, per_gpu)}


def headline(rate, points, families, per_gpu):
    """The highest, and splits whose intervals overlap its own."""
    best = max(points, key=lambda p: p["rate"])
    near = sorted((p for p in points if p["rate"] + p["half_width"] >= best["rate"] - best["half_width"]),
                  key=lambda p: -p["rate"])
    names = list(dict.fromkeys(f"{p['workers']}:{p['trainers']}" + (f" ({p['family']})" if len(families) > 1 else "")
                               for p in near))
    where = " and ".join(names if len(names) < 3 else [names[0], f"{len(names) - 1} others within their intervals"])
    return f"{RATES[rate]}{PER_GPU if per_gpu else ''}: highest at {where}, {number(best['rate'], 3)}"


def without_repeats(lines):
    """Lines of a family on top of each other (a buffer's size does not change the pace of full trainers) become one."""
    kept = []
    for name, members in lines:
        for other in kept:
            first = other[1]
            rates = {member["share"]: member["rate"] for member in first}
            if first[0]["family"] == members[0]["family"] != "" and all(
                    abs(m["rate"] - rates.get(m["share"], -1)) <= SAME * m["rate"] for m in members):
                other[2].append(name)
                break
        else:
            kept.append((name, members, [name]))
    named = []
    for name, members, names in kept:
        names.sort(key=natural_order)  # refined designs come last, whatever their values
        common = os.path.commonprefix(names) if len(names) > 1 else ""
        last = names[-1][common.rfind(" ") + 1:]
        if ", " in last:  # several numbers differ: with their names
            last = names[-1][common.rfind(", ") + 2:] if ", " in common else names[-1]
        text = name if len(names) == 1 else f"{names[0]} … {last}"
        named.append((text, [{**member, "line": text} for member in members]))
    return named


def natural_order(name):
    """Numbers by size, thousands separated or not."""
    return [float(part.replace(",", "")) if i % 2 else part
            for i, part in enumerate(re.split(r"(\d[\d,]*(?:\.\d+)?)", name))]


def line_name(design, families):
    if families == [""]:
        store = design["values"]
        return ("buffer of N = " if store.get("store.kind") == "replay_buffer" else "queue of ") \
            + value_text(store["store.capacity"])
    rest = [f"{symbol(path)} = {value_text(value)}" for path, value in design["values"].items()
            if path not in (WORKERS, TRAINERS) and distinguishes(path)]
    return ", ".join(([design["family"]] if len(families) > 1 or not rest else []) + rest)


def bound(design, workers, trainers, batch):
    """Rates at which either side alone would run when every rollout is used once.

    gamma = (1 + W/T) / (1 + mu) gives mu, and reserved GPU-s per update = gamma_simulated C (1 + mu) gives C, the
    trainer compute of an update. So workers allow W / (mu C) batches per second, trainers T / C updates.
    """
    if not all(has_metric(design, key) for key in (GAMMA, SIMULATED, RESERVED)):
        return {"worker_bound": None, "trainer_bound": None, "mu": None}
    mu = (1 + workers / trainers) / mean_and_spread(design, GAMMA)[0] - 1
    cost = mean_and_spread(design, RESERVED)[0] / mean_and_spread(design, SIMULATED)[0] / (1 + mu)
    return {"worker_bound": batch * workers / (mu * cost), "trainer_bound": batch * trainers / cost, "mu": mu}


def measured_rate(story, workers, trainers, rate):
    return rate / (workers + trainers) if story["per_gpu"] else rate


def read_measured(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            found = [(int(row["workers"]), int(row["trainers"]), float(row["per_second"]))
                     for row in csv.DictReader(file)]
    except OSError as error:
        raise BadInput(f"{path}: it cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: it needs whole numbers in columns workers and trainers and numbers in per_second "
                       f"({type(error).__name__}: {error})") from error
    if any(workers < 1 or trainers < 1 for workers, trainers, _ in found):
        raise BadInput(f"{path}: workers and trainers are at least 1")
    return found


def rows(story):
    rate = "per_second_and_gpu" if story["per_gpu"] else "per_second"
    yield "kind", "line", "workers", "trainers", "worker_share", rate, "half_width", "worker_bound", "trainer_bound"
    for p in story["points"]:
        yield ("simulated", p["line"], p["workers"], p["trainers"], p["share"], p["rate"], p["half_width"],
               p["worker_bound"], p["trainer_bound"])
    for workers, trainers, rate in story["measured"]:
        yield ("measured", None, workers, trainers, workers / (workers + trainers),
               measured_rate(story, workers, trainers, rate), None, None, None)


def draw(story):
    figure = new_figure(9.6, 6.0)
    some = f"; of {MOST_LINES + story['left_out']} lines the {MOST_LINES} highest are drawn"
    notes = [(f"{story['name']}; " if story["name"] else "") + "points: simulated, with 95 % intervals"
             + (some if story["left_out"] else "")
             + ("; ✕ measured" if story["measured"] else "")]
    curve = bound_curve(story)
    if curve:
        notes.append("dashed: what the slower side allows when every rollout is used once, min(W μr, T μt); reuse "
                     "lifts updates above it on the left")
    elif all(p["mu"] for p in story["points"]):
        notes.append("short lines: what the slower side of each design allows when every rollout is used once")
    if story["not_shown"]:
        notes.append(story["not_shown"])
    top = title(figure, story["title"], notes)
    longest = max(len(clipped(name, LONGEST_LABEL)) for name, _ in story["lines"])
    in_key = len(story["lines"]) + bool(story["measured"])
    columns = max(1, min(4, in_key, KEY_LETTERS // (longest + 8)))
    axes = figure.add_axes((0.085, 0.105, 0.88, top - 0.105 - 0.06 - 0.035 * (-(-in_key // columns) - 1)))
    axes.grid(axis="y", color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    shares = [p["share"] for p in story["points"]] + [w / (w + t) for w, t, _ in story["measured"]]
    margin = 0.08 * (max(shares) - min(shares)) or 0.05
    axes.set_xlim(max(0, min(shares) - margin), min(1, max(shares) + margin))
    highest = max([p["rate"] + p["half_width"] for p in story["points"]]
                  + [measured_rate(story, *m) for m in story["measured"]]
                  + [min(p["worker_bound"], p["trainer_bound"]) for p in story["points"] if p["mu"]]
                  + ([curve["peak"]] if curve else []))
    axes.set_ylim(0, 1.2 * highest)  # with room for the names of the regions
    if curve:
        draw_bound(axes, curve)
    elif all(p["mu"] for p in story["points"]):
        axes.plot([p["share"] for p in story["points"]],
                  [min(p["worker_bound"], p["trainer_bound"]) for p in story["points"]], "_", color=BLACK,
                  markersize=13, zorder=5, gid="bound")
    handles = []
    for i, (name, members) in enumerate(story["lines"]):
        colour, marker, dash = LOOKS[i]
        if not story["per_gpu"]:  # designs of several sizes do not follow each other
            axes.plot([p["share"] for p in members], [p["rate"] for p in members], color=colour, linewidth=1, alpha=0.6,
                      linestyle=dash, zorder=3)
        for p in members:
            mark = story["points"].index(p)
            if p["half_width"] > 0:
                axes.plot([p["share"]] * 2, [p["rate"] - p["half_width"], p["rate"] + p["half_width"]], color=colour,
                          linewidth=1.3, zorder=3, gid=f"whisker-{mark}")
            axes.plot(p["share"], p["rate"], marker, color=colour, markersize=8, zorder=4, gid=f"mark-{mark}",
                      markeredgecolor="white", clip_on=False)
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle=dash, linewidth=1, markersize=8,
                              label=clipped(name, LONGEST_LABEL)))
    for i, (workers, trainers, rate) in enumerate(story["measured"]):
        axes.plot(workers / (workers + trainers), measured_rate(story, workers, trainers, rate), "x", color=BLACK,
                  markersize=9, markeredgewidth=2, zorder=5, gid=f"mark-{len(story['points']) + i}")
    if story["measured"]:
        handles.append(Line2D([], [], color=BLACK, marker="x", linestyle="none", markersize=8, markeredgewidth=2,
                              label="measured"))
    split_ticks(axes, story)
    gpus = f"{story['totals'][0]} to {story['totals'][-1]}" if story["per_gpu"] else story["totals"][0]
    axes.set_xlabel(f"W : T, workers and trainers of {gpus} GPUs")
    plain_ticks(axes.yaxis)
    axes.set_ylabel(RATES[story["rate"]] + (PER_GPU if story["per_gpu"] else ""))
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.034, top + 0.025), ncol=columns,
                  frameon=False, fontsize=9, columnspacing=1.4, handlelength=2.6)
    return figure


def split_ticks(axes, story):
    named = {}
    for workers, trainers in sorted([(p["workers"], p["trainers"]) for p in story["points"]]
                                    + [m[:2] for m in story["measured"]], key=lambda m: (m[0] + m[1], m)):
        named.setdefault(workers / (workers + trainers), f"{workers}:{trainers}")
    low, high = axes.get_xlim()
    kept = []
    for share in sorted(named):
        if not kept or share - kept[-1] > 0.045 * (high - low):
            kept.append(share)
    axes.set_xticks(kept, [named[share] for share in kept])


def bound_curve(story):
    """Where all designs agree on mu, C and the number of GPUs, the bound is one curve over the share of workers."""
    known = [p for p in story["points"] if p["mu"] is not None and p["mu"] > 0]
    if len(known) != len(story["points"]):
        return None
    size = (lambda p: p["workers"] + p["trainers"]) if story["per_gpu"] else (lambda p: 1)
    per_worker = [p["worker_bound"] * size(p) / p["workers"] for p in known]
    per_trainer = [p["trainer_bound"] * size(p) / p["trainers"] for p in known]
    for rates in (per_worker, per_trainer):
        if max(rates) > 1.02 * min(rates):
            return None
    total = 1 if story["per_gpu"] else story["totals"][0]
    worker, trainer = sum(per_worker) / len(known), sum(per_trainer) / len(known)
    knee = trainer / (worker + trainer)
    return {"worker": total * worker, "trainer": total * trainer, "knee": knee, "peak": total * worker * knee,
            "mu": trainer / worker}


def draw_bound(axes, curve):
    low, high = axes.get_xlim()
    knee = curve["knee"]
    if low < knee:
        axes.axvspan(low, min(knee, high), color=SKY, alpha=0.16, linewidth=0, zorder=0)
    if high > knee:
        axes.axvspan(max(knee, low), high, color=ORANGE, alpha=0.16, linewidth=0, zorder=0)
    bends = [low] + ([knee] if low < knee < high else []) + [high]
    axes.plot(bends, [min(curve["worker"] * x, curve["trainer"] * (1 - x)) for x in bends], color=BLACK, linewidth=1.5,
              linestyle=(0, (5, 3)), zorder=2, gid="bound")
    words = axes.get_xaxis_transform()
    for start, end, text in ((low, min(knee, high), "rollout-bound where each is used once"),
                             (max(knee, low), high, "trainer-bound")):
        wide = end - start > 0.18 * (high - low)
        if end - start > 0.08 * (high - low):
            label = text if wide else text.split(" ")[0].replace("-", "-\n")
            axes.text((start + end) / 2, 0.98, label, transform=words, ha="center", va="top", color=GREY,
                      style="italic", size=11)
    if low < knee < high:
        axes.plot([knee, knee], [0, curve["peak"]], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        left = knee - low > high - knee
        axes.annotate(f"knee: W/T = μ = {number(curve['mu'], 3)}", (knee, 0.62 * curve["peak"]), (-8 if left else 8, 0),
                      textcoords="offset points", ha="right" if left else "left", va="center", size=9.5)
