"""What all figures share: colours, type, numbers, names of metrics, reading, and files that come out the same twice."""
import csv
import json
import math
import os
import sys
import textwrap

try:
    import matplotlib
except ImportError as error:
    sys.exit(f"millrace: error: figures need matplotlib for {sys.executable} ({error}):\n"
             "    apt-get install --no-install-recommends python3-matplotlib")

matplotlib.use("Agg")
matplotlib.rcdefaults()  # nobody's own style file: equal results give equal bytes
# Names are not formulas ($), and text becomes outlines, so that the SVG looks the same without these fonts.
matplotlib.rcParams.update({"text.parse_math": False, "svg.hashsalt": "millrace", "font.size": 10,
                            "hatch.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False})
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox

# Okabe and Ito's colours; each meaning also has a marker, a dash or a hatch of its own.
BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
BLACK, GREY, PALE = "#000000", "#595959", "#E5E5E5"
# Families and lines, in order: colour, marker, dash.
LOOKS = [(BLUE, "o", "-"), (VERMILION, "s", (0, (5, 2))), (GREEN, "^", (0, (1, 1.2))), (PURPLE, "D", (0, (6, 2, 1, 2))),
         (ORANGE, "v", (0, (3, 1, 1, 1, 1, 1))), (SKY, "P", (0, (8, 3))), (BLACK, "X", (0, (2, 2)))]

METRICS = {
    "compute/gamma": "Compute ratio γ, closed form",
    "compute/gamma_simulated": "Compute ratio γ",
    "trainers/busy": "Trainers busy, share of time",
    "workers/busy": "Workers busy, share of time",
    "compute/effective_mu": "Effective imbalance μ",
    "compute/active_gpu_s_per_update": "Active GPU-s per update",
    "compute/reserved_gpu_s_per_update": "Reserved GPU-s per update",
    "compute/reserved_gpu_s": "Compute, reserved GPU-s",
    "compute/active_gpu_s": "Compute, active GPU-s",
    "compute/units": "Compute, units (one unit = training of one batch)",
    "compute/usd_per_update": "USD per update",
    "learner/compute_budget": "Compute budget, units",
    "learner/compute_to_target": "Compute to the target, units",
    "learner/compute_spent": "Compute spent, units",
    "learner/entropy": "Entropy, nats per token",
    "learner/greedy": "Accuracy of greedy answers",
    "learner/pass@1": "pass@1",
    "learner/pass@4": "pass@4",
    "learner/pass@16": "pass@16",
    "noise/relative_compute_to_target": "Compute to target, relative to on-policy",
    "noise/relative_variance": "Gradient variance, relative to on-policy",
    "replay/mean": "Uses per rollout",
    "staleness/mean": "Mean staleness, policy versions",
    "staleness/p50": "Median staleness, policy versions",
    "staleness/p99": "99th percentile of staleness, policy versions",
    "time/update_period_s": "Time per update, s",
    "time/wall_s": "Simulated time, s",
    "update": "Updates",
}
# What the numbers on an axis are; where it is not said in the title.
ON_AXIS = {
    "compute/gamma_simulated": "Compute ratio γ: GPU-s per update, balanced pipeline without a buffer = 1",
    "compute/gamma": "Compute ratio γ, closed form, balanced pipeline without a buffer = 1",
    "noise/relative_variance": "Gradient variance, on-policy batch = 1",
    "noise/relative_compute_to_target": "Compute to target, on-policy pipeline = 1",
    "learner/pass@1": "pass@1, share of prompts solved",
}


class BadInput(Exception):
    """A file is not what it should be; the message names it. Exit code 3."""


class BadRequest(Exception):
    """The command line asks for what cannot be drawn. Exit code 2."""


def exit_code(program, work):
    """Does the work; what is wrong with its inputs becomes one line and millrace's exit code."""
    try:
        work()
    except BadInput as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 3
    except BadRequest as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{program}: error: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


# ---- reading --------------------------------------------------------------------------------------------------------


def load_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise BadInput(f"{path}: it cannot be read: {error.strerror}") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{path}: it is not JSON: {error}") from error


def load_result(path):
    result = load_json(path)
    if not isinstance(result, dict) or result.get("millrace_result") != 1:
        raise BadInput(f'{path}: it is not a result of millrace run: it has no "millrace_result": 1')
    return result


class Reading:
    """`with Reading(path):` turns whatever a damaged file does to the code inside into BadInput."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        damage = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
        if kind is not None and issubclass(kind, damage):
            raise BadInput(f"{self.path}: it is incomplete or damaged ({kind.__name__}: {error})") from error


def read_each(paths, most, given, take):
    """A label per result, and what `take` makes of each; a figure holds at most so many."""
    if len(paths) > most:
        raise BadRequest(f"a figure holds at most {most} results, not {len(paths)}")
    names, found = [], []
    for path in paths:
        result = load_result(path)
        with Reading(path):
            names.append(str(result["scenario"]["name"]))
            found.append(take(result))
    return distinct_names(paths, names, given), found


def distinct_names(paths, names, given):
    """A label per file: those given, else the names in the files, with the files' own names where those repeat."""
    if given and len(given) != len(paths):
        raise BadRequest(f"there are {len(paths)} files and {len(given)} labels: --label goes with each file, in order")
    if given:
        return list(given)
    stems = [os.path.splitext(os.path.basename(path))[0] for path in paths]
    return [name if names.count(name) == 1 else stem if stems.count(stem) == 1 else f"{stem} ({i + 1})"
            for i, (name, stem) in enumerate(zip(names, stems))]


# ---- words and numbers ----------------------------------------------------------------------------------------------


def number(value, digits=4):
    """`digits` significant ones, without an exponent in the range people read."""
    if abs(value) < 1e-12:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def estimate(mean, half_width):
    """1.787 ± 0.0013 as 1.7868 ± 0.0013: the mean to the last digit of its half width, of which there are two."""
    if not half_width or half_width < 1e-9 * abs(mean):
        return number(mean)
    places = 1 - math.floor(math.log10(half_width))
    if not 0 <= places <= 8 or abs(mean) >= 1e7:
        return f"{number(mean)} ± {number(half_width, 2)}"
    return f"{mean:.{places}f} ± {half_width:.{places}f}"


def short_number(value):
    """As number(), without zeros at the end and with thousands set apart: for labels and ticks."""
    text = number(value, 3) if abs(value) < 1000 else f"{value:,.0f}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def metric_title(key):
    return METRICS.get(key, key)


def axis_words(key):
    return ON_AXIS.get(key, metric_title(key))


def note(program, text):
    """Something a reader of the figure should know, on standard error too."""
    print(f"{program}: note: {text}", file=sys.stderr)


def clipped(text, longest):
    return text if len(text) <= longest else text[:longest - 2] + " …"


# ---- drawing --------------------------------------------------------------------------------------------------------


def new_figure(width, height):
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


HEAD, LINE = 0.29, 0.2  # inches between lines of a heading, and of what stands under it


def title(figure, heading, lines=(), left=0.04):
    """A heading and what must be known to read the figure, under each other from the top left. Returns where, as a
    share of the figure's height, room for axes begins."""
    height = figure.get_figheight()
    heads, lines = title_lines(figure.get_figwidth(), heading, lines)
    for i, head in enumerate(heads):
        figure.text(left, 1 - (0.38 + HEAD * i) / height, head, size=15, weight="bold")
    below = 0.64 + HEAD * (len(heads) - 1)
    for i, line in enumerate(lines):
        figure.text(left, 1 - (below + LINE * i) / height, line, color=GREY, size=9.5)
    return 1 - title_height(figure.get_figwidth(), heading, lines) / height


def title_lines(width, heading, lines):
    """At most two of the heading, and the others, as they fit into so many inches."""
    return (textwrap.wrap(heading, int(7.9 * width), max_lines=2, placeholder=" …") or [""],
            [part for line in lines for part in textwrap.wrap(line, int(13.2 * width))])


def title_height(width, heading, lines):
    """What title() takes of the figure, in inches."""
    heads, lines = title_lines(width, heading, lines)
    return 0.85 + HEAD * (len(heads) - 1) + LINE * len(lines)


def text_size(figure, text, **style):
    """Width and height in pixels."""
    probe = figure.text(0, 0, text, **style)
    box = probe.get_window_extent(figure.canvas.get_renderer())
    probe.remove()
    return box.width, box.height


def plain_ticks(axis, log=False):
    """Numbers that people read: 0.5, 20, 4,096."""
    if log:
        low, high = sorted(axis.get_view_interval())
        decades = math.log10(high / low)
        axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if decades < 3 else (1,), numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def spread_out(wanted, height, low, high):
    """Places for boxes of `height` nearest to where they are `wanted`, apart from each other and inside low..high."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups = []  # [sum of (wanted - offset), members]: a group stands together, each a height above the one before
    for i in order:
        groups.append([wanted[i], [i]])
        while len(groups) > 1:
            (above, upper), (below, lower) = groups[-1], groups[-2]
            if below / len(lower) + height * len(lower) <= above / len(upper):
                break
            groups.pop()
            groups[-1] = [below + above - height * len(lower) * len(upper), lower + upper]
    places = [0.0] * len(wanted)
    for total, members in groups:
        for k, i in enumerate(members):
            places[i] = total / len(members) + height * k
    floor = low
    for i in order:  # inside, from the bottom up, then from the top down
        places[i] = max(places[i], floor)
        floor = places[i] + height
    ceiling = high
    for i in reversed(order):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - height
    return places


def label_ends(axes, ends, texts, colours, gap=16):
    """Writes each text to the right of the axes at the height of its line's end, apart from the others; `ends` are
    points in data coordinates, a thin leader joins each to its label. The labels' artists are returned."""
    figure = axes.figure
    pixels = axes.transData.transform(ends)
    height = 1.25 * max(text_size(figure, text, size=10)[1] for text in texts)
    box = axes.get_window_extent()
    places = spread_out([y for _, y in pixels], height, box.y0, box.y1)
    to_figure = figure.transFigure.inverted().transform
    right = box.x1 + gap
    written = []
    for (x, y), place, text, colour in zip(pixels, places, texts, colours):
        line = to_figure([(x + 5, y), (right - 4, place)])
        figure.add_artist(Line2D(line[:, 0], line[:, 1], color=colour, linewidth=0.8, alpha=0.7))
        at = to_figure((right, place))
        written.append(figure.text(*at, text, color=colour, va="center", size=10, weight="bold"))
    return written


def texts_of(figure):
    """(text, box in pixels) of everything written."""
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    axes_lines = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    undrawn = {label for axis in axes_lines for tick in axis.get_major_ticks() + axis.get_minor_ticks()
               if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
               for label in (tick.label1, tick.label2)}
    found = []
    for artist in figure.findobj(Text):
        if artist.get_visible() and artist.get_text().strip() and artist not in undrawn:
            box = artist.get_window_extent(renderer)
            if box.width > 0:
                found.append((artist, Bbox(box.get_points())))
    return found


# ---- files ----------------------------------------------------------------------------------------------------------


def save(figure, rows, stem, pdf=False):
    """STEM.svg, STEM.png and STEM.csv (the numbers drawn, a header first), and STEM.pdf if asked for."""
    figure.savefig(stem + ".svg", metadata={"Date": None, "Creator": "millrace"})
    figure.savefig(stem + ".png", metadata={"Software": "millrace"}, dpi=150)
    if pdf:
        figure.savefig(stem + ".pdf", metadata={"CreationDate": None, "Creator": "millrace", "Producer": "matplotlib"})
    with open(stem + ".csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
