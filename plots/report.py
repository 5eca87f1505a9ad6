#!/usr/bin/python3
"""Makes one HTML file of a sweep:  report.py DIR [RESULT.json ...]  writes DIR/report.html. As millrace report does.

The file holds everything it needs (plotly.js from the Debian package, report.js, report.css, figures as SVG) and asks
for nothing from a network. Equal inputs give equal bytes. Exit codes as millrace's: 0 done, 2 usage, 3 bad input file.
"""
import argparse
import html
import io
import json
import math
import os
import re
import sys

from figure_style import (BLACK, LOOKS, BadRequest, estimate, exit_code, load_result, metric_title, new_figure, note,
                          number)

import commands
import conclusion
import designs
import heatmap
import histograms
import pareto
import split
import utilisation

try:
    from plotly.offline import get_plotlyjs  # what include_plotlyjs=True puts into a page
except ImportError as error:
    sys.exit(f"millrace: error: the report needs plotly for {sys.executable} ({error}):\n"
             "    apt-get install --no-install-recommends python3-plotly")

HERE = os.path.dirname(os.path.abspath(__file__))
SYMBOLS = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
           "P": "cross", "X": "x"}
DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "dash"]
WORDS = {"in": "on the frontier", "undecided": "undecided", "out": "dominated"}
# Shown beside the objectives where designs have them.
OFTEN_WANTED = ["learner/compute_to_target", "compute/gamma_simulated", "compute/usd_per_update",
                "noise/relative_compute_to_target", "staleness/mean", "replay/mean", "time/update_period_s"]


def main(words):
    parser = argparse.ArgumentParser(prog="millrace report", description="Makes one HTML file of a sweep that works "
                                     "without a network: frontier, heat map, table of all designs, figures.")
    parser.add_argument("folder", metavar="DIR", help="folder of a sweep, after millrace pareto")
    parser.add_argument("results", nargs="*", metavar="RESULT.json",
                        help="results of millrace run whose histograms and utilisation are shown too")
    parser.add_argument("--out", metavar="FILE", help="file to write (DIR/report.html)")
    options = parser.parse_args(words)
    out = options.out or os.path.join(options.folder, "report.html")

    def work():
        study = designs.load_folder(options.folder)
        how = commands.Commands(study, os.path.normpath(options.folder))
        text = page(study, options.results, how)
        how.write()
        with open(out + ".part", "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(out + ".part", out)

    return exit_code("millrace report", work)


# ---- what it says ---------------------------------------------------------------------------------------------------


def summary(study):
    """How many designs there are of each kind."""
    counts = {kind: sum(one.get("membership") == kind for one in study["designs"]) for kind in WORDS}
    failed = sum("error" in one for one in study["designs"])
    refined = sum(one["refined"] for one in study["designs"])
    return (f"{len(study['designs'])} designs: {counts['in']} on the frontier, {counts['undecided']} undecided, "
            f"{counts['out']} dominated" + (f", {failed} failed" if failed else "") + "."
            + (f" Added by the sweep itself: {refined}." if refined else ""))


def volumes(study):
    """What the frontiers enclose."""
    whole = study.get("hypervolume") or {}
    parts = [volume_text("together", whole)] if whole.get("value") is not None else []
    parts += [volume_text(name, volume) for name, volume in (study.get("family_hypervolumes") or {}).items()
              if volume and volume.get("value") is not None and len(study["families"]) > 1]
    if not parts:
        return ""
    point = ", ".join(f"{metric_title(one['metric'])} = {number(value)}" for one, value
                      in zip(study["objectives"], study.get("reference_point") or []))
    return "Hypervolume" + (f" up to {point}" if point else "") + ": " + "; ".join(parts) + "."


def volume_text(name, volume):
    if volume.get("half_width") is not None and volume.get("mean") is not None:
        return f"{name} {estimate(volume['mean'], volume['half_width'])}"
    return f"{name} {number(volume['value'])}" + (f" ({volume['note']})" if volume.get("note") else "")


# ---- what the script gets -------------------------------------------------------------------------------------------


def script_data(study, story, map_story, how):
    twins = ties(story)
    keys = [one["metric"] for one in study["objectives"]]
    known = designs.known_metrics(study["designs"])
    shown = keys + [key for key in OFTEN_WANTED if key in known and key not in keys]
    return {
        "axes": [axis(story, k) for k in (0, 1)],
        "better": [-1 if one["goal"] == "minimize" else 1 for one in study["objectives"][:2]],
        "families": study["families"],
        "looks": [{"colour": colour if colour != BLACK else "#000000", "symbol": SYMBOLS[marker], "dash": DASHES[i]}
                  for i, (colour, marker, _) in enumerate(LOOKS)],
        "noise": conclusion.capital(conclusion.NOISE_WORDS) + ".",
        "words": WORDS, "shown": shown, "titles": {key: metric_title(key) for key in known + keys},
        "paths": list(dict.fromkeys(path for one in study["designs"] for path in one["values"]
                                    if designs.distinguishes(path))),
        "hovered": list(dict.fromkeys(path for one in study["designs"] for path in one["values"])),
        "staircases": staircases(story),
        "heat": None if map_story is None else {
            "columns": [column[2] for column in map_story["columns"]],
            "lines": [line[2] for line in map_story["lines"]],
            "x": "W : T, workers : trainers" if map_story["x"] == heatmap.SPLIT
                 else heatmap.axis_name(map_story["x"]),
            "maximize": [key for key in known if conclusion.goal_of(key, study["objectives"]) == "maximize"],
            "y": heatmap.axis_name(map_story["y"])},
        "designs": [{"design": one["design"], "family": one["family"], "label": one["label"], "values": one["values"],
                     "set": one["set"], "replications": one.get("replications"), "command": how.by_set(one),
                     "cell": cell(one, map_story), **({"file": how.by_file(one)} if how.by_file(one) else {}),
                     **({"refined": True} if one["refined"] else {}),
                     **({"ties": twins[one["design"]]} if one["design"] in twins else {}),
                     **({"error": str(one["error"])} if "error" in one else {
                         "membership": one["membership"],
                         "metrics": {key: [metric["mean"], metric.get("half_width")]
                                     for key, metric in one["metrics"].items()}})}
                    for one in study["designs"]],
    }


def ties(story):
    """By design on the frontier: how many there are at its very point, and the label that stands for all of them."""
    front = [one for one in story["designs"] if one["on_front"]]
    return {one["design"]: [len(some), designs.shared_label(some)]
            for some in designs.at_one_point(front, [story["x"], story["y"]]) if len(some) > 1 for one in some}


def axis(story, k):
    """As in the static figure, with the same limits."""
    axes = new_figure(4, 4).add_axes((0.1, 0.1, 0.8, 0.8))
    pareto.limits(axes, story)
    low, high = axes.get_xlim() if k == 0 else axes.get_ylim()
    log = (axes.get_xscale() if k == 0 else axes.get_yscale()) == "log"
    return {"metric": story["objectives"][k]["metric"], "title": pareto.axis_title(story, k), "log": log,
            "range": [math.log10(low), math.log10(high)] if log else [float(low), float(high)], "ends": [low, high]}


def staircases(story):
    if len(story["objectives"]) > 2:
        return []
    x_goal, y_goal = (one["goal"] for one in story["objectives"])
    ends = [axis(story, k)["ends"] for k in (0, 1)]
    x_end, y_end = ends[0][1 if x_goal == "minimize" else 0], ends[1][1 if y_goal == "minimize" else 0]
    found = []
    for family, members in pareto.groups(story):
        points = pareto.undominated([pareto.position(one, story)[0] for one in members], x_goal, y_goal)
        if points:
            x, y = zip(*pareto.staircase(points, x_goal, y_goal, x_end, y_end))
            found.append({"family": family, "x": x, "y": y})
    return found


def cell(design, map_story):
    if (map_story is None or design["design"] in map_story["off_grid"]
            or not set(map_story["x"].split("/")) <= set(design["values"])):
        return None
    return [map_story["columns"].index(heatmap.place(design, map_story["x"])),
            map_story["lines"].index(heatmap.place(design, map_story["y"]))]


# ---- the page -------------------------------------------------------------------------------------------------------


def page(study, results, how):
    story = pareto.tell(study)
    story["title"] = story["headline"]
    first = conclusion.target_metric(study["designs"]) or study["objectives"][0]["metric"]
    try:
        map_story = heatmap.tell(study["families"], study["designs"], first, objectives=study["objectives"])
    except BadRequest:  # a sweep over other things than splits and buffers
        map_story = None
    mapped = [name for name in study["families"] if map_story and name in (p["family"] for p in map_story["panels"])]
    if map_story and map_story["not_shown"]:
        note("millrace report", "heat map: " + map_story["not_shown"])
    if not how.bases:
        note("millrace report", f"{how.folder} has no sweep.json: the scenarios in the report's commands are named as "
             "the sweep file names them, relative to it")
    data = json.dumps(script_data(study, story, map_story, how), ensure_ascii=False, sort_keys=True, allow_nan=False)
    metrics = [key for key in designs.known_metrics(study["designs"])
               if sum(designs.has_metric(one, key) for one in study["designs"]) > 0]
    symbols = designs.label_key([one for one in story["designs"] if one["on_front"]])
    about = [str(study.get("description") or ""), volumes(study)]
    text = {
        "title": html.escape(str(study["name"])),
        "conclusion": html.escape(conclusion.sentences(study)),
        "about": "".join(f"<p>{html.escape(part)}</p>" for part in about if part),
        "symbols": html.escape(symbols + ". ") if symbols else "",
        "where": "" if how.bases else " The scenario's path is relative to the sweep file.",
        "summary": html.escape(summary(study)),
        "css": read("report.css"), "plotly": get_plotlyjs(), "script": read("report.js"),
        "data": data.replace("<", "\\u003c"),
        "metrics": "".join(f'<option value="{html.escape(key)}"{" selected" if key == first else ""}>'
                           f"{html.escape(metric_title(key))}</option>" for key in metrics),
        "families": "".join(f"<option>{html.escape(str(name))}</option>" for name in mapped),
        "not_shown": html.escape(" ".join(part for part in (
            heatmap.not_drawn(len(map_story["off_grid"])), map_story["not_shown"]) if part)) if map_story else "",
        "heat": "" if map_story else " hidden",
        "figures": "".join(figures(study, story, map_story, results)),
        "hash": html.escape(str(study.get("sweep_hash", ""))),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: text[match[1]], PAGE)


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def figures(study, story, map_story, results):
    yield inlined(pareto.draw(story), "pareto", "Pareto frontier")
    keys = [map_story["metric"]] if map_story else []
    keys += [one["metric"] for one in study["objectives"] if map_story and one["metric"] not in keys]
    for i, key in enumerate(keys):
        try:
            one = heatmap.tell(study["families"], study["designs"], key, objectives=study["objectives"])
        except BadRequest:
            continue
        one["title"] = one["headline"]
        yield inlined(heatmap.draw(one), f"heat{i}", f"Heat map of {key}")
    try:
        by_split = split.tell(study["families"], study["designs"], "updates")
        by_split.update(measured=[], title=by_split["headline"])
        yield inlined(split.draw(by_split), "split", "Throughput by split")
    except BadRequest:
        pass  # not swept over the split
    if results:
        for path in results:
            load_result(path)
        yield inlined(histograms.draw(histograms.tell(results), "How old rollouts are, and how often they are used"),
                      "histograms", "Histograms")
        yield inlined(utilisation.draw(utilisation.tell(results), "What the GPUs do"), "utilisation", "Utilisation")


def inlined(figure, name, label):
    """The figure as an SVG element: sized by the page, its ids apart from those of other figures."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": "millrace"})
    svg = file.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'^<svg ([^>]*?)\s*>', lambda match: "<svg role=\"img\" aria-label=\"" + html.escape(label) + "\" "
                 + re.sub(r'\b(width|height)="[^"]*"\s*', "", match[1]) + ">", svg, count=1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    return f"<figure>{svg}</figure>\n"


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline';
style-src 'unsafe-inline'; img-src data: blob:">
<link rel="icon" href="data:,">
<title>{{title}} – millrace report</title>
<style>
{{css}}</style>
</head>
<body>
<h1>{{title}}</h1>
<p id="conclusion">{{conclusion}}</p>
<p id="summary" class="soft">{{symbols}}{{summary}} Choose a point, a cell or a row: its command
appears and is copied.</p>
<details><summary>About this sweep</summary>{{about}}</details>
<div class="plots">
<section><h2>Frontier</h2><div id="pareto" class="plot"></div>
<p class="soft wide">Drag to zoom, double-click to return.</p></section>
<section{{heat}}><h2>Heat map</h2>
<div class="controls"><label>Colour: <select id="metric">{{metrics}}</select></label>
<label>Family: <select id="family">{{families}}</select></label></div>
<div id="heat" class="plot"></div><p class="soft"><span id="outlines"></span> {{not_shown}}</p></section>
</div>
<section>
<h2>Designs</h2>
<div class="controls"><label>Show: <select id="which"><option value="all">all</option>
<option value="frontier">on the frontier or undecided</option><option value="failed">failed</option></select></label>
<span class="soft" id="count"></span></div>
<div class="table" id="frame"><table id="table"><thead><tr></tr></thead><tbody></tbody></table></div>
</section>
<section>
<h2 style="margin-top:1.6rem">Figures</h2>
{{figures}}</section>
<div id="chosen" hidden>
<div><b id="name"></b> <span id="about" class="soft"></span></div>
<div class="line"><textarea id="command" readonly rows="2" aria-label="the design's scenario with --set"></textarea>
<button type="button" id="copy">Copy</button></div>
<div class="line" id="asfile"><span class="soft">the same as one file:</span> <code id="file"></code>
<button type="button" id="copyfile">Copy</button></div>
<div class="soft"><span id="copied" role="status"></span> <span>Run it where this report was made.{{where}}</span></div>
</div>
<footer class="soft">millrace; sweep {{hash}}. Intervals are of means over replications. This file needs no
network.</footer>
<script id="designs" type="application/json">{{data}}</script>
<script>{{plotly}}</script>
<script>
{{script}}</script>
</body>
</html>
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
