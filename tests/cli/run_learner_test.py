#!/usr/bin/python3
"""What scripts and people may rely on in `millrace run` with a learner:  run_learner_test.py MILLRACE SOURCE_DIR

A tiny model in a tiny pipeline: the same bytes for any number of threads, curves that agree with the result, and
complaints that say why. Only Python's standard library.
"""
import json
import random
import signal
import subprocess
import time

from case import LONGEST_S, MILLRACE, CommandCase, main

TINY = """{
    "name": "tiny",
    "replications": 3,
    "horizon": {"updates": 60, "units": 40, "warmup_updates": 5},
    "workers": {"count": 2, "slots": 2, "service": {"kind": "first_order", "gpu_s_per_rollout": 0.1}},
    "groups": {"size": 4},
    "trainers": {"count": 1, "batch": 16, "service": {"kind": "fixed", "gpu_s_per_update": 1}},
    "store": {"kind": "replay_buffer", "capacity": 32},
    "learner": {
        "task": {"kind": "sort", "digits": 3},
        "model": {"layers": 1, "width": 16, "heads": 2, "mlp_width": 32},
        "warm_start": {"kind": "supervised", "updates": 100, "batch": 32, "learning_rate": 0.01, "warmup_updates": 5},
        "evaluation": {"every_units": 10, "sampled_prompts": 16, "greedy_prompts": 16},
        "replicas": 2,
        "target_pass_at_1": 0.01
    }
}
"""

LEARN = json.dumps({"name": "tiny", "horizon": {"updates": 12}, "groups": {"size": 4}, "trainers": {"batch": 16},
                    "learner": {key: value for key, value in json.loads(TINY)["learner"].items()
                                if key in ("task", "model", "warm_start")}})


class RunCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.tiny = self.write("tiny.json", TINY)

    def run_tiny(self, *arguments, expect=0):
        return self.call("run", self.tiny, "--backend", "cpu", *arguments, expect=expect)


class Results(RunCase):
    def test_threads_and_reruns_do_not_change_a_byte(self):
        outputs = []
        for i, jobs in enumerate(["1", "2", "3", "2"]):
            out, err = self.run_tiny("--format", "json", "--jobs", jobs, "--quiet", "--curve", f"{i}.jsonl")
            self.assertEqual(err, "")
            outputs.append((out, self.read(f"{i}.jsonl")))
        for other in outputs[1:]:
            self.assertEqual(outputs[0], other)

    def test_the_budget_is_a_metric_where_it_was_spent(self):
        metrics = json.loads(self.run_tiny("--format", "json", "--quiet")[0])["metrics"]
        self.assertEqual(metrics["learner/compute_budget"]["mean"], 40)
        self.assertGreaterEqual(metrics["learner/compute_spent"]["mean"], 40)
        result = json.loads(self.run_tiny("--format", "json", "--quiet", "--set", "horizon.updates=8")[0])
        self.assertNotIn("learner/compute_budget", result["metrics"])
        self.assertIn("horizon.updates ended the run", result["undefined"]["learner/compute_budget"])

    def test_the_result_has_timing_and_learning(self):
        result = json.loads(self.run_tiny("--format", "json", "--quiet", "--curve", "c.jsonl")[0])
        learner = result["learner"]
        self.assertEqual(len(learner["seeds"]), 6)  # replications x replicas
        self.assertEqual(len(set(learner["weights_hashes"])), 3)
        self.assertIn("staleness/mean", result["metrics"])
        for key in ["learner/pass@1", "learner/pass@16", "learner/greedy", "learner/entropy",
                    "learner/compute_to_target"]:
            self.assertEqual(result["metrics"][key]["replications"], 3, key)  # replicas share a timeline
        rows = [json.loads(line) for line in self.read("c.jsonl").splitlines()]
        for i, seed in enumerate(learner["seeds"]):
            curve = seed["curve"]
            mine = [row for row in rows if (row["replication"], row["replica"]) == divmod(i, 2)]
            self.assertEqual(curve["learner/pass@1"], [row["learner/pass@1"] for row in mine])
            units = curve["compute/units"]
            self.assertEqual(units[0], 0)
            self.assertEqual(units, sorted(units))
            # Evaluated every 10 units and at the end, which is the first update beyond the budget.
            self.assertGreaterEqual(units[-1], 40)
            self.assertLess(units[-1], 43)
            self.assertEqual(len(units), 5)
            # Before the first update all replicas are theta_0.
            self.assertEqual(curve["learner/pass@1"][0], learner["seeds"][0]["curve"]["learner/pass@1"][0])

    def test_the_learning_rate_changes_what_is_learnt_and_not_when(self):
        one, other = (json.loads(self.run_tiny("--format", "json", "--quiet", "--set",
                                               f"learner.optimizer.learning_rate={rate}")[0])
                      for rate in ("1e-3", "2e-3"))
        self.assertEqual(one["order_digest"], other["order_digest"])
        self.assertEqual(one["metrics"]["staleness/mean"], other["metrics"]["staleness/mean"])
        self.assertNotEqual(one["learner"]["weights_hashes"], other["learner"]["weights_hashes"])
        self.assertEqual(one["learner"]["theta_0"], other["learner"]["theta_0"])

    def test_the_table_names_every_seed(self):
        out, _ = self.run_tiny("--quiet")
        self.assertIn("units to pass@1 0.01", out)
        self.assertIn("\n5 ", out)


class ReadingTheCurves(RunCase):
    def result(self, *changes):
        words = [word for change in changes for word in ("--set", change)]
        return json.loads(self.run_tiny("--format", "json", "--quiet", *words)[0])

    def test_a_seed_that_never_gets_there_leaves_the_others_their_median(self):
        # One replica each: of three seeds some reach a target between the first and the last best of all.
        seeds = self.result("learner.replicas=1", "learner.target_pass_at_1=0.999")["learner"]["seeds"]
        bests = sorted(max(sum(window) / 3 for window in zip(curve, curve[1:], curve[2:]))
                       for curve in (seed["curve"]["learner/pass@1"] for seed in seeds))
        self.assertGreater(bests[1], bests[0], "the seeds are too alike for this test")
        target = (bests[0] + bests[1]) / 2
        learner = self.result("learner.replicas=1", f"learner.target_pass_at_1={target}")["learner"]
        reached = sorted(seed["compute_to_target"] for seed in learner["seeds"] if seed["compute_to_target"] is not None)
        self.assertIn(len(reached), (1, 2, 3))
        median = learner["over_seeds"]["compute_to_target"]["median"]
        self.assertEqual(median, reached[1] if len(reached) > 1 else None)

    def test_an_end_before_the_compute_is_spent_is_pointed_out(self):
        cut = self.result("horizon.updates=8")
        self.assertTrue(any("horizon.updates = 8 " in warning for warning in cut["warnings"]), cut["warnings"])
        whole = self.result()
        self.assertFalse(any("horizon.updates" in warning for warning in whole["warnings"]), whole["warnings"])

    def test_the_warm_up_is_found_within_the_updates_that_the_compute_allows(self):
        result = self.result('horizon={"updates": 5000, "units": 100, "warmup_updates": "auto"}')
        made = result["learner"]["seeds"][0]["curve"]["update"][-1]
        self.assertLess(made, 100)
        self.assertLessEqual(result["warmup_updates"], made / 2)

    def test_the_end_is_not_mixed_with_the_start(self):
        curve = self.result("learner.evaluation.every_units=1000")
        ends = [seed["curve"]["learner/pass@1"][-1] for seed in curve["learner"]["seeds"]]
        self.assertAlmostEqual(curve["metrics"]["learner/pass@1"]["mean"], sum(ends) / len(ends), places=12)
        self.assertIn("updates/ess_token", curve["metrics"])

    def test_the_curve_has_a_file_of_its_own_however_its_name_is_spelled(self):
        for curve, output in (("./x.json", "x.json"), ("x.json.manifest.json", "x.json")):
            self.refused("run", self.tiny, "--curve", curve, "--output", output, code=2, says="a file of its own")

    def test_an_older_curve_stays_when_learning_cannot_begin(self):
        self.write("old.jsonl", "of yesterday\n")
        self.call("run", self.tiny, "--quiet", "--curve", "old.jsonl", "--set",
                  'learner.warm_start={"kind": "checkpoint", "path": "nowhere.ckpt"}', expect=1)
        self.assertEqual(self.read("old.jsonl"), b"of yesterday\n")


class Stopping(RunCase):
    def test_an_interrupt_keeps_the_rows_that_were_written(self):
        process = subprocess.Popen([MILLRACE, "run", self.tiny, "--backend", "cpu", "--quiet", "--curve", "c.jsonl",
                                    "--set", "horizon.updates=200000", "--set", "horizon.units=1e12"],
                                   cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        curve = self.directory / "c.jsonl"
        until = time.monotonic() + 60
        while time.monotonic() < until and not (curve.exists() and len(curve.read_text().splitlines()) >= 4):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err.decode())
        rows = [json.loads(line) for line in curve.read_text().splitlines()]
        self.assertGreaterEqual(len(rows), 4)
        self.assertEqual(rows[0]["update"], 0)


class Resuming(RunCase):
    LONGER = ["--set", "horizon.units=120", "--jobs", "2", "--quiet", "--format", "json"]

    def started(self, *arguments):
        process = subprocess.Popen(list(map(str, [MILLRACE, "run", self.tiny, "--backend", "cpu", *arguments])),
                                   cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def check_killed(self, *change):
        words = [*self.LONGER, *change]
        start = time.monotonic()
        whole = self.run_tiny(*words, "--curve", "whole.jsonl")
        duration = time.monotonic() - start
        seed = random.randrange(1 << 30)
        draw = random.Random(seed)
        kills = 0
        for _ in range(4):
            resume = ["--resume"] if (self.directory / "kept/settings.json").exists() else []
            process = self.started(*words, "--checkpoint", "kept", *resume, "--curve", "killed.jsonl")
            try:
                process.wait(timeout=draw.uniform(0, duration))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.communicate(timeout=LONGEST_S)
        resumed = self.run_tiny(*words, "--checkpoint", "kept", "--resume", "--curve", "resumed.jsonl")
        self.assertEqual(resumed, whole, f"killed {kills} times, seed {seed}")
        self.assertEqual(self.read("resumed.jsonl"), self.read("whole.jsonl"))
        # One that has come to its end only says so again.
        self.assertEqual(self.run_tiny(*words, "--checkpoint", "kept", "--resume"), whole)

    def test_a_run_that_is_killed_again_and_again_is_the_uninterrupted_one(self):
        self.check_killed()

    def test_so_is_one_whose_timeline_depends_on_what_the_policy_says(self):
        self.check_killed("--set", "learner.replicas=1",
                          "--set", 'store.eviction={"kind": "positive_bias", "delta": 0.5}')

    def test_an_interrupted_one_stops_at_an_evaluation_and_says_how_to_go_on(self):
        endless = ["--set", "horizon.updates=200000", "--set", "horizon.units=1e9", "--jobs", "2", "--quiet"]
        process = self.started(*endless, "--checkpoint", "kept", "--curve", "stopped.jsonl")
        deadline = time.monotonic() + LONGEST_S
        while len(list(self.directory.glob("kept/*.ckpt"))) < 2:
            self.assertLess(time.monotonic(), deadline, "nothing was evaluated")
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST_S)
        self.assertEqual(process.returncode, 130, err.decode())
        self.assertIn("--checkpoint kept --resume", err.decode())
        rows = [json.loads(line) for line in self.read("stopped.jsonl").splitlines()]
        self.assertEqual({row["replication"] for row in rows}, {0, 1})
        # The third has not begun; the two others go on from where they stopped.
        length = ["--set", "horizon.updates=200000",
                  "--set", f"horizon.units={int(max(row['compute/units'] for row in rows)) + 25}"]
        words = [*length, "--quiet", "--format", "json"]
        resumed = self.run_tiny(*words, "--checkpoint", "kept", "--resume", "--curve", "resumed.jsonl")
        self.assertEqual(resumed, self.run_tiny(*words, "--curve", "whole.jsonl", "--jobs", "2"))
        self.assertEqual(self.read("resumed.jsonl"), self.read("whole.jsonl"))
        self.assertEqual(self.read("resumed.jsonl")[:200], self.read("stopped.jsonl")[:200])

    def test_a_finished_run_can_go_on(self):
        self.run_tiny("--quiet", "--checkpoint", "kept", "--set", "horizon.units=20")
        longer = self.run_tiny("--quiet", "--format", "json", "--checkpoint", "kept", "--resume")
        self.assertEqual(longer, self.run_tiny("--quiet", "--format", "json"))

    def test_an_interrupt_during_the_warm_start_ends_it(self):
        for command, path in [("run", self.tiny), ("learn", self.write("learn.json", LEARN))]:
            words = [MILLRACE, command, path, "--backend", "cpu", "--checkpoint", command,
                     "--set", "learner.warm_start.updates=1000000"]
            process = subprocess.Popen(list(map(str, words)), cwd=self.directory, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + LONGEST_S
            while not (self.directory / command / "settings.json").exists():
                self.assertLess(time.monotonic(), deadline, "nothing was started")
                time.sleep(0.01)
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=5)
            self.assertEqual((process.returncode, out), (130, b""), err.decode())
            self.assertIn("during the warm start", err.decode())
            self.assertIn(f"--checkpoint {command} --resume", err.decode())

    def test_folders_are_not_confused(self):
        short = ["--backend", "cpu", "--quiet", "--set", "replications=1"]
        run = ["run", self.tiny, *short]
        self.refused(*run, "--resume", code=2, says="--checkpoint")
        self.refused(*run, "--checkpoint", "new", "--resume", code=2, says="nothing to resume")
        self.refused(*run, "--checkpoint", self.tiny, code=2, says="tiny.json")
        whole = self.call(*run, "--checkpoint", "kept")[0]
        state = self.directory / "kept/replication-0.ckpt"
        good, settings = state.read_bytes(), self.read("kept/settings.json")
        self.refused(*run, "--checkpoint", "kept", code=2, says="--resume")
        again = [*run, "--checkpoint", "kept", "--resume"]
        for change, where in [("seed=9", "seed"), ("learner.optimizer.learning_rate=1e-4", "learning_rate"),
                              ("store.capacity=64", "capacity"), ("workers.count=3", "workers.count"),
                              ("learner.evaluation.every_units=20", "every_units"), ("replications=2", "replications")]:
            self.refused(*again, "--set", change, code=1, says=["other settings", where])
        self.refused(*again, "--set", "horizon.updates=6", code=1, says=["updates, more than the 6", "horizon.updates"])
        self.refused(*again, "--set", "horizon.units=7", code=1, says=["horizon.units = 7", "must be above"])
        self.assertEqual((state.read_bytes(), self.read("kept/settings.json")), (good, settings))
        for damaged in [good[:-1], good[:500] + bytes([good[500] ^ 1]) + good[501:], b"", b"something else"]:
            state.write_bytes(damaged)
            self.refused(*again, code=1, says="replication-0.ckpt")
        # A checkpoint of another replication, or from another folder.
        self.call("run", self.tiny, *short, "--set", "seed=9", "--checkpoint", "other")
        state.write_bytes(self.read("other/replication-0.ckpt"))
        self.refused(*again, code=1, says="other settings")
        state.write_bytes(good)
        self.assertEqual(self.call(*again)[0], whole)


class Usage(RunCase):
    def test_a_checkpoint_needs_a_learner(self):
        self.write("timing.json", TINY[:TINY.index(',\n    "learner"')].replace('"units": 40, ', "") + "}")
        self.refused("run", "timing.json", "--checkpoint", "kept", code=2, says="has none")
        self.assertFalse((self.directory / "kept").exists())

    def test_what_cannot_be_written_is_said_before_anything_is_computed(self):
        endless = ["--set", "learner.warm_start.updates=1000000"]
        for option in ["--output", "--curve", "--checkpoint"]:
            if option == "--checkpoint":
                self.write("nodir", "a file")
            path = "nodir/x.json"
            self.refused("run", self.tiny, *endless, option, path, code=2, says=path)
            self.refused("learn", self.write("learn.json", LEARN), *endless, option, path, code=2, says=path)

    def test_absurd_batches_are_refused(self):
        for change, where in [("trainers.batch=1000000", "trainers.batch"), ("groups.size=1000000", "groups.size")]:
            self.refused("run", self.tiny, "--set", change, "--set", "store.capacity=4000000", code=3,
                         says=[where, "at most 65536"])

    def test_a_policy_that_becomes_worse_is_pointed_out(self):
        out, _ = self.run_tiny("--quiet", "--set", "learner.optimizer.learning_rate=1", "--set",
                               "learner.warm_start.updates=300", "--set", "learner.evaluation.greedy_prompts=256")
        self.assertIn("The policy has become worse", out)

    def test_a_curve_needs_a_learner(self):
        self.write("timing.json", TINY[:TINY.index(',\n    "learner"')].replace('"units": 40, ', "") + "}")
        _, err = self.call("run", "timing.json", "--curve", "c.jsonl", expect=2)
        self.assertIn("has none", err)

    def test_a_curve_needs_a_file_of_its_own(self):
        for arguments in [("--output", "x"), ("--steps", "x")]:
            _, err = self.run_tiny("--curve", "x", *arguments, expect=2)
            self.assertIn("file of its own", err)


if __name__ == "__main__":
    main()
