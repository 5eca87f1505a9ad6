#!/usr/bin/python3
"""What scripts and people may rely on in `millrace run` with a learner:  run_learner_test.py MILLRACE SOURCE_DIR

A tiny model in a tiny pipeline: the same bytes for any number of threads, curves that agree with the result, and
complaints that say why. Only Python's standard library.
"""
import json
import signal
import subprocess
import time

from case import MILLRACE, CommandCase, main

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

    def test_the_result_has_timing_and_learning(self):
        result = json.loads(self.run_tiny("--format", "json", "--quiet", "--curve", "c.jsonl")[0])
        learner = result["learner"]
        self.assertEqual(len(learner["seeds"]), 6)  # replications x replicas
        self.assertEqual(len(set(learner["weights_hashes"])), 3)
        self.assertIn("staleness/mean", result["metrics"])
        for key in ["learner/pass@1", "learner/pass@16", "learner/greedy", "learner/entropy",
                    "learner/compute_to_target"]:
            self.assertEqual(result["metrics"][key]["replications"], 6, key)
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


class Usage(RunCase):
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
