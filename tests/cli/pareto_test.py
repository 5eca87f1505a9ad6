#!/usr/bin/python3
"""What may be relied on in `millrace pareto`, and in sweeps that refine their frontier:  pareto_test.py MILLRACE SOURCE_DIR

Only Python's standard library.
"""
import csv
import io
import json
import random
import signal
import time

from case import LONGEST_S, main
from sweep_case import DESIGNS, SWEEP, SweepCase

KILLS = 12
# Cost against freshness over the buffer's size and the split of six GPUs.
REFINED = {
    "name": "refined",
    "families": [{"name": "buffer", "base": "base.json",
                  "axes": [{"path": "store.capacity", "values": [16, 256, 1024]},
                           {"zip": [{"path": "workers.count", "values": [1, 4]},
                                    {"path": "trainers.count", "values": [5, 2]}]}],
                  "constraints": ["workers.count + trainers.count == 6", "store.capacity % 2 == 0"]}],
    "objectives": SWEEP["objectives"],
    "replications": {"least": 3, "most": 13, "budget": 90},
    "refine": {"designs": 6},
}


def mean(values):
    return sum(values) / len(values)


class ParetoCase(SweepCase):
    def setUp(self):
        super().setUp()
        self.write("refined.json", json.dumps(REFINED))

    def pareto(self, folder, *arguments):
        return json.loads(self.call("pareto", folder, "--format", "json", *arguments)[0])

    def means(self, folder):
        """{design: [mean of each objective]} of the designs that have them, from merged.jsonl."""
        values = {}
        for row in map(json.loads, self.merged(folder).splitlines()):
            if "error" not in row:
                columns = values.setdefault(row["design"], [[] for _ in SWEEP["objectives"]])
                for column, objective in zip(columns, SWEEP["objectives"], strict=True):
                    column += row["metrics"][objective["metric"]]
        return {design: list(map(mean, columns)) for design, columns in values.items()}


class Frontier(ParetoCase):
    def test_the_frontier_of_the_means_is_that_of_brute_force(self):
        self.sweep("out", "--quiet")
        means = self.means("out")
        self.assertEqual(len(means), DESIGNS - 1)
        front = {design for design, own in means.items()
                 if not any(other != own and all(a <= b for a, b in zip(other, own, strict=True))
                            for other in means.values())}
        study = self.pareto("out")
        self.assertEqual({design["design"] for design in study["designs"] if design.get("on_front")}, front)
        self.assertGreater(len(front), 1)
        self.assertLess(len(front), len(means))
        for design in study["designs"]:
            self.assertFalse(design["refined"])
            if "error" in design:
                self.assertIn("an update takes 16 rollouts", design["error"])
                continue
            for objective, value in zip(SWEEP["objectives"], means[design["design"]], strict=True):
                self.assertAlmostEqual(design["metrics"][objective["metric"]]["mean"], value, places=9)
            # What is in is on the front, what is out is not.
            self.assertNotEqual((design["membership"], design["on_front"]), ("in", False))
            self.assertNotEqual((design["membership"], design["on_front"]), ("out", True))

    def test_hypervolume_by_brute_force(self):
        self.sweep("out", "--quiet")
        reference = (40.0, 30.0)
        study = self.pareto("out", "--reference", ",".join(map(str, reference)))
        area, ceiling = 0.0, reference[1]
        for x, y in sorted(self.means("out").values()):
            if x < reference[0] and y < ceiling:
                area += (reference[0] - x) * (ceiling - y)
                ceiling = y
        self.assertGreater(area, 0.0)
        self.assertAlmostEqual(study["hypervolume"]["value"] / area, 1.0, places=9)
        low, high = study["hypervolume"]["interval"]
        self.assertLessEqual(0.0, low)
        self.assertLess(low, study["hypervolume"]["mean"])
        self.assertLess(study["hypervolume"]["mean"], high)
        # Nothing is better than a reference at 0: an area of nothing, and no negative one.
        nothing = self.pareto("out", "--reference", "0,0")["hypervolume"]
        self.assertEqual((nothing["value"], nothing["mean"]), (0.0, 0.0))

    def test_json_csv_and_table_say_the_same(self):
        self.sweep("out", "--quiet")
        study = self.pareto("out")
        self.assertEqual(study, json.loads(self.read("out/pareto.json")))
        rows = list(csv.DictReader(io.StringIO(self.call("pareto", "out", "--format", "csv")[0])))
        self.assertEqual([row["design"] for row in rows], [design["design"] for design in study["designs"]])
        for row, design in zip(rows, study["designs"], strict=True):
            self.assertEqual(row["error"], design.get("error", ""))
            self.assertEqual(row["membership"], design.get("membership", ""))
            if "error" not in design:
                gamma = design["metrics"]["compute/gamma_simulated"]
                self.assertEqual(float(row["compute/gamma_simulated"]), gamma["mean"])
                self.assertEqual(float(row["compute/gamma_simulated:half_width"]), gamma["half_width"])
        table = self.call("pareto", "out")[0]
        count = {word: sum(design.get("membership") == word for design in study["designs"])
                 for word in ("in", "out", "undecided")}
        self.assertIn(f"small: {DESIGNS} designs; on the frontier {count['in']}, not on it {count['out']}, undecided "
                      f"{count['undecided']}", table)
        for design in study["designs"]:
            listed = any(line.startswith(design["design"]) for line in table.splitlines())
            self.assertEqual(listed, "scenario" in design, design["design"])

    def test_scenarios_of_the_frontier_give_the_sweeps_numbers(self):
        self.sweep("out", "--quiet", file="adaptive.json")
        study = self.pareto("out")
        frontier = [design for design in study["designs"] if "scenario" in design]
        self.assertGreater(len({design["replications"] for design in frontier}), 1, "all have the same replications")
        warmups = {row["design"]: row["warmup_updates"] for row in map(json.loads, self.merged("out").splitlines())
                   if row["first_replication"] == 0 and "error" not in row}
        for design in frontier:
            scenario = json.loads(self.read(f"out/{design['scenario']}"))
            self.assertEqual(scenario["horizon"]["warmup_updates"], warmups[design["design"]])
            run = json.loads(self.call("run", f"out/{design['scenario']}", "--format", "json", "--quiet")[0])
            for key, metric in design["metrics"].items():
                self.assertAlmostEqual(run["metrics"][key]["mean"], metric["mean"], places=9, msg=key)
        self.assertEqual(len(list((self.directory / "out/frontier").glob("*.json"))), len(frontier))


class Refused(ParetoCase):
    def test_folders_that_are_none(self):
        self.refused("pareto", "nowhere", code=2, says="not the folder of a sweep")
        self.refused("merge", "nowhere", code=2, says="not the folder of a sweep")
        self.sweep("out", "--quiet", "--shard", "1/2")
        self.refused("pareto", "out", code=2, says=["no merged.jsonl yet", "millrace merge out"])

    def test_references_and_confidences_that_are_none(self):
        self.sweep("out", "--quiet")
        for text in ("1", "1,2,3", "1,", "a,2", "1,nan", "inf,1"):
            self.refused("pareto", "out", "--reference", text, code=2, says="--reference takes")
        for text in ("0", "1", "95", "x"):
            self.refused("pareto", "out", "--confidence", text, code=2, says="--confidence")

    def test_rows_that_are_none_or_of_something_else(self):
        self.sweep("out", "--quiet")
        rows = self.read("out/runs.jsonl")
        path = self.directory / "out/runs.jsonl"
        path.write_bytes(rows.replace(b'"design":"', b'"design":"f', 1))
        self.refused("pareto", "out", code=3, says="runs.jsonl:1:")
        path.write_bytes(b'{"design":"ffffffffffffffff"' + rows[rows.index(b","):])
        for command in ("pareto", "merge"):
            self.refused(command, "out", code=1, says="of the design ffffffffffffffff, which the sweep has not")

    def test_a_sweep_of_which_nothing_can_be_compared(self):
        # In a queue no rollout is used twice.
        family = {**SWEEP["families"][1], "axes": [{"path": "store.capacity", "values": [32, 64]}]}
        self.write("once.json", json.dumps({**SWEEP, "families": [family], "objectives": [
            {"metric": "last_use/mean", "goal": "minimize"}, {"metric": "staleness/mean", "goal": "maximize"}]}))
        self.sweep("out", "--quiet", file="once.json")
        self.refused("pareto", "out", code=1, says=["none of the 2 designs of out can be compared",
                                                    "store.capacity=32: the objective last_use/mean has no value"])
        self.assertFalse((self.directory / "out/pareto.json").exists())


class Refinement(ParetoCase):
    def test_added_designs_are_marked_constrained_and_on_the_middle_of_gaps(self):
        out, _ = self.sweep("out", "--quiet", file="refined.json")
        study = self.pareto("out")
        added = [design for design in study["designs"] if design["refined"]]
        self.assertTrue(1 <= len(added) <= 6)
        self.assertEqual(len(study["designs"]), 6 + len(added))
        self.assertIn(f"{6 + len(added)} designs", out)
        self.assertEqual([design["refined"] for design in study["designs"]], [False] * 6 + [True] * len(added))
        self.assertEqual((study["refinement"]["most_added"], study["refinement"]["added"]), (6, len(added)))
        of_file = {json.dumps(design["values"]) for design in study["designs"][:6]}
        for design in added:
            values = design["values"]
            self.assertEqual(values["workers.count"] + values["trainers.count"], 6)
            self.assertEqual(values["store.capacity"] % 2, 0)
            self.assertNotIn(json.dumps(values), of_file)
            self.assertGreaterEqual(design["replications"], 3)
        replications = sum(json.loads(row)["replications"] for row in self.merged("out").splitlines())
        self.assertLessEqual(replications, 90)
        table = self.call("pareto", "out")[0]
        self.assertIn(f"{len(added)} of them refined from gaps of the frontier", table)
        rows = csv.DictReader(io.StringIO(self.call("pareto", "out", "--format", "csv")[0]))
        self.assertEqual([row["refined"] for row in rows], ["false"] * 6 + ["true"] * len(added))

    def test_threads_and_shards_do_not_change_a_byte(self):
        expected = self.expected("refined.json")
        self.sweep("jobs", "--quiet", "--jobs", "3", file="refined.json")
        self.assertEqual(self.merged("jobs"), expected)
        said = ""
        for _ in range(40):
            for shard in (2, 1, 3):
                self.sweep("shards", "--quiet", "--shard", f"{shard}/3", file="refined.json")
            code, err = self.merge("shards")
            if code == 0:
                break
            said += err
        self.assertIn("designs added in gaps of the frontier (round 2", said)
        self.assertEqual(self.merged("shards"), expected)
        self.assertEqual(self.pareto("shards"), self.pareto("jobs"))
        # From the merged rows alone.
        for file in (self.directory / "shards").glob("runs*.jsonl"):
            file.unlink()
        self.assertEqual(self.pareto("shards"), self.pareto("jobs"))

    def test_kills_lose_nothing(self):
        expected = self.expected("refined.json")
        blocks = expected.count(b"\n")
        instants = random.Random(11)
        kills = folder = 0
        while kills < KILLS:
            name = f"killed-{folder}"
            there = self.rows(name)
            process = self.start(name, "--quiet", "--jobs", "2", file="refined.json")
            last = instants.randrange(there, min(there + 5, blocks))
            while process.poll() is None and self.rows(name) < last:
                time.sleep(0.001)
            time.sleep(instants.uniform(0.0, 0.02))
            process.kill()
            self.assertIn(process.wait(LONGEST_S), (0, -signal.SIGKILL))
            kills += process.returncode != 0
            if kills == KILLS or self.rows(name) == blocks:
                self.sweep(name, "--quiet", file="refined.json")
                self.assertEqual(self.merged(name), expected)
                self.assertEqual(self.rows(name), blocks, "something was run twice")
                folder += 1

    def test_a_partial_merge_leaves_out_what_it_cannot_place(self):
        self.expected("refined.json")
        rows = self.read("undisturbed-refined/runs.jsonl").splitlines(keepends=True)
        self.sweep("out", "--quiet", file="refined.json")
        (self.directory / "out/runs.jsonl").write_bytes(b"".join(rows[1:]))
        code, err = self.merge("out")
        self.assertEqual(code, 1)
        self.assertIn("1 of 6 blocks are missing", err)
        _, err = self.call("merge", "out", "--partial")
        self.assertRegex(err, "Left out: [1-9][0-9]* row")
        self.assertLess(len(self.merged("out").splitlines()), len(rows) - 1)
        self.sweep("out", "--quiet", file="refined.json")
        self.assertEqual(self.merged("out"), self.expected("refined.json"))


if __name__ == "__main__":
    main()
