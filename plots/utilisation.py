"""What workers and trainers do with their time, stacked to 100 % per role."""
from matplotlib.patches import Patch

from figure_style import BLUE, GREY, ORANGE, PURPLE, SKY, clipped, new_figure, read_each, title

# Colour and hatch say what a GPU waits for: weights, room in the store, or the other role.
WEIGHTS, ROOM, OTHERS = (ORANGE, "////"), (PURPLE, "xxxx"), (SKY, "....")
ROLES = [
    ("workers", [("busy", (BLUE, "")), ("paused", WEIGHTS), ("blocked", ROOM), ("starved", OTHERS)]),
    ("trainers", [("busy", (BLUE, "")), ("stalled", WEIGHTS), ("waiting", OTHERS)]),
]
MEANING = [("busy", (BLUE, "")), ("waits for weights", WEIGHTS), ("waits for room in the store", ROOM),
           ("waits for rollouts, or may start none", OTHERS)]
MOST_RESULTS = 20


def arguments(parser):
    parser.add_argument("results", nargs="+", metavar="RESULT.json", help="result of millrace run")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="name of a pair of bars, in the order of the files; repeatable")
    parser.add_argument("--title", default="What the GPUs do", help="heading of the figure")


def make(options):
    story = tell(options.results, options.label)
    return draw(story, options.title), rows(story)


def tell(paths, given=()):
    labels, bars = read_each(paths, MOST_RESULTS, given, lambda result: [
        (role, int(result["scenario"][role]["count"]),
         [(state, float(result["metrics"][f"{role}/{state}"]["mean"]),
           result["metrics"][f"{role}/{state}"].get("half_width"), look) for state, look in states])
        for role, states in ROLES])
    return {"labels": labels, "bars": bars}


def rows(story):
    yield "label", "role", "count", "state", "share", "half_width"
    for label, roles in zip(story["labels"], story["bars"]):
        for role, count, states in roles:
            for state, share, spread, _ in states:
                yield label, role, count, state, share, spread


def draw(story, heading):
    count = len(story["labels"])
    width, height = 10.0, 1.95 + 0.86 * count
    figure = new_figure(width, height)
    top = title(figure, heading, ["share of time after the warm-up, mean over replications"])
    axes = figure.add_axes((0.2, 0.5 / height, 0.76, top - 0.22 / height - 0.5 / height))
    axes.set(xlim=(0, 100), ylim=(count - 0.28, -0.62))
    mark = 0
    for i, (label, roles) in enumerate(zip(story["labels"], story["bars"])):
        axes.text(0, i - 0.44, clipped(label, 90), weight="bold", va="center", size=10)
        for k, (role, number_of, states) in enumerate(roles):
            y, left = i - 0.18 + 0.31 * k, 0.0
            axes.text(-1.2, y, f"{number_of} {role if number_of != 1 else role[:-1]}", ha="right", va="center",
                      color=GREY)
            for state, share, _, (colour, hatch) in states:
                axes.barh(y, 100 * share, 0.27, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8,
                          gid=f"bar-{mark}")
                if share > 0.075:
                    box = None if not hatch else {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
                    axes.text(left + 50 * share, y, f"{100 * share:.0f} %", ha="center", va="center", size=9,
                              color="black" if hatch else "white", bbox=box)
                left += 100 * share
                mark += 1
    axes.set(yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("% of time", labelpad=1)
    figure.legend(handles=[Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=text)
                           for text, (colour, hatch) in MEANING],
                  loc="upper left", bbox_to_anchor=(0.034, top + 0.2 / height), ncol=4, frameon=False, fontsize=9,
                  handletextpad=0.5, columnspacing=1.4)
    return figure
