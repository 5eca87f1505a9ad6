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

import curves
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
        # Where nothing was measured there is no point, and a mean of three stands in the middle of the three.
        line = curves.quartiles("f", [{"x": [0, 1, 2, 3, 4], "y": [None, 1, 2, 6, 7]}], "x", "y", 3)
        self.assertEqual(line["x"].tolist(), [2, 3])
        self.assertEqual(line["quartiles"][1].tolist(), [3, 5])
        self.assertAlmostEqual(curves.reached(line, 4), 2.5)
        self.assertIsNone(curves.reached(line, 5.1))

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
