#!/usr/bin/python3
"""What may be relied on in `millrace sweep` and `millrace merge`:  sweep_test.py MILLRACE SOURCE_DIR

The same bytes for any number of threads and shards, whatever ends a process in between, and complaints that say why.
Only Python's standard library.
"""
import json
import random
import signal
import time

from case import LONGEST_S, main
from run_learner_test import TINY
from sweep_case import DESIGNS, SWEEP, SweepCase

KILLS = 50


class Threads(SweepCase):
    def test_threads_do_not_change_a_byte(self):
        for jobs in (2, 3):
            out, err = self.sweep(f"jobs-{jobs}", "--jobs", jobs)
            self.assertIn(f"{DESIGNS} designs, 40 replications: jobs-{jobs}/merged.jsonl", out)
            self.assertIn("1 of the 11 designs failed", err)
            self.assertEqual(self.merged(f"jobs-{jobs}"), self.expected())

    def test_rows_hold_every_replication_and_say_what_failed(self):
        rows = [json.loads(line) for line in self.expected().splitlines()]
        self.assertEqual(len(rows), DESIGNS)
        failed = [row for row in rows if "error" in row]
        self.assertEqual(len(failed), 1)
        self.assertIn("an update takes 16 rollouts", failed[0]["error"])
        for row in rows:
            if "error" in row:
                continue
            self.assertEqual((row["first_replication"], row["replications"]), (0, 4))
            self.assertGreaterEqual(row["warmup_updates"], 60)
            for key in ("compute/gamma", "compute/gamma_simulated", "staleness/mean", "time/wall_s"):
                self.assertEqual(len(row["metrics"][key]), 4, key)
            self.assertEqual(len(set(row["metrics"]["compute/gamma"])), 1)

    def test_a_row_is_what_a_run_of_its_design_gives(self):
        self.write("one.json", json.dumps({**json.loads(self.read("base.json")), "replications": 4}))
        run = json.loads(self.call("run", "one.json", "--set", "store.capacity=16", "--set", "workers.count=1",
                                   "--format", "json", "--quiet")[0])
        row = json.loads(self.expected().splitlines()[0])
        for key, metric in run["metrics"].items():
            values = [value for value in row["metrics"][key] if value is not None]
            self.assertAlmostEqual(sum(values) / len(values), metric["mean"], places=9, msg=key)

    def test_another_sweep_needs_another_folder(self):
        self.sweep("out", "--quiet")
        self.refused("sweep", "sweep.json", "--out", "out", "--set", "replications=5", code=2, says="another sweep")
        manifest = json.loads(self.read("out/manifest.json"))
        self.assertEqual(manifest["sweep_hash"], json.loads(self.read("out/sweep.json"))["sweep_hash"])


    def test_a_folder_of_something_else_is_left_alone(self):
        (self.directory / "out").mkdir()
        self.write("out/runs.jsonl", "somebody else's\n")
        self.refused("sweep", "sweep.json", "--out", "out", code=2, says=["not empty", "runs.jsonl", "no sweep.json"])
        self.assertEqual(self.read("out/runs.jsonl"), b"somebody else's\n")
        self.assertEqual(sorted(path.name for path in (self.directory / "out").iterdir()), ["runs.jsonl"])
        # An empty one will do, and what a process left that ended while it began.
        (self.directory / "empty").mkdir()
        self.write("empty/sweep.json.part4711", "{")
        self.sweep("empty", "--quiet")
        self.assertEqual(self.merged("empty"), self.expected())

    def test_it_says_what_it_begins_unless_it_is_to_be_quiet(self):
        _, err = self.sweep("out")
        self.assertIn("Sweeping 11 designs, 4 replications of each; 0 rows already in out.", err)
        _, err = self.sweep("out")
        self.assertIn("; 11 rows already in out.", err)
        _, err = self.sweep("out", "--quiet")
        self.assertNotIn("Sweeping", err)
        _, err = self.sweep("adaptive", file="adaptive.json")
        self.assertIn("Sweeping 11 designs, 3 to 20 replications of each, at most 100 in all;", err)


class Interrupted(SweepCase):
    def test_kills_at_any_instant_lose_nothing(self):
        expected = self.expected()
        instants = random.Random(7)
        kills = 0
        folder = 0
        while kills < KILLS:
            there = self.rows(f"killed-{folder}")
            process = self.start(f"killed-{folder}", "--quiet", "--jobs", "2")
            # By rows and not by seconds, so that kills fall all over the sweep on machines of any speed.
            last = instants.randrange(there, min(there + 3, DESIGNS))
            while process.poll() is None and self.rows(f"killed-{folder}") < last:
                time.sleep(0.001)
            time.sleep(instants.uniform(0.0, 0.03))
            process.kill()
            self.assertIn(process.wait(LONGEST_S), (0, -signal.SIGKILL))
            kills += process.returncode != 0
            if kills == KILLS or self.rows(f"killed-{folder}") == DESIGNS:
                self.sweep(f"killed-{folder}", "--quiet")
                self.assertEqual(self.merged(f"killed-{folder}"), expected)
                folder += 1

    def test_a_torn_line_is_dropped(self):
        self.expected()
        whole = self.read("undisturbed-sweep/runs.jsonl")
        self.sweep("out", "--quiet")
        cut = whole.rindex(b"\n", 0, len(whole) - 1) + 20
        (self.directory / "out" / "runs.jsonl").write_bytes(whole[:cut])
        (self.directory / "out" / "merged.jsonl").unlink()
        self.sweep("out", "--quiet")
        self.assertEqual(self.read("out/runs.jsonl"), whole)
        self.assertEqual(self.merged("out"), self.expected())

    def test_ctrl_c_keeps_what_is_done(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            self.remove("out")
            process = self.start("out", "--set", "families.0.set={\"horizon.updates\":60000}")
            deadline = time.monotonic() + LONGEST_S
            while self.rows("out") < 2:
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                time.sleep(0.005)
            process.send_signal(signal_number)
            self.assertEqual(process.wait(LONGEST_S), 130)
            self.assertIn(b"The same command goes on from here", process.stderr.read())
            there = self.rows("out")
            self.assertGreaterEqual(there, 2)
            self.assertLess(there, DESIGNS)
            out = self.refused("merge", "out", code=1, says=[f"{DESIGNS - there} of {DESIGNS} blocks are missing"])
            self.assertIn("Start the sweep again", out)


class Shards(SweepCase):
    def test_five_shards_give_the_same_bytes_in_any_order(self):
        for shard in (4, 2, 5, 1):
            out, _ = self.sweep("out", "--quiet", "--shard", f"{shard}/5")
            self.assertIn(f"Shard {shard} of 5", out)
        self.refused("merge", "out", code=1, says=["2 of 11 blocks are missing, of 2 of 11 designs", "of 5 again: 3"])
        self.assertIn("9 rows", self.call("merge", "out", "--partial")[0])
        self.sweep("out", "--quiet", "--shard", "3/5")
        self.assertIn("11 rows of 11 designs", self.call("merge", "out")[0])
        self.assertEqual(self.merged("out"), self.expected())
        self.sweep("out", "--quiet")
        self.assertEqual(self.rows("out"), DESIGNS, "something was run again")

    def test_shards_that_run_at_once(self):
        processes = [self.start("out", "--quiet", "--shard", f"{shard}/3") for shard in (1, 2, 3)]
        for process in processes:
            self.assertEqual(process.wait(LONGEST_S), 0, process.stderr.read())
        self.call("merge", "out")
        self.assertEqual(self.merged("out"), self.expected())

    def test_rounds_of_an_adaptive_sweep(self):
        expected = self.expected("adaptive.json")
        rows = [json.loads(line) for line in expected.splitlines()]
        self.assertGreater(len(rows), DESIGNS)
        self.assertLessEqual(sum(row["replications"] for row in rows), 100)
        self.sweep("jobs", "--quiet", "--jobs", "3", file="adaptive.json")
        self.assertEqual(self.merged("jobs"), expected)
        another_round = False
        for _ in range(30):
            for shard in (2, 1):
                self.sweep("shards", "--quiet", "--shard", f"{shard}/2", file="adaptive.json")
            code, err = self.merge("shards")
            if code == 0:
                break
            self.assertEqual(code, 1)
            another_round = another_round or "round 2" in err
        self.assertTrue(another_round)
        self.assertEqual(self.merged("shards"), expected)

    def test_what_is_no_shard_is_refused(self):
        for text in ("0/5", "6/5", "2", "a/5", "1/0", "-1/5", ""):
            self.refused("sweep", "sweep.json", "--out", "out", f"--shard={text}", code=2, says="--shard")
        self.refused("merge", "nowhere", code=2, says="not the folder of a sweep")
        self.refused("sweep", "base.json", "--out", "out", code=3, says="families")


class Learners(SweepCase):
    def test_learning_metrics_are_those_of_runs(self):
        self.write("tiny.json", TINY)
        sweep = {**SWEEP, "replications": 2, "families": [
            {"name": "learning", "base": "tiny.json", "axes": [{"path": "store.capacity", "values": [32, 64]}]}]}
        # Out of reach, so that one metric has no value.
        sweep["families"][0]["set"] = {"learner.target_pass_at_1": 0.999}
        self.write("learning.json", json.dumps(sweep))
        for folder, arguments in (("one", []), ("two", ["--jobs", "2"])):
            self.sweep(folder, "--quiet", "--backend", "cpu", *arguments, file="learning.json")
        self.assertEqual(self.merged("one"), self.merged("two"))
        rows = [json.loads(line) for line in self.merged("one").splitlines()]
        self.assertEqual([(row["first_replication"], row["replications"]) for row in rows], [(0, 1), (1, 1)] * 2)
        run = json.loads(self.call("run", "tiny.json", "--backend", "cpu", "--set", "learner.target_pass_at_1=0.999",
                                   "--set", "replications=2", "--format", "json", "--quiet")[0])
        for key in ("learner/pass@1", "learner/entropy", "learner/greedy_largest_drop"):
            values = [row["metrics"][key][0] for row in rows[:2]]
            self.assertAlmostEqual(sum(values) / 2, run["metrics"][key]["mean"], places=9, msg=key)
        for row in rows:
            self.assertEqual(row["metrics"]["learner/compute_to_target"], [None])
            self.assertIn("0 of 2 seeds", row["undefined"]["learner/compute_to_target"])


if __name__ == "__main__":
    main()
