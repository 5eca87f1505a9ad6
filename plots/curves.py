"""Learning curves: a metric of the learner against compute, median and quartiles over seeds, a line per file."""
import numpy

from figure_style import (GREY, LOOKS, PALE, BadInput, BadRequest, Reading, clipped, distinct_names, label_ends,
                          load_json, metric_title, new_figure, plain_ticks, short_number, text_size, title)


def arguments(parser):
    parser.add_argument("results", nargs="+", metavar="RESULT.json",
                        help="result of millrace run with a learner, or of millrace learn")
    parser.add_argument("--metric", action="append", help="what to draw (learner/pass@1); repeatable: a panel for each")
    parser.add_argument("--against", metavar="KEY", help="x-axis: compute/units, compute/reserved_gpu_s, "
                        "time/wall_s or update (compute/units where there is one)")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="name of a line, in the order of the files; repeatable")
    parser.add_argument("--smooth", type=int, default=1, metavar="N",
                        help="mean of N successive evaluations of a seed, of fewer at the ends of its curve "
                        "(%(default)s)")
    parser.add_argument("--target", type=float, metavar="VALUE",
                        help="draw a level, and say where medians first reach it")
    parser.add_argument("--title", help="heading of the figure")


def make(options):
    if options.smooth < 1:
        raise BadRequest("--smooth takes a whole number of at least 1")
    if len(options.results) > len(LOOKS):
        raise BadRequest(f"at most {len(LOOKS)} curves can be told apart in a figure, not {len(options.results)}")
    results = [(path, load_json(path)) for path in options.results]
    against = options.against
    metrics = options.metric or ["learner/pass@1"]
    names, panels = [], [[] for _ in metrics]
    for path, result in results:
        with Reading(path):
            seeds = seeds_of(path, result)
            if against is None:
                against = "compute/units" if "compute/units" in seeds[0] else "update"
            for key in (against, *metrics):
                if key not in seeds[0]:
                    known = ", ".join(k for k in seeds[0] if "/" in k or k == "update")
                    raise BadRequest(f"{path} has no curve of {key}; it has {known}")
            names.append(str(result["scenario" if "scenario" in result else "settings"]["name"]))
            for lines, metric in zip(panels, metrics):
                lines.append(quartiles(path, seeds, against, metric, options.smooth))
    story = {"labels": distinct_names(options.results, names, options.label), "panels": list(zip(metrics, panels)),
             "against": against, "smooth": options.smooth, "target": options.target, "title": options.title}
    return draw(story), rows(story)


def seeds_of(path, result):
    """One dictionary of columns per seed, whichever command wrote the file."""
    if isinstance(result, dict) and "learner" in result and "seeds" in result["learner"]:
        return [seed["curve"] for seed in result["learner"]["seeds"]]
    if isinstance(result, dict) and "curves" in result:
        curves = result["curves"]
        count = next(len(column) for key, column in curves.items() if key != "update")
        return [{key: column if key == "update" else column[i] for key, column in curves.items()} for i in range(count)]
    raise BadInput(f"{path}: it holds no learning curves: it is not the result of a run with a learner")


def quartiles(path, seeds, against, metric, smooth):
    """x, quartiles 1 to 3 and the number of seeds. Seeds are evaluated at points of their own where updates take random
    times; they are compared on the points of the first, by linear interpolation, as far as all of them reach."""
    curves = []
    for seed in seeds:
        points = [(float(x), float(y)) for x, y in zip(seed[against], seed[metric]) if x is not None and y is not None]
        if points:
            curves.append(smoothed(*numpy.array(points).T, smooth))
    if not curves:
        raise BadInput(f"{path}: no seed has a value of {metric}")
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    grid = curves[0][0]
    inside = grid[(grid >= low) & (grid <= high)]
    grid = numpy.unique(numpy.concatenate([inside, [low, high]])) if low <= high else inside
    if len(grid) == 0:
        raise BadInput(f"{path}: its seeds have no range of {against} in common")
    values = numpy.array([numpy.interp(grid, x, y) for x, y in curves])
    return {"x": grid, "quartiles": numpy.percentile(values, [25, 50, 75], axis=0), "seeds": len(curves)}


def smoothed(x, y, count):
    """Means of `count` successive evaluations, each at the mean of their places. At both ends of the curve the window
    shrinks to the single evaluation there, so that a curve begins and ends where its run did."""
    window = numpy.ones(min(count, len(x)))
    inside = numpy.convolve(numpy.ones(len(x)), window)  # how many of the window's evaluations there are
    return numpy.convolve(x, window) / inside, numpy.convolve(y, window) / inside


def reached(line, target):
    """Where the median first reaches the target, by linear interpolation; None where it never does."""
    x, median = line["x"], line["quartiles"][1]
    for i, value in enumerate(median):
        if value >= target:
            if i == 0:
                return float(x[0])
            return float(x[i - 1] + (target - median[i - 1]) / (value - median[i - 1]) * (x[i] - x[i - 1]))
    return None


def rows(story):
    yield "label", story["against"], "metric", "median", "quartile_1", "quartile_3", "seeds"
    for metric, lines in story["panels"]:
        for label, line in zip(story["labels"], lines):
            for x, first, median, third in zip(line["x"], *line["quartiles"]):
                yield label, float(x), metric, float(median), float(first), float(third), line["seeds"]


def draw(story):
    """A panel per metric beside each other; the names of the lines stand at the ends of the last one."""
    panels = story["panels"]
    figure = new_figure(9.6 + 5.6 * (len(panels) - 1), 5.6)
    counts = sorted({line["seeds"] for _, lines in panels for line in lines})
    seeds = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    subtitle = "one seed per line" if counts == [1] else f"median of {seeds}, shaded from first to third quartile"
    if story["smooth"] > 1:
        subtitle += f"; each point the mean of {story['smooth']} evaluations, of fewer at the ends"
    if story["target"] is not None:
        subtitle += f"; hollow: the median first reaches {short_number(story['target'])}"
    top = title(figure, story["title"] or ", ".join(metric_title(metric) for metric, _ in panels), [subtitle])

    texts = []
    for label, line in zip(story["labels"], panels[-1][1]):
        text = clipped(label, 40)
        if story["target"] is not None:
            at = reached(line, story["target"])
            text += f"\n  {short_number(story['target'])} " + (f"at {short_number(at)}" if at is not None else "never")
        texts.append(text)
    left = 0.085 * 9.6 / figure.get_figwidth()
    widest = max(text_size(figure, text, size=10, weight="bold")[0] for text in texts) / figure.bbox.width
    right = max(0.5, 1 - widest - 0.045)
    width = (right - left - left * (len(panels) - 1)) / len(panels)
    for i, (metric, lines) in enumerate(panels):
        axes = figure.add_axes((left + i * (width + left), 0.115, width, top - 0.115))
        draw_panel(axes, lines, story, f"{i}-" if i > 0 else "")
        if story["title"] or len(panels) > 1:  # otherwise the heading says it
            axes.set_ylabel(metric_title(metric))
    ends = [(line["x"][-1], line["quartiles"][1][-1]) for line in panels[-1][1]]
    label_ends(axes, ends, texts, [look[0] for look in LOOKS[:len(texts)]])
    return figure


def draw_panel(axes, lines, story, panel):
    """`panel` begins the number in the ids of marks, so that each mark has its own."""
    axes.grid(axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    for i, line in enumerate(lines):
        colour, marker, dash = LOOKS[i]
        first, median, third = line["quartiles"]
        if line["seeds"] > 1:
            axes.fill_between(line["x"], first, third, color=colour, alpha=0.18, linewidth=0, gid=f"band-{panel}{i}")
        axes.plot(line["x"], median, color=colour, linestyle=dash, linewidth=2, gid=f"line-{panel}{i}")
        axes.plot(line["x"][-1], median[-1], marker, color=colour, markersize=6, gid=f"end-{panel}{i}", clip_on=False,
                  zorder=4)
    if story["target"] is not None:
        axes.axhline(story["target"], color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))
        for i, line in enumerate(lines):
            at = reached(line, story["target"])
            if at is not None:
                axes.plot(at, story["target"], LOOKS[i][1], color=LOOKS[i][0], markerfacecolor="white", markersize=7,
                          zorder=4, gid=f"target-{panel}{i}")
    axes.set_xlim(0, max(line["x"][-1] for line in lines))
    axes.set(xlabel=metric_title(story["against"]))
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.margins(y=0.06)
