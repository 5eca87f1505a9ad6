#!/usr/bin/python3
"""What scripts and people may rely on in `millrace learn`, `warm-start` and `devices`:  learn_test.py MILLRACE SOURCE_DIR

Runs of a few updates of a tiny model: exit codes, files, that results are the same bytes for any number of threads and
after an interruption, and that every complaint says why. Only Python's standard library.
"""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from case import LONGEST_S, MILLRACE, ROOT, CommandCase, main

TINY = """{
    "name": "tiny",
    "replications": 3,
    "horizon": {"updates": 12},
    "groups": {"size": 4},
    "trainers": {"batch": 16},
    "learner": {
        "task": {"kind": "sort", "digits": 3},
        "model": {"layers": 1, "width": 16, "heads": 2, "mlp_width": 32},
        "warm_start": {"kind": "supervised", "updates": 100, "batch": 32, "learning_rate": 0.01, "warmup_updates": 5},
        "optimizer": {"learning_rate": 0.002, "warmup_updates": 2},
        "evaluation": {"every_updates": 5, "sampled_prompts": 16, "greedy_prompts": 16}
    }
}
"""
EVALUATED = [0, 5, 10, 12]
ENDLESS = ["--set", "horizon.updates=10000000"]
METRICS = ["learner/pass@1", "learner/pass@4", "learner/pass@16", "learner/greedy", "learner/entropy",
           "learner/answer_tokens", "learner/generated_tokens", "learner/trained_tokens"]
STARTS = ["learner/start_pass@1", "learner/start_pass@16", "learner/start_greedy", "learner/start_entropy"]


class LearnCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.tiny = self.write("tiny.json", TINY)

    def files(self):
        return {str(path.relative_to(self.directory)) for path in self.directory.rglob("*")} - {"tiny.json"}

    def learn(self, *arguments, expect=0):
        return self.call("learn", self.tiny, "--backend", "cpu", *arguments, expect=expect)

    def learn_json(self, *arguments):
        return json.loads(self.learn("--format", "json", *arguments)[0])

    def rows(self, name):
        return [json.loads(line) for line in self.read(name).splitlines()]


class Results(LearnCase):
    def test_threads_and_reruns_do_not_change_a_byte(self):
        for form in ["json", "csv"]:
            outputs = []
            for i, jobs in enumerate(["1", "2", "2"]):
                out, err = self.learn("--format", form, "--jobs", jobs, "--output", f"{form}{i}.json",
                                      "--curve", f"{form}{i}.jsonl")
                self.assertEqual(err, "")
                outputs.append((out, self.read(f"{form}{i}.json"), self.read(f"{form}{i}.jsonl")))
            self.assertEqual(outputs[0], outputs[1])
            self.assertEqual(outputs[1], outputs[2])
            self.assertTrue(all(outputs[0]))

    def test_metrics_are_those_of_the_last_evaluation(self):
        document = self.learn_json("--curve", "c.jsonl")
        self.assertEqual(document["millrace_learn_result"], 1)
        self.assertEqual((document["updates"], document["replications"]), (12, 3))
        self.assertIs(document["interrupted"], False)
        self.assertEqual(list(document["metrics"]), METRICS + STARTS)
        self.assertEqual(document["undefined"], {})
        rows = self.rows("c.jsonl")
        for key, metric in document["metrics"].items():
            self.assertEqual(metric["replications"], 3)
            at, column = (0, key.replace("start_", "")) if "start_" in key else (12, key)
            values = [row[column] for row in rows if row["update"] == at]
            self.assertAlmostEqual(metric["mean"], sum(values) / 3)
            self.assertGreaterEqual(metric["half_width"], 0)
        for key in ["learner/pass@1", "learner/pass@16", "learner/greedy"]:
            self.assertTrue(0 <= document["metrics"][key]["mean"] <= 1)
        self.assertRegex(document["theta_0"]["hash"], "^[0-9a-f]{16}$")
        self.assertRegex(document["weights_hash"], "^[0-9a-f]{16}$")
        self.assertNotEqual(document["theta_0"]["hash"], document["weights_hash"])

    def test_curves(self):
        document = self.learn_json("--curve", "c.jsonl")
        rows = self.rows("c.jsonl")
        self.assertEqual([(row["update"], row["replication"]) for row in rows],
                         [(update, replication) for update in EVALUATED for replication in range(3)])
        curves = document["curves"]
        self.assertEqual(curves.pop("update"), EVALUATED)
        self.assertEqual(set(curves), set(rows[0]) - {"update", "replication"})
        for key, of_replications in curves.items():
            for replication, values in enumerate(of_replications):
                self.assertEqual(values, [row[key] for row in rows if row["replication"] == replication], key)
            # Before the first update there is nothing to say of updates.
            self.assertEqual(of_replications[0][0] is None, key.startswith("updates/"), key)
        table = list(csv.DictReader(io.StringIO(self.learn("--format", "csv")[0])))
        self.assertEqual([{key: json.loads(text or "null") for key, text in row.items()} for row in table], rows)
        # All start from one policy, evaluated with the same random numbers, and part from there.
        self.assertEqual(len({row["learner/entropy"] for row in rows if row["update"] == 0}), 1)
        self.assertEqual(len({row["learner/entropy"] for row in rows if row["update"] == 12}), 3)
        tokens = [row["learner/generated_tokens"] for row in rows if row["replication"] == 1]
        self.assertEqual(tokens[0], 0)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_the_curve_and_the_warm_start_do_not_depend_on_the_seed_of_learning(self):
        one, two = self.learn_json("--seed", 1), self.learn_json("--seed", 2)
        self.assertEqual(one["theta_0"], two["theta_0"])
        self.assertNotEqual(one["weights_hash"], two["weights_hash"])
        self.assertEqual(one, self.learn_json("--set", "seed=1"))
        # A replication is the same whichever others there are.
        alone = self.learn_json("--replications", 1)
        for key in METRICS:
            self.assertEqual(alone["curves"][key][0], one["curves"][key][0], key)
            self.assertNotIn("half_width", alone["metrics"][key])
            self.assertTrue(alone["metrics"][key]["note"])

    def test_a_result_holds_what_repeats_it(self):
        out, _ = self.learn("--set", "learner.objective.clip=none", "--seed", "3", "--format", "json")
        again = self.write("again.json", json.dumps(json.loads(out)["settings"]))
        self.assertEqual(self.call("learn", again, "--backend", "cpu", "--format", "json")[0], out)

    def test_times_and_hosts_are_in_the_manifest_only(self):
        self.learn("--output", "r.json", "--jobs", "2")
        self.assertEqual(self.files(), {"r.json", "r.json.manifest.json"})
        manifest = json.loads(self.read("r.json.manifest.json"))
        self.assertRegex(manifest["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreater(manifest["wall_s"], 0)
        self.assertEqual((manifest["jobs"], manifest["updates_made"]), (2, 12))
        self.assertIn("CPU", manifest["device"])
        result = self.read("r.json").decode()
        for word in ["host", "started", "wall_s", "jobs", "command_line", "device"]:
            self.assertNotIn(f'"{word}"', result)
        self.assertNotIn(str(self.tiny), result)
        self.assertEqual(self.learn("--output", "-")[0], result)

    def test_a_policy_that_is_never_right_learns_nothing_and_says_so(self):
        words = ["--set", "learner.warm_start.updates=1"]
        document = self.learn_json(*words)
        self.assertEqual(document["metrics"]["learner/trained_tokens"]["mean"], 0)
        self.assertEqual(len(document["warnings"]), 1)
        self.assertIn("Warning: Nothing was learnt", self.learn(*words)[0])
        self.assertEqual(self.learn_json()["warnings"], [])

    def test_the_table_shows_start_and_end_of_every_replication(self):
        document = self.learn_json()
        table, err = self.learn()
        self.assertEqual(err, "")
        self.assertIn(document["theta_0"]["hash"], table)
        for replication in range(3):
            cells = [next(line for line in table.splitlines() if line.startswith(f"{replication} "))]
            numbers = [float(cell) for cell in cells[0].split()[1:]]
            keys = ["learner/pass@1", "learner/pass@16", "learner/greedy", "learner/entropy"]
            ends = [document["curves"][key][replication][index] for key in keys for index in (0, -1)]
            self.assertEqual(numbers, [round(end, 3) for end in ends])
        for word in ["median", "quartile 1", "quartile 3", "updates/s", "CPU"]:
            self.assertIn(word, table)


class Resuming(LearnCase):
    def stopped(self, *arguments, how, rows):
        """Stops an endless run that has written so many rows; its output."""
        words = [MILLRACE, "learn", self.tiny, "--backend", "cpu", *ENDLESS, "--curve", "stopped.jsonl", *arguments]
        process = subprocess.Popen(list(map(str, words)), cwd=self.directory, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + LONGEST_S
        curve = self.directory / "stopped.jsonl"
        while not curve.exists() or curve.read_bytes().count(b"\n") < rows:
            self.assertLess(time.monotonic(), deadline, "nothing was evaluated")
            self.assertIsNone(process.poll(), "the run ended by itself")
            time.sleep(0.01)
        process.send_signal(how)
        out, err = process.communicate(timeout=LONGEST_S)
        self.assertEqual(process.returncode, 130 if how == signal.SIGINT else -how, err.decode())
        return out.decode(), err.decode()

    def test_an_interrupted_run_reports_what_was_evaluated(self):
        out, err = self.stopped("--format", "json", "--output", "r.json", how=signal.SIGINT, rows=9)
        document = json.loads(out)
        self.assertIs(document["interrupted"], True)
        self.assertIn("Interrupted", err)
        self.assertEqual(self.read("r.json").decode(), out)
        rows = self.rows("stopped.jsonl")
        self.assertEqual(document["updates"], rows[-1]["update"])
        self.assertEqual(document["curves"]["update"], list(range(0, document["updates"] + 1, 5)))
        # It is what a run of only so many updates gives.
        whole = self.learn_json("--set", f"horizon.updates={document['updates']}")
        self.assertEqual((whole["metrics"], whole["curves"]), (document["metrics"], document["curves"]))

    def check_resumed(self, how):
        self.stopped("--checkpoint", "kept", how=how, rows=9)
        self.assertLessEqual({"kept/state.ckpt", "kept/curve.jsonl", "kept/settings.json"}, self.files())
        # So many more than were made: the last line may be ahead of the state, or cut off.
        reached = int(re.findall(rb'"update":(\d+)', self.read("kept/curve.jsonl"))[-1])
        length = ["--set", f"horizon.updates={reached + 13}"]
        resumed = self.learn(*length, "--checkpoint", "kept", "--resume", "--curve", "resumed.jsonl", "--format", "json")
        whole = self.learn(*length, "--curve", "whole.jsonl", "--format", "json")
        self.assertEqual(resumed, whole)
        self.assertEqual(self.read("resumed.jsonl"), self.read("whole.jsonl"))
        self.assertEqual(self.read("kept/curve.jsonl"), self.read("whole.jsonl"))

    def test_an_interrupted_and_resumed_run_is_the_uninterrupted_one(self):
        self.check_resumed(signal.SIGINT)

    def test_so_is_one_that_was_killed(self):
        self.check_resumed(signal.SIGKILL)

    def test_one_that_was_stopped_before_its_first_evaluation_starts_then(self):
        # A long warm start, during which it is stopped.
        long = ["--set", "learner.warm_start.updates=1000", "--set", "horizon.updates=5"]
        whole = self.learn(*long, "--curve", "whole.jsonl", "--format", "json")
        for how, code in [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]:
            folder = f"kept{code}"
            words = [MILLRACE, "learn", self.tiny, "--backend", "cpu", *long, "--checkpoint", folder]
            process = subprocess.Popen(words, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + LONGEST_S
            while not (self.directory / folder / "settings.json").exists():
                self.assertLess(time.monotonic(), deadline, "nothing was started")
                time.sleep(0.01)
            process.send_signal(how)
            out, err = process.communicate(timeout=LONGEST_S)
            self.assertEqual((process.returncode, out), (code, b""), err.decode())
            self.assertEqual(b"--resume" in err, how == signal.SIGINT)
            self.assertNotIn(f"{folder}/state.ckpt", self.files())
            resumed = self.learn(*long, "--checkpoint", folder, "--resume", "--curve", "resumed.jsonl",
                                 "--format", "json")
            self.assertEqual(resumed, whole)
            self.assertEqual(self.read("resumed.jsonl"), self.read("whole.jsonl"))
            self.assertEqual(self.read(f"{folder}/curve.jsonl"), self.read("whole.jsonl"))

    def test_a_finished_run_can_go_on(self):
        self.learn("--checkpoint", "kept", "--set", "horizon.updates=10")
        longer, _ = self.learn("--checkpoint", "kept", "--resume", "--format", "json")
        self.assertEqual(longer, self.learn("--format", "json")[0])
        # And one that is resumed at its end has nothing to do.
        self.assertEqual(self.learn("--checkpoint", "kept", "--resume", "--format", "json")[0], longer)

    def test_folders_are_not_confused(self):
        self.refused("learn", self.tiny, "--resume", code=2, says="--checkpoint")
        self.refused("learn", self.tiny, "--checkpoint", "new", "--resume", code=2, says="nothing to resume")
        self.refused("learn", self.tiny, "--checkpoint", self.tiny, code=2, says="tiny.json")
        self.learn("--checkpoint", "kept")
        before = self.read("kept/state.ckpt"), self.read("kept/curve.jsonl")
        self.refused("learn", self.tiny, "--checkpoint", "kept", code=2, says="--resume")
        for change, where in [("seed=9", "seed"), ("learner.optimizer.learning_rate=1e-4", "learning_rate"),
                              ("learner.evaluation.samples=20", "samples"), ("trainers.batch=32", "batch")]:
            self.refused("learn", self.tiny, "--backend", "cpu", "--checkpoint", "kept", "--resume", "--set", change,
                         code=1, says=["other settings", where])
        # It has made 12 updates already.
        settings = self.read("kept/settings.json")
        self.refused("learn", self.tiny, "--backend", "cpu", "--checkpoint", "kept", "--resume", "--set",
                     "horizon.updates=5", code=1,
                     says=["12 updates", "the 5 in all", "horizon.updates must be at least 12"])
        self.assertEqual((self.read("kept/state.ckpt"), self.read("kept/curve.jsonl")), before)
        self.assertEqual(self.read("kept/settings.json"), settings)

    def test_a_run_whose_settings_are_lost_is_not_resumed(self):
        self.learn("--checkpoint", "kept")
        settings = self.directory / "kept/settings.json"
        whole = settings.read_bytes()
        for damaged in [whole[:-10], b"", b"[]"]:
            settings.write_bytes(damaged)
            self.refused("learn", self.tiny, "--backend", "cpu", "--checkpoint", "kept", "--resume", code=1,
                         says="settings.json is damaged")
            self.assertEqual(settings.read_bytes(), damaged)
        settings.unlink()
        self.refused("learn", self.tiny, "--backend", "cpu", "--checkpoint", "kept", "--resume", code=1,
                     says="settings.json is missing")

    def test_on_another_instruction_set_the_other_theta_0_is_named(self):
        self.learn("--checkpoint", "kept")
        for name in ["baseline", "v3", "v4"]:
            done = subprocess.run([MILLRACE, "learn", self.tiny, "--checkpoint", "kept", "--resume"],
                                  cwd=self.directory, capture_output=True, timeout=LONGEST_S, check=False,
                                  env={**os.environ, "MILLRACE_CPU_ISA": name})
            if done.returncode != 0 and b"which is not to be had" not in done.stderr:
                self.assertIn(b"started from another theta_0", done.stderr)

    def test_a_damaged_state_is_not_resumed(self):
        self.learn("--checkpoint", "kept")
        state = self.directory / "kept/state.ckpt"
        whole = state.read_bytes()
        for damaged in [whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], b"", b"something else"]:
            state.write_bytes(damaged)
            self.refused("learn", self.tiny, "--backend", "cpu", "--checkpoint", "kept", "--resume", code=1,
                         says="state.ckpt")


class WarmStart(LearnCase):
    def make(self, *arguments):
        out, err = self.call("warm-start", self.tiny, "--backend", "cpu", "--output", "theta0.ckpt", *arguments)
        self.assertEqual(err, "")
        return out, re.search(r"^hash +([0-9a-f]{16})$", out, re.MULTILINE)[1]

    def from_checkpoint(self, **more):
        start = json.dumps({"kind": "checkpoint", "path": "theta0.ckpt", **more})
        return ["--set", f"learner.warm_start={start}"]

    def test_learning_from_a_checkpoint_is_learning_from_its_warm_start(self):
        report, theta_0 = self.make()
        self.assertEqual(self.files(), {"theta0.ckpt"})
        for word in ["parameters", "supervised updates", "pass@1", "greedy", "seconds", "CPU"]:
            self.assertIn(word, report)
        whole = self.learn_json()
        self.assertEqual(whole["theta_0"]["hash"], theta_0)
        loaded = self.learn_json(*self.from_checkpoint(hash=theta_0))
        for key in ["metrics", "curves", "theta_0", "weights_hash"]:
            self.assertEqual(loaded[key], whole[key])
        self.assertIn("from theta0.ckpt", self.learn(*self.from_checkpoint())[0])
        self.assertEqual(self.make("--jobs", "2")[1], theta_0)

    def test_checkpoints_that_do_not_fit(self):
        _, theta_0 = self.make()
        for change, says in [(self.from_checkpoint(hash="0123456789abcdef"), [theta_0, "0123456789abcdef"]),
                             (self.from_checkpoint(path="missing.ckpt"), "missing.ckpt"),
                             (self.from_checkpoint(path="tiny.json"), "tiny.json"),
                             ([*self.from_checkpoint(), "--set", "learner.model.width=32"], "width 32"),
                             ([*self.from_checkpoint(), "--set", "learner.model.context=30",
                               "--set", "learner.task.digits=4"], "theta0.ckpt")]:
            self.refused("learn", self.tiny, "--backend", "cpu", *change, code=1, says=says)

    def test_what_warm_start_refuses(self):
        self.refused("warm-start", self.tiny, code=2, says="--output")
        self.refused("warm-start", self.tiny, "--output", self.tiny, code=2, says="overwrite the learn file")
        self.refused("warm-start", self.tiny, "--output", "missing/t.ckpt", code=2, says="missing/t.ckpt")
        self.refused("warm-start", self.tiny, "--output", "-", code=2, says="theta_0")
        self.refused("warm-start", self.tiny, "--output", "t.ckpt", *self.from_checkpoint(), code=2, says="checkpoint")
        self.assertEqual(self.read("tiny.json").decode(), TINY)
        self.assertEqual(self.files(), set())


class Usage(LearnCase):
    def test_help_is_an_answer(self):
        for command in ["learn", "warm-start", "devices"]:
            out, err = self.call(command, "--help")
            self.assertIn("Usage", out)
            self.assertEqual(err, "")

    def test_devices(self):
        out, err = self.call("devices")
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^CPU: .+, \d+ threads?$")
        self.assertRegex(out, r"learner runs on CPU (baseline|x86-64)")
        self.assertRegex(out, r"(?m)^GPU( \d+)?: ")
        self.assertIn("CUDA kernels", out)
        version, _ = self.call("--version")
        self.assertIn("CPU kernels: baseline", version)
        self.assertRegex(version, r"CUDA kernels: (not )?built")

    def run_with(self, environment, program, *arguments):
        return subprocess.run([program, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              timeout=LONGEST_S, check=False, env=environment)

    def test_a_cpu_module_that_cannot_be_opened_is_done_without(self):
        plain = {key: value for key, value in os.environ.items() if key != "MILLRACE_CPU_ISA"}
        (self.directory / "bin").mkdir()
        for file in [MILLRACE, *MILLRACE.parent.glob("millrace_cpu_*.so")]:
            shutil.copy(file, self.directory / "bin")
        copy = self.directory / "bin/millrace"
        widest = re.search(r"learner runs on CPU (?:x86-64-)?(\w+)", self.run_with(plain, copy, "devices").stdout)[1]
        if widest == "baseline":
            self.skipTest("no module runs here")
        for module, rest in [("v4", "x86-64-v3"), ("v3", "baseline")]:
            if module > widest:
                continue
            (self.directory / f"bin/millrace_cpu_{module}.so").write_bytes(b"not a shared object")
            done = self.run_with(plain, copy, "devices")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"learner runs on CPU {rest}", done.stdout)
            self.assertIn(f"millrace_cpu_{module}.so cannot be opened", done.stdout)
            learnt = self.run_with(plain, copy, "learn", self.tiny, "--set", "horizon.updates=1")
            self.assertEqual(learnt.returncode, 0)
            self.assertIn(f"millrace_cpu_{module}.so cannot be opened", learnt.stderr)
            forced = self.run_with({**plain, "MILLRACE_CPU_ISA": module}, copy, "learn", self.tiny)
            self.assertEqual((forced.returncode, forced.stdout), (1, ""))
            self.assertIn(f"MILLRACE_CPU_ISA asks for {module}", forced.stderr)
            self.assertIn(f"millrace_cpu_{module}.so cannot be opened", forced.stderr)

    def test_devices_says_what_is_wrong_with_a_forced_instruction_set(self):
        done = self.run_with({**os.environ, "MILLRACE_CPU_ISA": "v5"}, MILLRACE, "devices")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r'(?m)^ +MILLRACE_CPU_ISA is "v5"; it must be baseline, v3 or v4\.$')
        self.assertNotIn("runs on", done.stdout)

    def test_a_gpu_is_used_only_by_those_who_ask_for_it(self):
        driver = MILLRACE.parent / "tests/kernels/fake_driver"
        if not driver.exists():
            self.skipTest("the driver that claims GPUs is not built")
        fake = {**os.environ, "LD_LIBRARY_PATH": str(driver), "MILLRACE_FAKE_GPUS": "13000;NVIDIA H200,9,0"}
        self.assertIn("GPU 0: NVIDIA H200", self.run_with(fake, MILLRACE, "devices").stdout)
        learnt = self.run_with(fake, MILLRACE, "learn", self.tiny, "--format", "json")
        self.assertEqual(learnt.returncode, 0)
        self.assertIn("A GPU is there, but", learnt.stderr)
        self.assertEqual(learnt.stdout, self.learn("--format", "json")[0])
        quiet = self.run_with(fake, MILLRACE, "learn", self.tiny, "--quiet")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_a_gpu_that_is_not_there(self):
        if "GPU: none" not in self.call("devices")[0]:
            self.skipTest("there is a GPU")
        for command in [["learn", self.tiny], ["warm-start", self.tiny, "--output", "t"]]:
            self.refused(*command, "--backend", "cuda", code=1, says="No CUDA backend")
        self.assertEqual(self.call("learn", self.tiny, "--format", "json"), self.learn("--format", "json"))
        self.assertEqual(self.files(), set())

    def test_files_are_refused_before_anything_is_learnt(self):
        (self.directory / "folder").mkdir()
        (self.directory / "taken.json.manifest.json").mkdir()
        os.mkfifo(self.directory / "pipe")
        before = self.files()
        for arguments, says in [(["--output", "folder"], "directory"), (["--curve", "folder"], "directory"),
                                (["--output", "missing/r"], "missing/r"), (["--curve", "missing/s"], "missing/s"),
                                (["--curve", "pipe"], "not a regular file"), (["--output", "taken.json"], "manifest"),
                                (["--output", ""], "--output"), (["--curve", ""], "--curve"),
                                (["--curve", "-"], "the curve"), (["--output", "same", "--curve", "same"], "same"),
                                (["--output", self.tiny], "overwrite the learn file"),
                                (["--curve", self.tiny], "overwrite the learn file"),
                                (["--checkpoint", ""], "--checkpoint"), (["--checkpoint", "pipe"], "pipe"),
                                (["--backend", "gpu"], "--backend"), (["--jobs", "0"], "--jobs"),
                                (["--format", "xml"], "--format"), (["--resmue"], "--resume")]:
            self.refused("learn", self.tiny, *ENDLESS, *arguments, code=2, says=says)
        self.assertEqual(self.files(), before)

    def test_a_full_disk_is_an_error(self):
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([MILLRACE, "learn", self.tiny, "--backend", "cpu"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=LONGEST_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"could not write", done.stderr)


class LearnFiles(LearnCase):
    def test_schema_is_the_shipped_one(self):
        self.assertEqual(self.call("schema", "learn")[0].encode(),
                         (ROOT / "scenarios/schema/learn.schema.json").read_bytes())
        self.assertEqual(self.call("schema", "scenario"), self.call("schema"))
        self.refused("schema", "learner", code=2, says="learner")

    def test_shipped_files_are_valid_beside_scenarios(self):
        shipped = sorted((ROOT / "scenarios/learn").glob("*.json"))
        self.assertGreaterEqual(len(shipped), 3)
        both = [*shipped, ROOT / "scenarios/quickstart.json", self.tiny]
        out, err = self.call("validate", *both)
        self.assertEqual(err, "")
        self.assertEqual([line.split(": ok (")[0] for line in out.splitlines()], list(map(str, both)))
        resolved = json.loads(self.call("validate", "--resolved", self.tiny, "--set", "seed=4")[0])
        self.assertEqual(resolved, self.learn_json("--seed", "4")["settings"])

    def test_each_command_says_which_one_reads_the_other_files(self):
        self.refused("run", self.tiny, code=3, says=["tiny.json:7:5: error: learner", "millrace learn"])
        self.refused("learn", ROOT / "scenarios/quickstart.json", code=3, says=["quickstart.json:", "millrace run"])
        self.learn("--output", "r.json")
        for command in ["run", "learn", "validate"]:
            self.refused(command, "r.json", code=3, says="result of a run")

    def test_every_good_file_runs(self):
        good = sorted((ROOT / "tests/scenario/corpus/learn/good").glob("*.json"))
        self.assertGreaterEqual(len(good), 12)
        short = ["horizon.updates=2", "replications=2", "learner.warm_start.updates=2",
                 "learner.evaluation.sampled_prompts=2", "learner.evaluation.greedy_prompts=2"]
        words = [word for change in short for word in ("--set", change)]
        for file in good:
            if "checkpoint" not in file.name:
                out, _ = self.call("learn", file, "--backend", "cpu", *words, "--format", "csv")
                self.assertEqual(out.count("\n"), 5, file.name)

    def test_the_context_that_a_task_needs_is_enough(self):
        # The decoder knows it without asking the model.
        for task, tokens in [({"kind": "sort", "digits": 5}, 12), ({"kind": "countdown", "numbers": 4}, 17),
                             ({"kind": "countdown", "numbers": 3}, 14), ({"kind": "addition", "digits": 2}, 10)]:
            words = ["--set", f"learner.task={json.dumps(task)}", "--set", "learner.warm_start.updates=1",
                     "--set", "horizon.updates=1"]
            self.learn(*words, "--set", f"learner.model.context={tokens}")
            self.refused("learn", self.tiny, *words, "--set", f"learner.model.context={tokens - 1}", code=3,
                         says=f"at least {tokens}")

    def test_every_fault_is_located(self):
        # What stands in the file, what a careless hand puts there (@: where the report must point), what it says.
        faults = [('"digits": 3', '"digits": @33', "at most 32"), ('"digits": 3', '@"numbers": 3', "numbers"),
                  ('"heads": 2', '"heads": @3', "divides width = 16"), ('"size": 4', '"size": @1', "at least 2"),
                  ('"batch": 16},\n    "learner"', '"batch": @18},\n    "learner"', "16 and 20 are the nearest"),
                  ('"mlp_width"', '@"mpl_width"', 'did you mean "mlp_width"?'), ('"width": 16', '"width": @12', "8 and 16")]
        for there, instead, says in faults:
            self.assertEqual(TINY.count(there), 1, there)
            marked = TINY.replace(there, instead)
            before = marked.split("@")[0]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            path = self.write("faulty.json", marked.replace("@", ""))
            for command in [["learn"], ["validate"], ["warm-start", "--output", "t.ckpt"]]:
                self.refused(*command, path, code=3, says=[f"{path}:{line}:{column}: error: ", says])
        self.refused("learn", self.tiny, "--set", "learner.objective.clp=0.1", code=3,
                     says=["--set learner.objective.clp=0.1: error: ", 'did you mean "clip"?'])
        self.assertEqual(self.files(), {"faulty.json"})


if __name__ == "__main__":
    main()
