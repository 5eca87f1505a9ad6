"""Staleness, uses and last use of rollouts: one row of small histograms per result, on common axes."""
from matplotlib.ticker import MaxNLocator

from figure_style import BLACK, BLUE, GREY, VERMILION, clipped, new_figure, number, read_each, title

# key under `histograms`, title, what is counted, what stands on the x-axis, what it means when nothing was counted
KINDS = [
    ("staleness", "Staleness", "samples", "policy versions from creation to use", "nothing was trained on"),
    ("replay_count", "Uses of a rollout", "rollouts", "uses until it left the store", "no rollout left the store"),
    ("steps_since_last_use", "Since the previous use", "reused samples", "updates since it was last used",
     "no rollout was used twice"),
]
MOST_BARS, MOST_RESULTS = 40, 8


def arguments(parser):
    parser.add_argument("results", nargs="+", metavar="RESULT.json", help="result of millrace run")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="name of a row, in the order of the files; repeatable")
    parser.add_argument("--title", default="How old rollouts are, and how often they are used",
                        help="heading of the figure")


def make(options):
    story = tell(options.results, options.label)
    return draw(story, options.title), rows(story)


def tell(paths, given=()):
    names, counts = read_each(paths, MOST_RESULTS, given, lambda result: [
        [int(n) for n in result["histograms"][kind[0]]["counts"]] for kind in KINDS])
    longest = [max(len(one[k]) for one in counts) for k in range(len(KINDS))]
    widths = [bar_width(n) for n in longest]
    panels = [[summary(one[k], widths[k]) for k in range(len(KINDS))] for one in counts]
    return {"labels": names, "panels": panels, "widths": widths, "longest": longest}


def bar_width(values):
    """The narrowest of 1, 2, 5, 10, 20, ... values per bar that leaves a readable number of bars."""
    return next(w * 10**e for e in range(18) for w in (1, 2, 5) if values <= MOST_BARS * w * 10**e)


def summary(counts, width):
    total = sum(counts)
    if total == 0:
        return None
    running, p95 = 0, 0
    for p95, count in enumerate(counts):
        running += count
        if running >= 0.95 * total:
            break
    return {"bars": [(first, first + width - 1, sum(counts[first:first + width]) / total)
                     for first in range(0, len(counts), width)],
            "mean": sum(value * count for value, count in enumerate(counts)) / total, "p95": p95}


def rows(story):
    yield "label", "histogram", "series", "from", "to", "value"
    for label, panels in zip(story["labels"], story["panels"]):
        for kind, panel in zip(KINDS, panels):
            for first, last, share in panel["bars"] if panel else ():
                yield label, kind[0], "share", first, last, share
            for series in ("mean", "p95") if panel else ():
                yield label, kind[0], series, None, None, panel[series]


def draw(story, heading):
    count = len(story["labels"])
    width, height = 12.0, 1.9 + 1.75 * count
    figure = new_figure(width, height)
    top = title(figure, heading, ["share of what was counted after the warm-up; ▾ mean, dashed: 95 % are at most this"])
    bottom, each = 0.62 / height, (top - 0.1 / height - 0.62 / height) / count
    bar = 0
    for row, (label, panels) in enumerate(zip(story["labels"], story["panels"])):
        base = bottom + (count - 1 - row) * each
        figure.text(0.04, base + each - 0.30 / height, clipped(label, 60), weight="bold", size=10.5)
        for k, (panel, kind) in enumerate(zip(panels, KINDS)):
            axes = figure.add_axes((0.045 + 0.318 * k, base + 0.1 / height, 0.285, each - 0.78 / height))
            if row == 0:
                figure.text(0.045 + 0.318 * k, top, f"{kind[1]}, % of {kind[2]}", size=10.5,
                                 color=GREY)
            if panel is None:
                axes.set(facecolor="#F2F2F2", xticks=[], yticks=[])
                axes.spines[:].set_visible(False)
                axes.text(0.5, 0.5, "none: " + kind[4], transform=axes.transAxes, color=GREY, ha="center", va="center")
                if row == count - 1:
                    axes.set_xlabel(kind[3], size=9)
                continue
            step = story["widths"][k]
            for first, last, share in panel["bars"]:
                axes.bar((first + last) / 2, 100 * share, 0.85 * step, color=BLUE, gid=f"bar-{bar}")
                bar += 1
            highest = 100 * max(share for _, _, share in panel["bars"])
            axes.axvline(panel["p95"], color=VERMILION, linewidth=1.4, linestyle=(0, (4, 2)))
            axes.plot(panel["mean"], 1.08 * highest, "v", color=BLACK, markersize=6, clip_on=False)
            # Above instead of at the marks, where the two would collide when mean and p95 are near.
            axes.text(0.62, 1.12, f"▾ {number(panel['mean'], 3)}", transform=axes.transAxes, size=9)
            axes.text(0.82, 1.12, f"- - p95 {panel['p95']}", transform=axes.transAxes, size=9, color=VERMILION)
            axes.set(xlim=(-0.6, max(story["longest"][k] - 1, 3) + step / 2 + 0.1), ylim=(0, 1.12 * highest))
            axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            axes.tick_params(labelsize=9, labelbottom=row == count - 1)
            if row == count - 1:
                axes.set_xlabel(kind[3] + (f" (bars of {step})" if step > 1 else ""), size=9)
    return figure
