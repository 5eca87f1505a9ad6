"""The Pareto frontier of a sweep: steps, intervals, and what is not decided yet."""
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

import conclusion
import labels
from designs import at_one_point, has_metric, label_key, load_folder, mean_and_spread, shared_label
from figure_style import (BLACK, GREY, LOOKS, PALE, BadRequest, axis_words, clipped, new_figure, plain_ticks, text_size,
                          title)

DOMINATED = 0.35  # opacity
WIDE = 8.0        # a span of more than this factor gets a logarithmic axis
MOST_LABELS = 60


def arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="folder of a sweep, after millrace pareto")
    parser.add_argument("--title", help="heading of the figure")


def make(options):
    story = tell(load_folder(options.folder))
    story["title"] = options.title or story["headline"]
    return draw(story), rows(story)


def tell(study):
    """The first two objectives; with a third, the frontier is one of space and has no staircase here."""
    objectives = study["objectives"]
    x, y = objectives[0]["metric"], objectives[1]["metric"]
    if len(study["families"]) > len(LOOKS):
        raise BadRequest(f"a figure holds at most {len(LOOKS)} families that can be told apart")
    drawn = [design for design in study["designs"] if has_metric(design, x) and has_metric(design, y)]
    if not drawn:
        raise BadRequest(f"no design has both {x} and {y}: there is nothing to draw")
    return {"name": str(study["name"]), "objectives": objectives, "x": x, "y": y, "families": study["families"],
            "designs": drawn, "failed": sum("error" in design for design in study["designs"]),
            "without": sum("error" not in design for design in study["designs"]) - len(drawn),
            "headline": conclusion.headline(study), "named": conclusion.named_in_headline(study),
            "noise": conclusion.assumes_noise([x, y, conclusion.target_metric(study["designs"])])}


def rows(story):
    paths = list(dict.fromkeys(path for design in story["designs"] for path in design["values"]))
    yield ["design", "family", "label", *paths, story["x"], story["x"] + " half_width", story["y"],
           story["y"] + " half_width", "replications", "membership", "on_front", "refined"]
    for design in story["designs"]:
        x, y = design["metrics"][story["x"]], design["metrics"][story["y"]]
        yield [design["design"], design["family"], design["label"], *(design["values"].get(path) for path in paths),
               x["mean"], x.get("half_width"), y["mean"], y.get("half_width"), design.get("replications"),
               design["membership"], str(design["on_front"]).lower(), str(design["refined"]).lower()]


def staircase(points, x_goal, y_goal, x_end, y_end):
    """Corners of the boundary of what `points` dominate, from worst y at the best x to worst x at the best y."""
    points = sorted(points, reverse=x_goal == "maximize")
    corners = [(points[0][0], y_end)]
    for i, (x, y) in enumerate(points):
        corners.append((x, y))
        corners.append((points[i + 1][0] if i + 1 < len(points) else x_end, y))
    return corners


def groups(story):
    """What has a staircase of its own, as (family's index or None for all, designs): families, where there are several,
    then the frontier of all."""
    own = [(i, [design for design in story["designs"] if design["family"] == name])
           for i, name in enumerate(story["families"])]
    return (own if len(own) > 1 else []) + [(None, [design for design in story["designs"] if design["on_front"]])]


def undominated(points, x_goal, y_goal):
    sx, sy = (1 if goal == "minimize" else -1 for goal in (x_goal, y_goal))
    front = []
    for x, y in sorted(set(points), key=lambda p: (sx * p[0], sy * p[1])):
        if not front or sy * y < sy * front[-1][1]:
            front.append((x, y))
    return front


def draw(story):
    figure = new_figure(10.4, 7.0)
    height = figure.get_figheight()
    counts = {kind: sum(design["membership"] == kind for design in story["designs"])
              for kind in ("in", "undecided", "out")}
    noise = f", {conclusion.NOISE_WORDS}" if story["noise"] else ""
    lines = [f"{story['name']}{noise}, {len(story['designs'])} designs: {counts['in']} on the frontier, "
             f"{counts['undecided']} undecided, {counts['out']} dominated"
             + (f"; {story['failed']} failed" if story["failed"] else "")
             + (f"; {story['without']} without these metrics" if story["without"] else "")
             + ". Whiskers: 95 % intervals"]
    front = [design for design in story["designs"] if design["on_front"]]
    key = label_key(front)
    lines += [f"Labels: {key}" + ("; bold: in the heading" if story["named"] else "")] if key else []
    if any(design["refined"] for design in story["designs"]):
        lines.append("thin rings: designs that the sweep added between those of its axes")
    third = story["objectives"][2:]
    if third:
        lines.append(f"A third objective, {third[0]['metric']} to {third[0]['goal']}, is not drawn: frontier points "
                     "may seem dominated here, and there is no staircase")
    top = title(figure, story["title"], lines)
    axes = figure.add_axes((0.085, 0.095, 0.875, top - 0.095 - 0.24 / height))
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    limits(axes, story)
    x_goal, y_goal = story["objectives"][0]["goal"], story["objectives"][1]["goal"]
    x_end = axes.get_xlim()[1 if x_goal == "minimize" else 0]
    y_end = axes.get_ylim()[1 if y_goal == "minimize" else 0]

    steps = []
    leading = set()  # positions on a staircase
    if not third:
        for family, members in groups(story):
            points = undominated([position(d, story)[0] for d in members], x_goal, y_goal)
            if not points:
                continue
            leading.update(points)
            corners = staircase(points, x_goal, y_goal, x_end, y_end)
            look = dict(color="#222222", linewidth=1.6, gid="staircase") if family is None else dict(
                color=LOOKS[family][0], linewidth=1.0, linestyle=LOOKS[family][2], gid=f"staircase-{family}", alpha=0.9)
            axes.plot(*zip(*corners), zorder=2.2 if family is None else 2.1, solid_joinstyle="miter", **look)
            steps.append(corners)
    for i, design in enumerate(story["designs"]):
        draw_design(axes, story, design, i, third or position(design, story)[0] in leading)
    axes.set_xlabel(axis_title(story, 0), size=11)
    axes.set_ylabel(axis_title(story, 1), size=11)
    better = draw_better(axes, x_goal, y_goal)
    draw_key(figure, story, top)
    figure.left_out = draw_labels(figure, axes, story, steps, better, x_goal, y_goal)
    if figure.left_out:
        figure.text(0.96, 0.012, f"{figure.left_out} labels left out for want of room", ha="right", color=GREY, size=8)
    return figure


def axis_title(story, k):
    metric, goal = story["objectives"][k]["metric"], story["objectives"][k]["goal"]
    return axis_words(metric) + (" (less is better)" if goal == "minimize" else " (more is better)")


def position(design, story):
    (x, dx), (y, dy) = mean_and_spread(design, story["x"]), mean_and_spread(design, story["y"])
    return (x, y), (dx, dy)


def limits(axes, story):
    """With more room on the better sides, where labels stand."""
    for key, goal, scale, limit, axis in (
            (story["x"], story["objectives"][0]["goal"], axes.set_xscale, axes.set_xlim, axes.xaxis),
            (story["y"], story["objectives"][1]["goal"], axes.set_yscale, axes.set_ylim, axes.yaxis)):
        below, above = (0.13, 0.05) if goal == "minimize" else (0.05, 0.13)
        means = [mean_and_spread(design, key) for design in story["designs"]]
        low, high = min(m - s for m, s in means), max(m + s for m, s in means)
        least = min(m for m, _ in means)
        if least > 0 and max(m for m, _ in means) > WIDE * least:
            low = max(low, least / 1.5)  # an interval that reaches zero leaves the figure
            span = high / low
            scale("log")
            limit(low / span**below, high * span**above)
            plain_ticks(axis, log=True)
        else:
            span = (high - low) or abs(high) or 1.0
            bottom = low - below * span
            limit(max(0.0, bottom) if least >= 0 else bottom, high + above * span)
            plain_ticks(axis)


def draw_design(axes, story, design, i, leads):
    """Undecided designs that lead neither all nor their family stay in the background: there may be many of them. Those
    that lead are rings, so that a design of the frontier in the same place is seen through them."""
    (x, y), (dx, dy) = position(design, story)
    colour, marker, _ = LOOKS[story["families"].index(design["family"])]
    out, undecided = design["membership"] == "out", design["membership"] == "undecided"
    behind = out or (undecided and not leads)
    alpha = DOMINATED if behind else 1.0
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    if dx > 0 or dy > 0:
        axes.plot([max(x - dx, left), x + dx, None, x, x], [y, y, None, max(y - dy, bottom), y + dy], color=colour,
                  linewidth=1.1, alpha=alpha, zorder=2.5 if behind else 3, gid=f"whisker-{i}")
    axes.plot(x, y, marker, color=colour, markersize=6.5 if behind else 8.5, alpha=alpha,
              zorder=2.6 if behind else 4.3 if undecided else 4.2,
              markerfacecolor="none" if undecided else colour, markeredgewidth=1.6 if undecided else 0.8,
              markeredgecolor=colour if undecided else "white", gid=f"mark-{i}")
    if design["refined"]:
        axes.plot(x, y, "o", color="none", markersize=14, markeredgecolor=GREY, markeredgewidth=0.9, zorder=2.4,
                  fillstyle="none", gid=f"refined-{i}")


def draw_better(axes, x_goal, y_goal):
    """An arrow into the corner where a design would be best, and the boxes it takes."""
    x, dx = (0.02, 0.055) if x_goal == "minimize" else (0.98, -0.055)
    y, dy = (0.03, 0.075) if y_goal == "minimize" else (0.97, -0.075)
    axes.annotate("", (x, y), (x + dx, y + dy), xycoords="axes fraction",
                  arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1.6, "mutation_scale": 16})
    word = axes.text(x + 1.1 * dx, y + dy, "better", transform=axes.transAxes, color=GREY, size=11, style="italic",
                     va="bottom" if dy > 0 else "top", ha="left" if dx > 0 else "right")
    corners = axes.transAxes.transform([(x, y), (x + dx, y + dy)])
    return [Bbox([corners.min(axis=0), corners.max(axis=0)]), word.get_window_extent(axes.figure.canvas.get_renderer())]


def draw_key(figure, story, top):
    several = len(story["families"]) > 1
    handles = [Line2D([], [], color=LOOKS[i][0], marker=LOOKS[i][1], linestyle=LOOKS[i][2] if several else "none",
                      linewidth=1, markersize=8, label=clipped(name, 30)) for i, name in enumerate(story["families"])]
    kinds = {design["membership"] for design in story["designs"]}
    hollow = {"color": "#222222", "markerfacecolor": "none", "markeredgewidth": 1.6}
    for kind, text, style in (("in", "on the frontier", {"color": "#222222"}), ("undecided", "undecided", hollow),
                        ("out", "dominated", {"color": "#222222", "alpha": DOMINATED})):
        if kind in kinds:
            handles.append(Line2D([], [], marker="o", linestyle="none", markersize=7, label=text, **style))
    if not story["objectives"][2:]:
        handles.append(Line2D([], [], color="#222222", linewidth=1.6,
                              label="frontier of all" if several else "frontier"))
    columns = min(len(handles), -(-len(handles) // (1 if sum(len(h.get_label()) + 8 for h in handles) < 130 else 2)))
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.034, top + 0.035), ncol=columns, frameon=False,
                  fontsize=9, handletextpad=0.5, columnspacing=1.4, handlelength=2.6)


def draw_labels(figure, axes, story, steps, better, x_goal, y_goal):
    """Of the frontier's points only, one for all designs at the same point. Returns how many found no place."""
    front = [design for design in story["designs"] if design["on_front"]]
    front.sort(key=lambda design: (position(design, story)[0], design["design"]))
    front = at_one_point(front, [story["x"], story["y"]])
    count = len(front)
    front = front[::-(-count // MOST_LABELS) or 1]  # of very many, every second or third along the frontier
    left_out = count - len(front)
    pixels = axes.transData.transform([position(design, story)[0] for design in story["designs"]])
    obstacles = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in pixels] + 3 * better
    points = [tuple(axes.transData.transform(position(some[0], story)[0])) for some in front]
    stairs = [[tuple(corner) for corner in axes.transData.transform(corners)] for corners in steps]
    towards = (-1 if x_goal == "minimize" else 1, -1 if y_goal == "minimize" else 1)
    texts = [shared_label(some) or some[0]["family"] for some in front]
    # By what is written: designs that differ in how long they ran have one label.
    named = {(one["family"], one["label"]) for one in story["designs"] if one["design"] in story["named"]}
    bold = {shared_label(some) for some in front if {(one["family"], one["label"]) for one in some} & named}

    def weight(text):
        return "bold" if text in bold else "normal"

    placed, unplaced = labels.place(points, texts, lambda text: text_size(figure, text, size=9, weight=weight(text)),
                                    obstacles,
                                    [line for corners in stairs for line in zip(corners, corners[1:])],
                                    axes.get_window_extent().padded(-3), towards)
    back = axes.transData.inverted().transform
    for i, (text, box, leaders) in enumerate(placed):
        for start, end in leaders:
            if (start[0] - end[0]) ** 2 + (start[1] - end[1]) ** 2 > 12**2 or len(leaders) > 1:
                line = back([start, end])
                axes.plot(line[:, 0], line[:, 1], color=GREY, linewidth=0.7, zorder=3.5, gid=f"leader-{i}")
        axes.text(*back((box.x0, box.y0)), text, size=9, color=BLACK, va="bottom", ha="left", gid=f"label-{i}",
                  weight=weight(text), zorder=5,
                  path_effects=[withStroke(linewidth=2.2, foreground="white")])  # legible over lines
    return left_out + unplaced
