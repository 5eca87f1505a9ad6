#!/usr/bin/python3
"""`millrace plan` as somebody calls it:  plan_test.py MILLRACE SOURCE_DIR [unittest arguments]"""
import json
import pathlib
import signal
import subprocess
import time

from case import LONGEST_S, MILLRACE, ROOT, CommandCase, main

CALIBRATION = {
    "name": "small",
    "sources": [
        {"path": part, "text": "made up", "where": "this test"}
        for part in ("workers", "groups", "trainers", "noise", "price")
    ],
    "workers": {
        "slots": 4,
        "service": {"kind": "first_order", "gpu_s_per_rollout": {"kind": "lognormal", "mean": 3, "cv": 0.5}},
    },
    "groups": {"size": 4},
    "trainers": {"batch": 16, "service": {"kind": "fixed", "gpu_s_per_update": 16}},
    "noise": {"sigma2": {"kind": "floor_growth", "floor": 1, "growth": 0.1}, "rho": 0.1},
    "price": {"usd_per_gpu_hour": 3.6},
    "target": {"on_policy_updates": 100, "source": "this test"},
}


class PlanTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.calibration = self.write("cal.json", json.dumps(CALIBRATION, indent=2))

    def plan(self, *arguments, expect=0):
        out, _ = self.call("plan", "--gpus", 8, "--profile", self.calibration, "--quiet", *arguments, expect=expect)
        return out

    def test_recommendation_runs_and_gives_its_numbers_again(self):
        plan = json.loads(self.plan("--format", "json", "--out", "made"))
        best = plan["recommended"]
        design = best["design"]
        self.assertEqual(design["workers"] + design["trainers"], 8)
        self.assertEqual(plan, json.loads(self.read("made/plan.json")))
        self.call("validate", "made/recommended.json")
        result = json.loads(self.call("run", "made/recommended.json", "--format", "json")[0])
        for key in ("time/update_period_s", "noise/relative_variance", "staleness/mean", "replay/mean"):
            self.assertEqual(result["metrics"][key], best["metrics"][key], key)
        # USD to the target, put together from its parts.
        metrics = {key: value["mean"] for key, value in best["metrics"].items()}
        self.assertAlmostEqual(
            best["objective"]["mean"] / (metrics["compute/usd_per_update"] * 100 * metrics["noise/relative_variance"]),
            1, delta=0.01)
        self.assertAlmostEqual(
            best["days_to_target"]["mean"] / (metrics["time/update_period_s"] * 100 *
                                              metrics["noise/relative_variance"] / 86400), 1, delta=0.01)
        self.assertNotIn("days_to_target",
                         json.loads(self.plan("--format", "json", "--minimize", "usd_per_update"))["recommended"])

    def test_what_is_said_beside_it(self):
        plan = json.loads(self.plan("--format", "json"))
        self.assertGreaterEqual(len(plan["deviations"]), 4)
        for other in plan["deviations"]:
            changed = sum(other["design"][key] != plan["recommended"]["design"][key]
                          for key in ("trainers", "store", "weight_sync_every"))
            self.assertEqual(changed, 1, other["what"])
        self.assertTrue(plan["why"]["period"])
        variance = plan["why"]["variance"]
        self.assertAlmostEqual(variance["all"], plan["recommended"]["metrics"]["noise/relative_variance"]["mean"])
        self.assertGreaterEqual(variance["reuse"], variance["repeats"])
        table = self.plan()
        for part in ("Why this fast:", "One step away", "Runner-ups:", plan["answer"]):
            self.assertIn(part, table)

    def test_number_of_threads_changes_nothing(self):
        self.assertEqual(self.plan("--format", "json", "--jobs", 1), self.plan("--format", "json", "--jobs", 3))

    def test_limits_stores_and_changes(self):
        fresh = json.loads(self.plan("--format", "json", "--max-staleness", 1))
        self.assertLessEqual(fresh["recommended"]["metrics"]["staleness/mean"]["mean"], 1)
        queue = json.loads(self.plan("--format", "json", "--store", "transfer_queue"))
        self.assertEqual(queue["recommended"]["design"]["store"]["kind"], "transfer_queue")
        dear = json.loads(self.plan("--format", "json", "--set", "price.usd_per_gpu_hour=36"))
        plain = json.loads(self.plan("--format", "json"))
        self.assertEqual(dear["recommended"]["design"], plain["recommended"]["design"])
        self.assertAlmostEqual(dear["recommended"]["objective"]["mean"] / plain["recommended"]["objective"]["mean"], 10)

    def test_no_design_meets_the_limit(self):
        out = self.plan("--store", "replay_buffer", "--max-staleness", 0.1, "--out", "made", expect=1)
        self.assertIn("No design on 8 GPUs keeps staleness/mean at most 0.1", out)
        self.assertIn("The nearest found is W = ", out)
        self.assertFalse((self.directory / "made/recommended.json").exists())
        self.assertIsNone(json.loads(self.read("made/plan.json"))["recommended"])

    def test_what_it_takes_for_granted(self):
        plan = json.loads(self.plan("--format", "json"))
        text = "\n".join(plan["assumptions"])
        self.assertIn("needs 100 updates to the target; its source: this test", text)
        self.assertIn("weight transfers take no time", text)
        self.assertIn("rewards take no time", text)
        self.assertNotIn("noise", text)  # this one has it
        noise = json.loads(self.plan("--format", "json", "--minimize", "update_period_s", "--set",
                                     "weight_sync.transfer_s=1"))["assumptions"]
        self.assertNotIn("target", "\n".join(noise))
        self.assertNotIn("weight transfers", "\n".join(noise))
        self.assertIn("What it takes for granted:\n  " + plan["assumptions"][0], self.plan())

    def test_equals_are_said_to_be_equals(self):
        plan = json.loads(self.plan("--format", "json"))
        equals = plan["recommended"]["equals"]
        self.assertGreaterEqual(equals, 1)
        near = sum(other["excess"]["mean"] <= 0.005 for other in plan["runner_ups"] if other["meets_limits"])
        self.assertLessEqual(equals - 1, near + 1)
        self.assertIn("within 0.5 %", self.plan())

    def test_one_gpu_is_one_gpu(self):
        out, _ = self.call("plan", "--gpus", 2, "--profile", self.calibration, "--quiet")
        self.assertIn("Let 1 GPU generate and 1 train.", out)
        self.assertNotIn("1 GPUs", out)

    def test_an_interrupt_is_heeded_before_the_first_simulation(self):
        # As many designs as there can be: bounds of all of them come first.
        process = subprocess.Popen([MILLRACE, "plan", "--gpus", "256", "--at-most", "--profile", self.calibration,
                                    "--quiet"], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while b"SigBlk:\t0000000000000000" in pathlib.Path(f"/proc/{process.pid}/status").read_bytes():
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_S)
        self.assertEqual((process.returncode, out), (130, b""), err)
        self.assertIn(b"nothing to report", err)

    def test_bad_questions_and_files(self):
        profile = ("--profile", self.calibration)
        self.refused("plan", *profile, "--gpus", 1, code=2, says="--gpus takes a whole number from 2")
        self.refused("plan", *profile, "--gpus", 10001, code=2, says=["to 10000", "every split, which are N - 1"])
        self.refused("plan", *profile, "--gpus", 257, "--at-most", code=2, says=["to 256", "N (N - 1) / 2"])
        self.refused("plan", *profile, code=2, says="--gpus")
        self.refused("plan", "--gpus", 8, code=2, says="--profile")
        self.refused("plan", *profile, "--gpus", 8, "--minimize", "usd", code=2, says="usd_to_target")
        self.refused("plan", *profile, "--gpus", 8, "--max-stalness", 3, code=2, says="--max-staleness")
        self.refused("plan", *profile, "--gpus", 8, "--max-staleness", -1, code=2,
                     says="--max-staleness takes a number of versions, 0 or more, not \"-1\"")
        self.refused("plan", *profile, "--gpus", 8, "--max-staleness-p99", "nan", code=2,
                     says="--max-staleness-p99 takes a number of versions, 0 or more, not \"nan\"")
        own = self.write("recommended.json", json.dumps(CALIBRATION))
        self.refused("plan", "--profile", own, "--gpus", 8, "--out", ".", code=2, says="overwrite the calibration")
        self.assertEqual(json.loads(self.read("recommended.json")), CALIBRATION)
        self.refused("plan", *profile, "--gpus", 8, "--set", "workers.count=3", code=3, says="workers.count")
        self.refused("plan", "--profile", ROOT / "scenarios/quickstart.json", "--gpus", 8, code=3,
                     says=["quickstart.json:", "this is a scenario, not a calibration"])
        self.refused("run", self.calibration, code=3, says="this is a calibration, not a scenario")
        free = {key: value for key, value in CALIBRATION.items() if key != "price"}
        free["sources"] = [source for source in free["sources"] if source["path"] != "price"]
        self.refused("plan", "--profile", self.write("free.json", json.dumps(free)), "--gpus", 8, code=2,
                     says="price.usd_per_gpu_hour")

    def test_calibrations_are_validated_and_have_a_schema(self):
        self.assertIn("ok (small)", self.call("validate", self.calibration)[0])
        schema = self.call("schema", "calibration")[0]
        self.assertEqual(schema.encode(), (ROOT / "scenarios/schema/calibration.schema.json").read_bytes())
        for shipped in sorted((ROOT / "scenarios/calibrations").glob("*.json")):
            self.call("validate", shipped)


if __name__ == "__main__":
    main()
