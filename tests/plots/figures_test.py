#!/usr/bin/python3
"""Figures:  figures_test.py MILLRACE ROOT. Every mark is a row of the CSV, nothing written lies over anything or
outside, and the same input gives the same bytes. Exits with 77 (skipped) where matplotlib is missing."""
import argparse
import contextlib
import csv
import importlib
import importlib.util
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

MILLRACE, ROOT = sys.argv[1], sys.argv[2]
PLOTS = os.path.join(ROOT, "plots")
sys.path[:0] = [PLOTS, os.path.dirname(os.path.abspath(__file__))]
sys.dont_write_bytecode = True
if importlib.util.find_spec("matplotlib") is None:
    print("skipped: there is no matplotlib")
    sys.exit(77)

from matplotlib.transforms import Bbox

import commands
import conclusion
import curves
import designs
import figure
import figure_style
import labels
import pareto
import split
import synthetic

SCENARIO = os.path.join(ROOT, "scenarios", "quickstart.json")


class FigureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.directory = cls.holder.name
        cls.study = synthetic.write_folder(cls.path("sweep"))
        for name, changes in (("buffer", []), ("queue", ["--set", 'store={"kind": "transfer_queue", "capacity": 120}',
                                                         "--set", "trainers.count=2", "--set", "workers.count=6"])):
            done = subprocess.run(
                [MILLRACE, "run", SCENARIO, *changes, "--set", "horizon.updates=60", "--replications", "2", "--set",
                 f"name={name}", "--quiet", "--output", cls.path(name + ".json"), "--steps", cls.path(name + ".jsonl")],
                capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        for name, lift in (("learn-a", 0.0), ("learn-b", 0.2), ("learn-c", 0.2)):
            cls.write(name + ".json", synthetic.learning_result(name, [
                [(100 * i + 3 * seed, 0.2 + lift + 0.05 * i + 0.01 * seed) for i in range(6)] for seed in range(3)]))

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory, name)

    @classmethod
    def write(cls, name, document):
        with open(cls.path(name), "w", encoding="utf-8") as file:
            json.dump(document, file)
        return cls.path(name)

    def plot(self, *words, expect=0):
        """As `millrace plot` does, without starting a program; what it said on standard error."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                code = figure.main(list(words))
            except SystemExit as stop:  # argparse
                code = stop.code
        self.assertEqual(code, expect, said.getvalue())
        return said.getvalue()

    def read(self, name, mode="r"):
        with open(self.path(name), mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
            return file.read()

    def rows(self, stem):
        table = list(csv.reader(self.read(stem + ".csv").splitlines()))
        self.assertEqual(len(set(table[0])), len(table[0]), "columns have names of their own")
        for row in table[1:]:
            self.assertEqual(len(row), len(table[0]))
        return [dict(zip(table[0], row)) for row in table[1:]]

    def marks(self, stem, kind):
        return len(set(re.findall(rf'id="{kind}-([\w-]+)"', self.read(stem + ".svg"))))

    KINDS = {
        "pareto": ["sweep"],
        "heatmap": ["sweep", "--metric", "staleness/mean"],
        "split": ["sweep"],
        "histograms": ["buffer.json", "queue.json"],
        "utilisation": ["buffer.json", "queue.json"],
        "curves": ["learn-a.json", "learn-b.json", "learn-c.json", "--metric", "learner/greedy", "--target", "0.45"],
        "timeline": ["queue.jsonl", "--result", "queue.json"],
    }

    def words(self, kind):
        return [kind] + [self.path(word) if os.path.exists(self.path(word)) else word for word in self.KINDS[kind]]

    def make(self, kind):
        """The figure itself, drawn here."""
        module = importlib.import_module(kind)
        parser = argparse.ArgumentParser()
        module.arguments(parser)
        return module.make(parser.parse_args(self.words(kind)[1:]))[0]

    # ---- what is drawn ----------------------------------------------------------------------------------------------

    def test_marks_are_rows(self):
        for kind in self.KINDS:
            self.plot(*self.words(kind), "--out", self.path(kind))
        rows = self.rows("pareto")
        done = [one for one in self.study["designs"] if "error" not in one]
        self.assertEqual([row["design"] for row in rows], [one["design"] for one in done])
        self.assertEqual(self.marks("pareto", "mark"), len(done))
        self.assertEqual(self.marks("pareto", "whisker"), len(done))
        rows = self.rows("heatmap")
        self.assertEqual(self.marks("heatmap", "cell"), 6 * 5 + 5)
        self.assertEqual(sum(row["state"] != "missing" for row in rows), len(self.study["designs"]))
        self.assertEqual([row["state"] for row in rows].count("failed"), 1)
        values = {one["design"]: one["metrics"]["staleness/mean"]["mean"] for one in done}
        for row in rows:
            if row["state"] == "done":
                self.assertEqual(float(row["value"]), values[row["design"]])
        # Lines of a family on top of each other are drawn once.
        rows = self.rows("split")
        self.assertEqual(self.marks("split", "mark"), len(rows))
        self.assertEqual([row["worker_share"] for row in rows].count("0.75"), 2)
        rows = self.rows("histograms")
        self.assertEqual(self.marks("histograms", "bar"), sum(row["series"] == "share" for row in rows))
        for label in ("buffer", "queue"):
            shares = [float(r["value"]) for r in rows
                      if (r["label"], r["histogram"], r["series"]) == (label, "staleness", "share")]
            self.assertAlmostEqual(sum(shares), 1.0)
        rows = self.rows("utilisation")
        self.assertEqual(self.marks("utilisation", "bar"), len(rows))
        for label, role in itertools.product(("buffer", "queue"), ("workers", "trainers")):
            shares = [float(row["share"]) for row in rows if (row["label"], row["role"]) == (label, role)]
            self.assertAlmostEqual(sum(shares), 1.0)
        self.assertEqual(self.marks("curves", "line"), 3)
        self.assertEqual(self.marks("curves", "band"), 3)
        self.assertEqual({row["label"] for row in self.rows("curves")}, {"learn-a", "learn-b", "learn-c"})
        rows = self.rows("timeline")
        self.assertEqual(self.marks("timeline", "update"), len(rows))
        for row in rows:
            self.assertAlmostEqual(float(row["train_s"]) + float(row["wait_s"]),
                                   float(row["end_s"]) - float(row["start_s"]))

    def test_heat_map_of_results_has_holes(self):
        self.plot("heatmap", self.path("buffer.json"), self.path("queue.json"), "--metric", "replay/mean", "--out",
                  self.path("holes"))
        self.assertEqual(sorted(row["state"] for row in self.rows("holes")), ["done", "done", "missing", "missing"])

    def test_undecided_cells_are_told_apart(self):
        self.plot("heatmap", self.path("sweep"), "--out", self.path("outlines"))
        wanted = {kind: {one["design"] for one in self.study["designs"] if one.get("membership") == kind}
                  for kind in ("in", "undecided")}
        self.assertTrue(wanted["in"] and wanted["undecided"])
        for kind, ids in wanted.items():
            self.assertEqual({row["design"] for row in self.rows("outlines") if row["frontier"] == kind}, ids)
        drawn = self.make("heatmap")
        patches = [(patch.get_gid() or "", patch.get_linestyle()) for axes in drawn.axes for patch in axes.patches]
        dashes = {kind: {dash for name, dash in patches
                         if name.startswith(f"outline-{kind}-") and name.endswith("white")} for kind in wanted}
        self.assertEqual(len(dashes["in"]), 1)
        self.assertEqual(len(dashes["undecided"]), 1)
        self.assertNotEqual(dashes["in"], dashes["undecided"])
        said = " ".join(artist.get_text() for artist, _ in figure_style.texts_of(drawn))
        self.assertIn("outlined: on the frontier; dashed outline: undecided", said)

    def test_assumed_noise_is_said(self):
        study = json.loads(json.dumps(self.study))
        for one in study["designs"]:
            if "metrics" in one:
                one["metrics"]["noise/relative_variance"] = one["metrics"]["staleness/mean"]
        study["objectives"][1]["metric"] = "noise/relative_variance"
        os.makedirs(self.path("noisy"), exist_ok=True)
        self.write("noisy/pareto.json", study)
        for words, said in ((["pareto"], 1), (["heatmap", "--metric", "noise/relative_variance"], 1), (["heatmap"], 0)):
            self.plot(words[0], self.path("noisy"), *words[1:], "--out", self.path("noisy"))
            self.assertEqual("under the assumed noise model" in self.read("noisy.svg"), said == 1, words)

    def test_added_designs_make_no_rows_of_their_own(self):
        """One between two sizes is left out of the grid, one at a size of the sweep has its cell in it."""
        study = json.loads(json.dumps(self.study))
        like = study["designs"][0]
        for i, capacity in enumerate((96, 80, 64)):
            study["designs"].append({**like, "design": f"{i:016x}", "refined": True,
                                     "values": {**like["values"], "store.capacity": capacity}})
        os.makedirs(self.path("refined"), exist_ok=True)
        self.write("refined/pareto.json", study)
        self.plot("heatmap", self.path("refined"), "--out", self.path("refined"))
        self.assertEqual(self.marks("refined", "cell"), 6 * 5 + 5)
        self.assertFalse({"96", "80"} & {row["store.capacity"] for row in self.rows("refined")})
        self.assertEqual(max(int(row["designs"]) for row in self.rows("refined")), 2)
        self.assertIn("Not drawn: 2 designs that the sweep added between values of its axes", self.read("refined.svg"))

    def test_families_without_a_place_are_named(self):
        study = json.loads(json.dumps(self.study))
        study["families"].append("in turns")
        study["designs"].append({**study["designs"][0], "design": "f" * 16, "family": "in turns",
                                 "values": {"trainers.fresh_per_update": 20}})
        os.makedirs(self.path("three"), exist_ok=True)
        self.write("three/pareto.json", study)
        for kind in ("heatmap", "split"):
            said = self.plot(kind, self.path("three"), "--out", self.path("three-" + kind))
            self.assertIn("Not shown: in turns (not swept over workers.count and trainers.count)", said)
            self.assertEqual(said.count("note"), 1)
            self.assertEqual(self.plot(kind, self.path("sweep"), "--out", self.path("two-" + kind)), "")

    def test_measured_points_are_drawn(self):
        with open(self.path("measured.csv"), "w", encoding="utf-8") as file:
            file.write("workers,trainers,per_second\n6,2,0.02\n5,3,0.017\n")
        self.plot("split", self.path("sweep"), "--measured", self.path("measured.csv"), "--out", self.path("measured"))
        rows = self.rows("measured")
        self.assertEqual([row["per_second"] for row in rows if row["kind"] == "measured"], ["0.02", "0.017"])
        self.assertEqual(self.marks("measured", "mark"), len(rows))

    # ---- how it looks -----------------------------------------------------------------------------------------------

    def check_texts(self, drawn, what):
        texts = figure_style.texts_of(drawn)
        self.assertGreater(len(texts), 5)
        for artist, box in texts:
            self.assertTrue(box.x0 >= -0.5 and box.y0 >= -0.5 and box.x1 <= drawn.bbox.width + 0.5
                            and box.y1 <= drawn.bbox.height + 0.5, f"{what}: {artist.get_text()!r} leaves the figure")
        for (one, a), (other, b) in itertools.combinations(texts, 2):
            apart = not labels.overlap(a, b, -1.5)
            self.assertTrue(apart, f"{what}: {one.get_text()!r} and {other.get_text()!r} lie over each other")

    def test_nothing_written_overlaps_or_leaves_the_figure(self):
        for kind in self.KINDS:
            self.check_texts(self.make(kind), kind)

    def test_labels_of_crowded_frontiers(self):
        for seed, goals in enumerate(itertools.product(("minimize", "maximize"), repeat=2)):
            study = synthetic.write_crowd(self.path(f"crowd{seed}"), seed, goals=goals)
            story = pareto.tell(pareto.load_folder(self.path(f"crowd{seed}")))
            story["title"] = "crowd"
            drawn = pareto.draw(story)
            self.check_texts(drawn, f"crowd {seed}")
            front = sum(one["on_front"] for one in study["designs"])
            self.assertGreater(front, 8)
            # Some share a label, none is lost in silence.
            written = [artist for artist, _ in figure_style.texts_of(drawn)
                       if (artist.get_gid() or "").startswith("label-")]
            self.assertLessEqual(len(written) + drawn.left_out, front)
            self.assertGreaterEqual(len(written), 0.5 * front)

    def test_labels_stand_beside_their_points(self):
        """To the right where nothing is there, elsewhere touching the point, and where even that is taken further away
        and joined to it by a line."""
        def box_of(obstacles, lines=()):
            placed, left_out = labels.place([(200, 100)], ["6:2, N = 84"], lambda _: (70, 12), obstacles, lines,
                                            Bbox.from_bounds(0, 0, 400, 200), (-1, -1))
            self.assertEqual((len(placed), left_out), (1, 0))
            return placed[0][1], placed[0][2]

        own = Bbox.from_bounds(195, 95, 10, 10)
        right, _ = box_of([own])
        self.assertTrue(200 < right.x0 <= 210 and right.y0 < 100 < right.y1, right)
        # A staircase to the right and upwards from the point, as a frontier has where less is better.
        stairs = [((200, 100), (400, 100)), ((200, 100), (200, 200))]
        beside, _ = box_of([own], stairs)
        self.assertFalse(any(labels.crosses(beside, *line) for line in stairs))
        self.assertLessEqual(labels.math.dist(labels.nearest_on(beside, (200, 100)), (200, 100)), 12)
        # Other points all around it.
        around = [Bbox.from_bounds(200 + x - 5, 100 + y - 5, 10, 10) for x in range(-60, 61, 12) for y in (-14, 0, 14)]
        away, leaders = box_of(around)
        self.assertFalse(any(labels.overlap(away, other) for other in around))
        self.assertEqual(leaders[0][0], (200, 100))

    def tied(self):
        """The synthetic sweep with two designs of the frontier at one point, one of them added by the sweep."""
        study = json.loads(json.dumps(self.study))
        front = next(one for one in study["designs"] if one.get("on_front") and one["family"] == "buffer")
        others = [one for one in study["designs"] if one.get("membership") == "out"]
        twin = next(one for one in others if one["family"] == "buffer")
        values = {**front["values"], "store.capacity": 8192}
        twin.update(membership="in", on_front=True, metrics=front["metrics"], values=values, refined=True)
        return study, front, twin

    def test_equal_points_share_a_label(self):
        study, front, twin = self.tied()
        os.makedirs(self.path("tied"), exist_ok=True)
        self.write("tied/pareto.json", study)
        story = pareto.tell(designs.load_folder(self.path("tied")))
        story["title"] = "tied"
        drawn = pareto.draw(story)
        self.check_texts(drawn, "tied")
        written = [artist.get_text() for artist, _ in figure_style.texts_of(drawn)
                   if (artist.get_gid() or "").startswith("label-")]
        split = f'{front["values"]["workers.count"]}:{front["values"]["trainers.count"]}'
        self.assertEqual([text for text in written if "8,192" in text],
                         [f'{split}, N = {front["values"]["store.capacity"]:,} or 8,192'])
        self.plot("pareto", self.path("tied"), "--out", self.path("tied"))
        self.assertEqual(self.marks("tied", "mark"), len(self.rows("tied")))
        self.assertEqual(self.marks("tied", "refined"), 1)
        self.assertEqual([row["design"] for row in self.rows("tied") if row["refined"] == "true"], [twin["design"]])

    def test_names_of_lines_on_top_of_each_other(self):
        def name(*names):
            members = [{"share": 0.5, "rate": 1.0, "family": "a"}]
            return [text for text, _ in split.without_repeats([(text, members) for text in names])]

        # Designs that a sweep has added come last, whatever their values.
        self.assertEqual(name("N = 84", "N = 20,412", "N = 350"), ["N = 84 … 20,412"])
        self.assertEqual(name("a, N = 64, k = 4", "a, N = 64, k = 1", "a, N = 64, k = 16"), ["a, N = 64, k = 1 … 16"])
        self.assertEqual(name("N = 64, k = 1", "N = 256, k = 4"), ["N = 64, k = 1 … N = 256, k = 4"])
        self.assertEqual(name("N = 64"), ["N = 64"])

    def test_labels_of_several_designs(self):
        def one(family, **values):
            values = {key.replace("_", "."): value for key, value in values.items()}
            return {"family": family, "values": values, "label": designs.label(values)}

        base = {"workers_count": 6, "trainers_count": 2}
        sizes = [one("a", **base, store_capacity=n) for n in (64, 128, 256, 512)]
        self.assertEqual(designs.shared_label(sizes[:1]), "6:2, N = 64")
        self.assertEqual(designs.shared_label(sizes[:2]), "6:2, N = 64 or 128")
        self.assertEqual(designs.shared_label(sizes[:3]), "6:2, N = 64, 128 or 256")
        self.assertEqual(designs.shared_label(sizes), "6:2, N = 64 … 512")
        splits = [one("a", workers_count=w, trainers_count=8 - w, store_capacity=64) for w in (6, 5)]
        self.assertEqual(designs.shared_label(splits), "6:2 or 5:3, N = 64")
        self.assertEqual(designs.shared_label([sizes[0], splits[1], sizes[1]]), "3 designs")
        self.assertEqual(designs.shared_label([one("a", **base), one("b", workers_count=5, trainers_count=3)]),
                         "2 designs")
        # Axes that go together have one symbol.
        together = {"trainers.fresh_per_update": 20, "admission.rollouts_per_update": 20}
        self.assertEqual(designs.label(together), "R = 20")

    def test_equal_labels_of_near_points_are_one(self):
        points = [(100, 100), (110, 100), (400, 100)]
        self.assertEqual(labels.merged(points, ["8:8"] * 3), [("8:8", points[:2]), ("8:8", points[2:])])

    def test_ends_of_lines_are_spread(self):
        for seed in range(50):
            chance = random.Random(seed)
            wanted = [chance.uniform(0, 100) for _ in range(6)]
            places = figure_style.spread_out(wanted, 12, 0, 100)
            order = sorted(range(6), key=lambda i: wanted[i])
            for below, above in zip(order, order[1:]):
                self.assertGreaterEqual(places[above] - places[below], 12 - 1e-9)
            self.assertTrue(all(-1e-9 <= place <= 100 + 1e-9 for place in places))
        self.assertEqual(figure_style.spread_out([10, 50, 90], 12, 0, 100), [10, 50, 90])

    # ---- what it says -----------------------------------------------------------------------------------------------

    def test_staircase(self):
        for seed, goals in enumerate(itertools.product(("minimize", "maximize"), repeat=2)):
            chance = random.Random(seed)
            points = [(chance.randrange(12), chance.randrange(12)) for _ in range(30)]
            sign = [1 if goal == "minimize" else -1 for goal in goals]

            def at_least(p, q):
                return all(s * a <= s * b for s, a, b in zip(sign, p, q))

            best = {p for p in points if not any(at_least(q, p) and q != p for q in points)}
            front = pareto.undominated(points, *goals)
            self.assertEqual((set(front), len(front)), (best, len(best)))
            ends = [20 if goal == "minimize" else -20 for goal in goals]
            corners = pareto.staircase(front, *goals, *ends)
            self.assertLessEqual(best, set(corners))
            for a, b in zip(corners, corners[1:]):
                self.assertTrue(a[0] == b[0] or a[1] == b[1], "steps, not straight lines")
            # Every corner is dominated by a point, or is one: the line never promises what no design has.
            for corner in corners:
                self.assertTrue(any(at_least(p, corner) for p in best))

    def test_quartiles_over_seeds(self):
        flat = [{"x": [0, 10], "y": [value, value]} for value in (1.0, 2.0, 4.0)]
        line = curves.quartiles("f", flat, "x", "y", 1)
        self.assertEqual(line["quartiles"].T.tolist(), [[1.5, 2.0, 3.0]] * 2)
        # Evaluated at different places, y = x in both: where both reach.
        line = curves.quartiles("f", [{"x": [0, 10, 20], "y": [0, 10, 20]}, {"x": [5, 17], "y": [5, 17]}], "x", "y", 1)
        self.assertEqual(line["x"].tolist(), [5, 10, 17])
        self.assertEqual(line["quartiles"][1].tolist(), [5, 10, 17])
        # Where nothing was measured there is no point, and a mean of three stands in the middle of the three. At the
        # ends the window shrinks.
        line = curves.quartiles("f", [{"x": [0, 1, 2, 3, 4], "y": [None, 1, 2, 6, 7]}], "x", "y", 3)
        self.assertEqual(line["x"].tolist(), [1, 1.5, 2, 3, 3.5, 4])
        self.assertEqual(line["quartiles"][1].tolist(), [1, 1.5, 3, 5, 6.5, 7])
        self.assertAlmostEqual(curves.reached(line, 4), 2.5)
        self.assertIsNone(curves.reached(line, 7.1))

    def test_smoothing_keeps_both_ends(self):
        """A straight line stays the same line from its first to its last evaluation, however wide the window is."""
        for count in (1, 2, 3, 4, 7, 8, 50):
            x = [10 * i for i in range(8)]
            line = curves.quartiles("f", [{"x": x, "y": [3 + 0.5 * at for at in x]}], "x", "y", count)
            self.assertEqual((line["x"][0], line["x"][-1]), (0, 70))
            for at, value in zip(line["x"], line["quartiles"][1]):
                self.assertAlmostEqual(value, 3 + 0.5 * at)
        self.assertIn("at least 1", self.plot("curves", self.path("learn-a.json"), "--metric", "learner/greedy",
                                              "--smooth", "0", "--out", self.path("none"), expect=2))

    def test_a_panel_for_each_metric(self):
        self.plot("curves", self.path("learn-a.json"), self.path("learn-b.json"), "--metric", "learner/greedy",
                  "--metric", "update", "--out", self.path("panels"))
        for kind in ("line", "band", "end"):
            self.assertEqual(self.marks("panels", kind), 4)
        self.assertEqual({row["metric"] for row in self.rows("panels")}, {"learner/greedy", "update"})

    def test_curves_of_millrace_learn(self):
        """Its results hold a list per replication, evaluated at the same updates."""
        self.write("alone.json", {"millrace_learn_result": 1, "settings": {"name": "alone"}, "curves": {
            "update": [0, 50], "learner/greedy": [[0.2, 0.4], [0.4, 0.8]]}})
        self.plot("curves", self.path("alone.json"), "--metric", "learner/greedy", "--out", self.path("alone"))
        self.assertEqual([(row["label"], row["update"], round(float(row["median"]), 9)) for row in self.rows("alone")],
                         [("alone", "0.0", 0.3), ("alone", "50.0", 0.6)])

    def test_bound_of_the_slower_side(self):
        # The synthetic sweep has C = 60 GPU-s per update and mu = 5: six workers make 6 / 300 batches a second.
        story = split.tell(self.study["families"], pareto.load_folder(self.path("sweep"))["designs"], "updates")
        point = next(p for p in story["points"] if p["workers"] == 6 and p["family"] == "no buffer")
        self.assertAlmostEqual(point["worker_bound"], 6 / 300)
        self.assertAlmostEqual(point["trainer_bound"], 2 / 60)
        self.assertAlmostEqual(point["rate"], 6 / 300)
        curve = split.bound_curve(story)
        self.assertAlmostEqual(curve["mu"], 5)
        self.assertAlmostEqual(curve["knee"], 5 / 6)

    def test_conclusion(self):
        def study(values, families=("buffer", "no buffer")):
            """Designs as (family, label's N, uses per rollout, compute to target, its half width)."""
            found = [{"design": str(i), "family": family, "values": {"store.capacity": n}, "label": f"N = {n}",
                      "on_front": True, "membership": "in", "metrics": {
                          "x": {"mean": i}, "y": {"mean": -i}, "replay/mean": {"mean": uses},
                          "noise/relative_compute_to_target": {"mean": mean, "half_width": half}}}
                     for i, (family, n, uses, mean, half) in enumerate(values)]
            return {"name": "s", "families": list(families), "designs": found,
                    "objectives": [{"metric": "x", "goal": "minimize"}, {"metric": "y", "goal": "minimize"}]}

        pays = study([("buffer", 64, 3.0, 0.6, 0.01), ("buffer", 128, 4.0, 0.9, 0.01),
                      ("no buffer", 1, 1.0, 1.2, 0.01)])
        self.assertEqual(conclusion.headline(pays),
                         "N = 64 (buffer) needs 48 to 52 % less compute to the target than the best design that uses "
                         "every rollout once")
        self.assertIn("The next, N = 128 (buffer), needs 45 to 55 % more.", conclusion.sentences(pays))
        self.assertEqual(conclusion.named_in_headline(pays), {"0"})
        self.assertIn("The frontier runs from N = 64 (buffer): x 0, y 0; to N = 1 (no buffer): x 2, y -2.",
                      conclusion.sentences(pays))
        not_worth_it = study([("buffer", 64, 3.0, 2.0, 0.01), ("no buffer", 1, 1.0, 1.0, 0.01)])
        self.assertEqual(conclusion.headline(not_worth_it), "N = 1 (no buffer) needs 49 to 51 % less compute to "
                         "the target than the best design that reuses rollouts")
        # Nothing is claimed that lies inside the intervals.
        open_ = study([("buffer", 64, 3.0, 0.99, 0.02), ("no buffer", 1, 1.0, 1.0, 0.02)])
        self.assertEqual(conclusion.headline(open_), "N = 64 (buffer) and N = 1 (no buffer) need the least compute to "
                         "the target, the same within their intervals")
        self.assertNotIn("less than", conclusion.sentences(open_))
        # Nor that the best mean is the best design: a runner-up inside its interval is named beside it.
        runner_up = study([("buffer", 64, 3.0, 0.60, 0.02), ("buffer", 128, 4.0, 0.63, 0.02),
                           ("no buffer", 1, 1.0, 1.2, 0.01)])
        self.assertEqual(conclusion.headline(runner_up), "N = 64 and N = 128 (buffer) need the least compute to the "
                         "target, the same within their intervals")
        self.assertEqual(conclusion.named_in_headline(runner_up), {"0", "1"})
        self.assertIn(": whichever is the best, 47 to 53 % less than N = 1 (no buffer), the best design that uses "
                      "every rollout once.", conclusion.sentences(runner_up))
        apart = study([("buffer", 64, 3.0, 0.60, 0.01), ("buffer", 128, 4.0, 0.63, 0.01)])
        self.assertTrue(conclusion.headline(apart).startswith("N = 64 (buffer) needs the least compute"))
        many = study([("buffer", n, 3.0, 0.6 + 0.001 * n, 0.02) for n in range(1, 7)])
        self.assertTrue(conclusion.headline(many).startswith("N = 1; N = 2; N = 3 and 3 others (buffer) need the "))
        # One replication has no interval, and where a part of the replications reaches it their mean is no estimate.
        for one in runner_up["designs"]:
            one["metrics"]["noise/relative_compute_to_target"].update(half_width=None, replications=1)
        self.assertIn("has the least mean compute to the target; there are no intervals",
                      conclusion.headline(runner_up))
        pays["designs"][0]["replications"] = 4
        pays["designs"][0]["metrics"]["noise/relative_compute_to_target"]["replications"] = 2
        self.assertTrue(conclusion.headline(pays).startswith("N = 128 (buffer) needs 23 to 27 % less"))
        self.assertIn("in some replications only", conclusion.sentences(pays))
        # A model of the noise is an assumption, and is called one.
        self.assertTrue(conclusion.sentences(apart).startswith("Under the assumed noise model: N = 64 (buffer)"))
        without = study([("buffer", 64, 3.0, None, None), ("no buffer", 1, 1.0, None, None)])
        self.assertEqual(conclusion.headline(without), "Along the frontier x goes from 0 to 1 and y from 0 to -1")
        self.assertNotIn("noise", conclusion.sentences(without))
        nothing = study([])
        self.assertEqual(conclusion.headline(nothing), "s")

    def test_headings_of_heat_maps_name_all_that_may_be_best(self):
        def told(*estimates, goal="minimize"):
            return conclusion.extreme([
                {"design": str(n), "family": "", "label": f"N = {n}", "values": {"store.capacity": n}, "replications": 4,
                 "metrics": {"x": {"mean": mean, "half_width": half, "replications": count}}}
                for n, (mean, half, count) in enumerate(estimates, 1)], [""], "x", goal)

        self.assertEqual(told((1.0, 0.1, 4), (1.3, 0.1, 4)), ("x: lowest at N = 1, 1", None))
        self.assertEqual(told((1.0, 0.1, 4), (1.3, 0.1, 4), goal="maximize"), ("x: highest at N = 2, 1.3", None))
        self.assertEqual(told((1.0, 0.1, 4), (1.1, 0.1, 4)),
                         ("x: lowest at N = 1 and N = 2, 1 to 1.1", "lowest within their intervals: N = 1 and N = 2"))
        # Equal to the digit: one point, one label.
        self.assertEqual(told((1.0, 0.0, 4), (1.0, 0.0, 4)), ("x: lowest at N = 1 or 2, 1", None))
        self.assertEqual(told((1.0, 0.1, 2), (1.3, 0.1, 4)), (
            "x: lowest at N = 2, 1.3",
            "the heading leaves out designs that have the metric in some replications only"))

    def test_numbers_with_half_widths(self):
        for mean, half, text in ((1.78684, 0.00131, "1.7868 ± 0.0013"), (0.318471, 8e-17, "0.3185"),
                                 (0.42463, 0, "0.4246"), (23.6912, 0.0471, "23.691 ± 0.047"),
                                 (1775.2, 104.0, "1775 ± 104"), (12.0, 1.27, "12.0 ± 1.3")):
            self.assertEqual(figure_style.estimate(mean, half), text)

    # ---- files ------------------------------------------------------------------------------------------------------

    def test_same_bytes_twice(self):
        program = "import sys; sys.path.insert(0, sys.argv[1]); import figure\n" \
                  "for words in eval(sys.argv[2]): assert figure.main(words) == 0"
        for folder in ("one", "two"):
            os.makedirs(self.path(folder))
            everything = [[*self.words(kind), "--pdf", "--out", self.path(f"{folder}/{kind}")] for kind in self.KINDS]
            subprocess.run([sys.executable, "-B", "-c", program, PLOTS, repr(everything)], check=True,
                           env={**os.environ, "PYTHONHASHSEED": "1" if folder == "one" else "2"})
        for kind, ending in itertools.product(self.KINDS, ("svg", "png", "pdf", "csv")):
            self.assertEqual(self.read(f"one/{kind}.{ending}", "rb"), self.read(f"two/{kind}.{ending}", "rb"), kind)

    def test_command(self):
        """millrace plot finds the scripts, hands its words on as they are, and answers with their exit code."""
        words = self.words("utilisation") + ["--title", "two words; $HOME `x`", "--out", self.path("command")]
        done = subprocess.run([MILLRACE, "plot", "--plots", PLOTS, *words], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.plot(*words[:-1], self.path("module"))
        for ending in ("svg", "csv"):
            self.assertEqual(self.read(f"command.{ending}"), self.read(f"module.{ending}"))
        nowhere = self.path("nowhere")
        for words, code, says in ((["plot", "--plots", PLOTS, "pareto", nowhere, "--out", "x"], 2, "nowhere"),
                                  (["plot", "--plots", self.directory, "pareto"], 2, "there is no figure.py"),
                                  (["polt"], 2, "Did you mean plot?")):
            done = subprocess.run([MILLRACE, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, says in done.stderr), (code, True), done.stderr)

    def test_commands_of_the_report_run(self):
        """Each as it is copied, in the directory in which the report was made; it is the same design."""
        with open(self.path("small.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "small", "description": "", "replications": 2, "families": [
                {"name": "a buffer's", "base": os.path.relpath(SCENARIO, self.directory),
                 "set": {"horizon.updates": 60, "published": [], "name": "two words", "admission.kind": "none"},
                 "axes": [{"path": "store.capacity", "values": [84, 252]}]},
                {"name": "a buffer s", "base": os.path.relpath(SCENARIO, self.directory),
                 "set": {"horizon.updates": 50, "published": []},
                 "axes": [{"path": "workers.count", "values": [3, 4]}]}],
                "objectives": [{"metric": "compute/gamma_simulated", "goal": "minimize"},
                               {"metric": "staleness/mean", "goal": "minimize"}]}, file)
        for words in (["sweep", "small.json", "--out", "out/small", "--quiet"], ["pareto", "out/small"]):
            done = subprocess.run([MILLRACE, *words], cwd=self.directory, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        where = os.getcwd()
        try:
            os.chdir(self.directory)
            study = designs.load_folder("out/small")
            how = commands.Commands(study, "out/small")
            how.write()
        finally:
            os.chdir(where)
        self.assertEqual(sorted(os.listdir(self.path("out/small/bases"))), ["a-buffer-s-1.json", "a-buffer-s-2.json"])
        self.assertEqual(len(study["designs"]), 4)
        files = 0
        for one in study["designs"]:
            self.assertTrue(how.by_set(one).startswith("millrace run out/small/bases/a-buffer-s-"))
            for line in (how.by_set(one), how.by_file(one)):
                if line is None:
                    self.assertEqual(one["membership"], "out")
                    continue
                files += line == how.by_file(one)
                done = subprocess.run(["bash", "-c", line.replace("millrace", f"'{MILLRACE}'", 1) + " --format json"],
                                      cwd=self.directory, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, line + done.stderr)
                result = json.loads(done.stdout)
                self.assertEqual(result["replications"], 2)
                for key, metric in one["metrics"].items():
                    self.assertEqual(result["metrics"][key]["mean"], metric["mean"], (line, key))
        self.assertGreater(files, 0)

    def test_commands_say_the_warm_up_of_the_sweep(self):
        study = json.loads(json.dumps(self.study))
        for one, warmup, change in zip(study["designs"], (120, 120, True, None), ([], ["horizon.warmup_updates=7"], [],
                                                                                  [])):
            one.update(warmup_updates=warmup, set=one["set"] + change)
        os.makedirs(self.path("warm"), exist_ok=True)
        self.write("warm/pareto.json", study)
        study = designs.load_folder(self.path("warm"))
        how = commands.Commands(study, self.path("warm"))
        said = [re.findall(r"horizon\.warmup_updates=(\w+)", how.by_set(one)) for one in study["designs"][:5]]
        self.assertEqual(said, [["120"], ["7"], [], [], []])

    def test_target_of_learners(self):
        os.makedirs(self.path("aimed"), exist_ok=True)
        self.assertIsNone(designs.load_folder(self.path("sweep"))["target_words"])
        study = json.loads(json.dumps(self.study))

        def words(targets):
            self.write("aimed/pareto.json", study)
            self.write("aimed/sweep.json", {"sweep": {"families": [
                {"name": name, "base": {"learner": {"target_pass_at_1": target}}}
                for name, target in zip(study["families"], targets)]}})
            return designs.load_folder(self.path("aimed"))["target_words"]

        self.assertEqual(words([0.5, 0.5]), "pass@1 = 0.5")
        self.assertIsNone(words([0.5, 0.6]))
        study["designs"][0]["set"].append("learner.target_pass_at_1=0.6")
        self.assertIsNone(words([0.5, 0.5]))

    def test_refusals(self):
        os.makedirs(self.path("unmerged"), exist_ok=True)
        self.write("unmerged/sweep.json", {})
        self.write("damaged.json", {"millrace_result": 1, "scenario": {"name": "x"}})
        os.makedirs(self.path("broken"), exist_ok=True)
        study = json.loads(json.dumps(self.study))
        study["designs"][3]["membership"] = "perhaps"
        self.write("broken/pareto.json", study)
        out = ["--out", self.path("none")]
        for words, code, says in [
                (["pareto", self.path("unmerged"), *out], 2, "millrace pareto"),
                (["pareto", self.path("broken"), *out], 3, "membership"),
                (["pareto", self.path("nowhere"), *out], 2, "not the folder of a sweep"),
                (["utilisation", self.path("damaged.json"), *out], 3, "incomplete or damaged"),
                (["histograms", self.path("sweep/pareto.json"), *out], 3, "not a result of millrace run"),
                (["curves", self.path("buffer.json"), *out], 3, "no learning curves"),
                (["curves", self.path("learn-a.json"), "--metric", "learner/gredy", *out], 2, "learner/greedy"),
                (["curves", self.path("learn-a.json"), "--label", "a", "--label", "b", "--metric", "learner/greedy",
                  *out], 2, "1 files and 2 labels"),
                (["heatmap", self.path("sweep"), "--metric", "staleness/mena", *out], 2, "staleness/mean"),
                (["timeline", self.path("queue.json"), *out], 3, "queue.json:1"),
                (["timeline", self.path("queue.jsonl"), "--replication", "7", *out], 2, "replication 7"),
                (["pareto", self.path("sweep"), "--out", self.path("nowhere/x")], 2, "cannot write"),
                (["pareot", self.path("sweep"), *out], 2, "pareto"),
                (["pareto", self.path("sweep")], 2, "--out")]:
            self.assertIn(says, self.plot(*words, expect=code))
        self.assertFalse([name for name in os.listdir(self.directory) if name.startswith("none")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
