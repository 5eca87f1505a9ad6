#!/usr/bin/python3
"""What scripts and people may rely on in `millrace explain`:  explain_test.py MILLRACE SOURCE_DIR

Only Python's standard library.
"""
import json

from case import CommandCase, main

# 64 rollouts of 10 s on 16 slots, grading 0.5 s, update 8 s, weights 1 s, on-policy: 4 x 10 + 0.5 + 8 + 1 s.
LOOP = """{
    "name": "loop",
    "seed": 3,
    "replications": 4,
    "horizon": {"updates": 60},
    "workers": {"count": 16, "slots": 1,
                "service": {"kind": "first_order", "gpu_s_per_rollout": 10}},
    "groups": {"size": 4},
    "reward": {"latency_s": 0.5},
    "trainers": {"count": 1, "batch": 64, "service": {"kind": "fixed", "gpu_s_per_update": 8}},
    "store": {"kind": "transfer_queue", "capacity": 128},
    "weight_sync": {"transfer_s": 1, "trainers_wait": true},
    "admission": {"kind": "token_bucket", "steps_ahead": 0, "rollouts_per_update": 64}
}
"""
RANDOM = ["--set", 'workers.service.gpu_s_per_rollout={"kind": "lognormal", "mean": 10, "cv": 0.5}']
NO_ADMISSION = 'admission={"kind": "none"}'


class ExplainTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.loop = self.write("loop.json", LOOP)

    def explain(self, *arguments):
        out, err = self.call("explain", self.loop, *arguments)
        self.assertEqual(err, "")
        return out

    def document(self, *arguments):
        return json.loads(self.explain("--format", "json", *arguments))

    def test_constant_times_are_explained_exactly(self):
        document = self.document()
        graph = document["graph"]
        self.assertIs(graph["exact"], True)
        self.assertEqual(graph["left_out"], [])
        self.assertAlmostEqual(graph["period_s"], 49.5, places=9)
        self.assertAlmostEqual(document["simulated"]["time/update_period_s"]["mean"], 49.5, places=6)
        self.assertAlmostEqual(document["simulated_over_graph"], 1.0, places=7)
        cycle = graph["critical_cycle"]
        self.assertEqual(cycle["updates"], 1)
        self.assertEqual({part["activity"]: (part["times"], part["duration_s"]) for part in cycle["parts"]},
                         {"generation": (4, 40), "grading": (1, 0.5), "update": (1, 8), "weight transfer": (1, 1)})
        self.assertIn("steps_ahead 0", document["binds"])

    def test_what_one_more_of_each_changes(self):
        changes = {change["what"]: change for change in self.document()["changes"]}
        period = {what: change["difference"]["time/update_period_s"] for what, change in changes.items()}
        self.assertAlmostEqual(period["one more worker"]["mean"], 0, places=6)  # 64 on 17 slots are four rounds, too
        self.assertAlmostEqual(period["one more trainer"]["mean"], -4, places=6)
        self.assertAlmostEqual(period["room for one more batch"]["mean"], 0, places=6)
        # One step ahead the workers never wait: 40 s.
        self.assertAlmostEqual(period["one more step ahead"]["mean"], -9.5, places=6)
        # The first of a batch's four rounds begins before the update of the batch before it is done.
        self.assertAlmostEqual(changes["one more step ahead"]["difference"]["staleness/mean"]["mean"], 0.25, places=6)
        for estimate in period.values():
            self.assertEqual(estimate["replications"], 4)
            self.assertLess(estimate["half_width"], 1e-6)
        # 17 GPUs of 49.5 s, 18 of 45.5 s
        cost = changes["one more trainer"]["difference"]["compute/reserved_gpu_s_per_update"]["mean"]
        self.assertAlmostEqual(cost, 18 * 45.5 - 17 * 49.5, places=5)

    def test_spread_has_a_price(self):
        document = self.document(*RANDOM)
        self.assertIs(document["graph"]["exact"], False)
        self.assertIs(document["graph"]["constant_times"], False)
        self.assertAlmostEqual(document["graph"]["period_s"], 49.5, places=9)
        self.assertGreater(document["simulated_over_graph"], 1.0)
        period = document["simulated"]["time/update_period_s"]
        self.assertGreater(period["mean"] + period["half_width"], document["graph"]["floor_s"])
        self.assertIn("price of variability", self.explain(*RANDOM))

    def test_threads_do_not_change_a_byte(self):
        for form in ["json", "table"]:
            self.assertEqual(self.explain(*RANDOM, "--format", form, "--jobs", "1"),
                             self.explain(*RANDOM, "--format", form, "--jobs", "3"))

    def test_the_graph_is_a_picture(self):
        self.explain("--dot", "graph.dot")
        dot = self.read("graph.dot").decode()
        self.assertTrue(dot.startswith("digraph pipeline {"))
        self.assertTrue(dot.endswith("}\n"))
        self.assertIn('label="update begins", color=red', dot)
        self.assertIn('label="rollout 64"', dot)
        self.refused("explain", self.loop, "--dot", "loop.json", code=2, says="loop.json")

    def test_what_is_not_possible_says_why(self):
        sharded = ["--set", 'store={"kind": "replay_buffer", "capacity": 128, "sharded": true}', "--set",
                   "trainers.count=2", "--set", NO_ADMISSION]
        changes = {change["what"]: change for change in self.document(*sharded)["changes"]}
        self.assertIn("not_possible", changes["one more trainer"])
        self.assertIn("difference", changes["one more worker"])
        self.assertIn("not possible: ", self.explain(*sharded))

    def test_a_buffer_leaves_the_trainers_alone(self):
        document = self.document("--set", 'store={"kind": "replay_buffer", "capacity": 128}', "--set", NO_ADMISSION)
        self.assertEqual(document["graph"]["period_s"], 9)
        self.assertAlmostEqual(document["graph"]["rollouts_per_update"], 16 * 9 / 10)
        self.assertIn("never wait", document["binds"])

    def test_what_gets_stuck_is_a_failure_and_bad_input_is_bad_input(self):
        stuck = ["--set", 'store={"kind": "replay_buffer", "capacity": 64, "sampling": "uniform_without_replacement", '
                 '"eviction": {"kind": "positive_bias", "delta": 0.5}}', "--set",
                 'reward={"correct_probability": 1e-9}', "--set", NO_ADMISSION]
        self.refused("explain", self.loop, *stuck, code=1, says="can never fill")
        self.refused("explain", self.loop, "--set", "workers.count=0", code=3, says="workers.count")
        self.refused("explain", self.loop, "--format", "csv", code=2, says="csv")


if __name__ == "__main__":
    main()
