#!/usr/bin/python3
"""What scripts and people may rely on when they call millrace:  command_line_test.py MILLRACE SOURCE_DIR [unittest ...]

Exit codes, what goes to which stream and file, that results are the same bytes every time, and that every complaint
says where. Only Python's standard library.
"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree
import zlib

from case import LONGEST_S, MILLRACE, ROOT, CommandCase, main

PYTHON = "/usr/bin/python3"  # Debian's, for which python3-matplotlib is packaged

SMALL = """{
    "name": "small",
    "replications": 3,
    "horizon": {"updates": 60, "warmup_updates": 12},
    "workers": {
        "count": 4,
        "slots": 8,
        "service": {"kind": "first_order", "gpu_s_per_rollout": {"kind": "exponential", "mean": 5}}
    },
    "groups": {"size": 4},
    "trainers": {
        "count": 2,
        "batch": 16,
        "service": {"kind": "fixed", "gpu_s_per_update": 60}
    },
    "store": {"kind": "replay_buffer", "capacity": 64},
    "price": {"usd_per_gpu_hour": 3.6}
}
"""
QUEUE = '{"kind": "transfer_queue", "capacity": 64}'
# Updates of 6000 samples: no replication of it ends while these tests run.
ENDLESS = ["--set", "horizon.updates=1000000", "--set", "trainers.batch=6000", "--set", "store.capacity=8000"]
# Nearly nothing is correct, so the half of the buffer kept for correct rollouts stays empty; a batch needs 40 of 64.
STUCK = ["--set", "trainers.batch=40", "--set", "store.sampling=uniform_without_replacement",
         "--set", 'store.eviction={"kind": "positive_bias", "delta": 0.5}',
         "--set", 'reward={"correct_probability": 1e-9}']


class CommandLineTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.small = self.write("small.json", SMALL)

    def files(self):
        return {path.name for path in self.directory.iterdir()} - {"small.json"}

    def run_small(self, *arguments, expect=0):
        return self.call("run", self.small, *arguments, expect=expect)


class Usage(CommandLineTest):
    def test_a_run_does_not_overwrite_its_scenario(self):
        for option in ("--output", "--steps"):
            _, complaint = self.call("run", self.small, option, self.small, expect=2)
            self.assertIn("overwrite the scenario", complaint)
            self.assertEqual(self.read("small.json").decode(), SMALL)

    def test_help_and_version_are_answers(self):
        for arguments in [["--help"], ["--version"], ["run", "--help"], ["design", "--help"], ["validate", "--help"]]:
            out, err = self.call(*arguments)
            self.assertTrue(out.startswith("millrace ") if arguments == ["--version"] else "Usage" in out, out)
            self.assertEqual(err, "")

    def test_slips_are_recognised(self):
        for arguments, meant in [(["rnu", "x.json"], "run"), (["validte"], "validate"), (["shcema"], "schema"),
                                 (["run", "--sed", "3", "x.json"], "--seed"), (["run", "x.json", "--ste=a=1"], "--set"),
                                 (["run", "--ouptut", "y", "x.json"], "--output"), (["run", "-jobs=2", "x"], "--jobs"),
                                 (["design", "--alhpa", "0.2"], "--alpha"),
                                 (["validate", "--resloved", "x"], "--resolved"), (["--versoin"], "--version")]:
            self.refused(*arguments, code=2, says=f"Did you mean {meant}?")
        err = self.refused("run", "--zzzzzz", "x.json", code=2, says="there is no option --zzzzzz")
        self.assertNotIn("Did you mean", err)

    def test_incomplete_or_contradictory_command_lines(self):
        for arguments, says in [([], "a subcommand is needed"), (["run"], "scenario"), (["validate"], "file"),
                                (["run", self.small, "other.json"], "other.json"),
                                (["run", self.small, "--format", "xml"], "xml"),
                                (["run", self.small, "--jobs", "1", "--jobs", "2"], "--jobs"),
                                (["schema", "x"], "x"), (["design", "--mu", "5", "--rho", "0"], "--alpha")]:
            self.refused(*arguments, code=2, says=says)

    def test_numbers_are_taken_literally_or_refused(self):
        wrong = {"--seed": ["-1", "2.5", "", "x", "1e3", "0x10", "9007199254740993", "99999999999999999999"],
                 "--jobs": ["0", "-1", "1.5", "", "1025", "99999999999999999999"],
                 "--replications": ["0", "-3", "2.5", "", "1000001", "99999999999999999999"]}
        for option, values in wrong.items():
            for value in values:
                self.refused("run", self.small, option, value, code=2, says=[option, f'"{value}"', "whole number"])
        self.run_small("--seed", "9007199254740992", "--replications", "1", "--jobs", "1024", "--quiet")

    def test_design_options_out_of_range(self):
        good = {"--mu": "5.28", "--rho": "0.1", "--alpha": "0.2"}
        for option, value in [("--mu", "0"), ("--mu", "-1"), ("--mu", "nan"), ("--mu", "x"), ("--rho", "1.1"),
                              ("--rho", "-0.1"), ("--alpha", "0.5"), ("--alpha", "0"), ("--alpha", "inf")]:
            words = [word for pair in {**good, option: value}.items() for word in pair]
            self.refused("design", *words, code=2, says=option.strip("-"))


class Results(CommandLineTest):
    def test_threads_and_reruns_do_not_change_a_byte(self):
        for form in ["table", "json", "csv"]:
            outputs = []
            for i, jobs in enumerate(["1", "2", "2"]):
                out, err = self.run_small("--format", form, "--jobs", jobs, "--output", f"{form}{i}.json",
                                          "--steps", f"{form}{i}.jsonl")
                self.assertEqual(err, "")
                outputs.append((out, self.read(f"{form}{i}.json"), self.read(f"{form}{i}.jsonl")))
            self.assertEqual(outputs[0], outputs[1])
            self.assertEqual(outputs[1], outputs[2])
            self.assertTrue(all(outputs[0]))

    def test_every_replication_and_seed_is_its_own(self):
        # Were two of them the same, intervals would be too narrow.
        results = [self.run_small("--replications", "1", "--seed", seed, "--format", "json")[0] for seed in range(4)]
        self.assertEqual(len({json.loads(result)["order_digest"] for result in results}), 4)
        self.run_small("--steps", "steps.jsonl")
        rows = [json.loads(line) for line in self.read("steps.jsonl").splitlines()]
        self.assertEqual(len({row["time/wall_s"] for row in rows if row["step"] == 1}), 3)

    def test_seed_and_replications_are_shorthands(self):
        short = self.run_small("--seed", "7", "--replications", "2", "--format", "json")
        self.assertEqual(short, self.run_small("--set", "seed=7", "--set", "replications=2", "--format", "json"))

    def test_output_to_standard_output_is_pure_json(self):
        out, err = self.run_small("--output", "-")
        self.assertEqual(err, "")
        self.assertEqual(json.loads(out)["millrace_result"], 1)
        self.assertEqual(out, self.run_small("--format", "json")[0])
        self.assertEqual(self.files(), set())
        self.run_small("--output", "r.json")
        self.assertEqual(self.read("r.json").decode(), out)

    def test_a_result_holds_what_repeats_it(self):
        out, _ = self.call("run", self.small, "--set", "workers.count=5", "--seed", "3", "--format", "json")
        again = self.write("again.json", json.dumps(json.loads(out)["scenario"]))
        self.assertEqual(self.call("run", again, "--format", "json")[0], out)
        resolved, _ = self.call("validate", "--resolved", self.small, "--set", "workers.count=5", "--set", "seed=3")
        self.assertEqual(json.loads(resolved), json.loads(out)["scenario"])

    def test_times_and_hosts_are_in_the_manifest_only(self):
        self.run_small("--output", "r.json", "--jobs", "2")
        self.assertEqual(self.files(), {"r.json", "r.json.manifest.json"})
        manifest = json.loads(self.read("r.json.manifest.json"))
        self.assertRegex(manifest["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreater(manifest["wall_s"], 0)
        self.assertEqual(manifest["jobs"], 2)
        self.assertIn("run", manifest["command_line"])
        self.assertIn("host", manifest)
        result = self.read("r.json").decode()
        for word in ["host", "started", "wall_s", "jobs", "command_line"]:
            self.assertNotIn(f'"{word}"', result)
        self.assertNotIn(str(self.small), result)

    def test_csv_has_the_numbers_of_the_json(self):
        name = 'commas, "quotes" and \\'
        arguments = ["--set", "name=" + json.dumps(name)]
        document = json.loads(self.run_small("--format", "json", *arguments)[0])
        rows = list(csv.DictReader(io.StringIO(self.run_small("--format", "csv", *arguments)[0])))
        self.assertEqual(len(rows), 1)
        self.assertEqual((rows[0].pop("name"), rows[0].pop("seed")), (name, str(document["scenario"]["seed"])))
        self.assertEqual(rows[0].pop("replications"), "3")
        self.assertEqual(rows[0].pop("warmup_updates"), "12")
        expected = {key: metric["mean"] for key, metric in document["metrics"].items()}
        expected |= {f"{key}:half_width": metric.get("half_width") for key, metric in document["metrics"].items()}
        self.assertEqual({key: float(text) if text else None for key, text in rows[0].items()}, expected)
        self.assertGreater(len(expected), 60)

    def test_a_single_replication_claims_no_interval(self):
        metrics = json.loads(self.run_small("--replications", "1", "--format", "json")[0])["metrics"]
        for key, metric in metrics.items():
            self.assertNotIn("half_width", metric, key)
            self.assertTrue(metric["note"], key)

    def test_step_log(self):
        out, _ = self.run_small("--format", "json", "--steps", "steps.jsonl", "--jobs", "2")
        metrics = json.loads(out)["metrics"]
        rows = [json.loads(line) for line in self.read("steps.jsonl").splitlines()]
        self.assertEqual([(row["replication"], row["step"]) for row in rows],
                         [(replication, step) for replication in range(3) for step in range(1, 61)])
        for before, after in zip(rows, rows[1:]):
            if before["replication"] == after["replication"]:
                elapsed = after["time/wall_s"] - before["time/wall_s"]
                self.assertAlmostEqual(elapsed, after["time/update_period_s"], places=6)
        # After the warm-up, the log adds up to the metrics.
        kept = [row for row in rows if row["step"] > 12]
        for key, column in [("staleness/mean", "staleness/mean"), ("staleness/pre_store", "staleness/pre_store"),
                            ("replay/unique_fraction", "replay/unique_fraction"),
                            ("time/update_period_s", "time/update_period_s"),
                            ("rollouts/generated_per_update", "rollouts/generated")]:
            self.assertAlmostEqual(sum(row[column] for row in kept) / len(kept), metrics[key]["mean"], msg=key)

    def test_design_of_the_papers_check_values(self):
        words = ["design", "--mu", "5.28", "--rho", "0.1", "--alpha", "0.2", "--format"]
        report = json.loads(self.call(*words, "json")[0])
        self.assertAlmostEqual(report["optimum"]["horizon"], 4.265, places=3)
        self.assertAlmostEqual(report["optimum"]["replay_ratio"], 3.973, places=3)
        self.assertAlmostEqual(report["optimum"]["workers_per_trainer"] * report["optimum"]["replay_ratio"], 5.28)
        table, _ = self.call(*words, "table")
        self.assertIn("4.265", table)
        self.assertIn("3.973", table)
        rows = [{key: float(text) for key, text in row.items()}
                for row in csv.DictReader(io.StringIO(self.call(*words, "csv")[0]))]
        centre = [row for row in rows if row["horizon_factor"] == 1 and row["replay_ratio_factor"] == 1]
        self.assertEqual([row["relative_cost"] for row in centre], [1.0])
        self.assertTrue(all(row["relative_cost"] > 1 for row in rows if row not in centre))

    def test_a_full_disk_is_an_error(self):
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([MILLRACE, "run", self.small], stdout=full, stderr=subprocess.PIPE, timeout=LONGEST_S,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"could not write", done.stderr)


class Files(CommandLineTest):
    def test_paths_are_refused_before_anything_is_simulated(self):
        (self.directory / "folder").mkdir()
        (self.directory / "taken.json.manifest.json").mkdir()
        os.mkfifo(self.directory / "pipe")  # as any device, not to be replaced by a file
        before = self.files()
        for arguments, says in [(["--output", "folder"], "directory"), (["--steps", "folder"], "directory"),
                                (["--output", "missing/r"], "missing/r"), (["--steps", "missing/s"], "missing/s"),
                                (["--output", "pipe"], "not a regular file"), (["--output", "taken.json"], "manifest"),
                                (["--output", ""], "--output"), (["--steps", ""], "--steps"),
                                (["--steps", "-"], "step log"), (["--output", "same", "--steps", "same"], "same")]:
            self.refused("run", self.small, *ENDLESS, *arguments, code=2, says=says)
        self.assertEqual(self.files(), before)

    def test_a_symbolic_link_is_written_through(self):
        (self.directory / "folder").mkdir()
        (self.directory / "link.json").symlink_to("folder/kept.json")
        self.run_small("--output", "link.json")
        self.assertTrue((self.directory / "link.json").is_symlink())
        self.assertEqual(json.loads(self.read("folder/kept.json"))["millrace_result"], 1)

    def test_a_run_that_gets_stuck_says_why_and_leaves_files_alone(self):
        self.call("validate", self.small, *STUCK)  # nothing is impossible here, only improbable
        self.write("old.json", "old")
        err = self.refused("run", self.small, *STUCK, "--output", "old.json", "--steps", "s.jsonl", code=1,
                           says=["can never fill", "batch of 40"])
        self.assertIn("millrace: error:", err)
        self.assertEqual(self.read("old.json"), b"old")
        self.assertEqual(self.files(), {"old.json"})

    def interrupted(self, *arguments, after_s):
        """Sends SIGINT to a run `after_s` seconds after it has opened its output."""
        words = [MILLRACE, "run", self.small, "--output", "r.json", *arguments]
        process = subprocess.Popen(words, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + LONGEST_S
        while not any(name.startswith("r.json.manifest.json.part") for name in self.files()):
            self.assertLess(time.monotonic(), deadline, "the run opened no output")
            self.assertIsNone(process.poll(), "the run ended too early")
            time.sleep(0.02)
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_S)
        self.assertEqual(process.returncode, 130, err.decode())
        return out.decode(), err.decode()

    def test_an_interrupted_run_reports_the_complete_replications(self):
        many = 50000
        out, _ = self.interrupted("--replications", str(many), "--format", "json", "--steps", "s.jsonl", after_s=1.0)
        result = json.loads(out)
        self.assertIs(result["interrupted"], True)
        self.assertTrue(0 < result["replications"] < many, result["replications"])
        self.assertEqual(self.read("r.json").decode(), out)
        self.assertEqual(len(self.read("s.jsonl").splitlines()), 60 * result["replications"])
        self.assertEqual(self.files(), {"r.json", "r.json.manifest.json", "s.jsonl"})
        # They are what a run of only so many gives.
        whole = json.loads(self.run_small("--replications", result["replications"], "--format", "json")[0])
        self.assertIs(whole["interrupted"], False)
        for key in ["metrics", "histograms", "order_digest"]:
            self.assertEqual(whole[key], result[key])

    def test_interrupted_before_the_first_replication_nothing_is_written(self):
        self.write("r.json", "old")
        out, err = self.interrupted(*ENDLESS, "--steps", "s.jsonl", after_s=0.3)
        self.assertEqual(out, "")
        self.assertIn("nothing to report", err)
        self.assertEqual(self.read("r.json"), b"old")
        self.assertEqual(self.files(), {"r.json"})


class Scenarios(CommandLineTest):
    def test_schema_is_the_shipped_one(self):
        self.assertEqual(self.call("schema")[0].encode(), (ROOT / "scenarios/schema/scenario.schema.json").read_bytes())

    def test_schemas_of_other_files_are_the_shipped_ones(self):
        for kind in ["learn", "sweep"]:
            shipped = ROOT / f"scenarios/schema/{kind}.schema.json"
            self.assertEqual(self.call("schema", kind)[0].encode(), shipped.read_bytes())

    def test_shipped_sweeps_are_valid(self):
        shipped = sorted((ROOT / "scenarios/sweeps").glob("*.json"))
        self.assertGreaterEqual(len(shipped), 2)
        out, err = self.call("validate", *shipped)
        self.assertEqual(err, "")
        for file, line in zip(shipped, out.splitlines(), strict=True):
            self.assertRegex(line, rf"^{re.escape(str(file))}: ok \({file.stem}\), [0-9]+ designs$")

    def test_validate_counts_designs_and_names_the_impossible_and_the_repeated(self):
        self.write("base.json", SMALL)
        family = {"name": "a", "base": "base.json", "axes": [{"path": "horizon.updates", "values": [60, 12, 80]}]}
        sweep = {
            "name": "few",
            "families": [family, {"name": "b", "base": "base.json"}],
            "objectives": [{"metric": f"staleness/{key}", "goal": "minimize"} for key in ["mean", "p99"]],
        }
        file = self.write("sweep.json", json.dumps(sweep))
        out, err = self.call("validate", file)
        self.assertEqual(err, "")
        lines = out.splitlines()
        self.assertEqual(lines[0], f"{file}: ok (few), 3 designs, 1 impossible")
        self.assertEqual(lines[1], "  impossible: a, horizon.updates=12: horizon.warmup_updates: a warm-up of 12 "
                                   "leaves nothing of 12 updates to measure")
        self.assertIn('The family "b" repeats 1 design, which is left out: ', lines[2])
        self.assertEqual(len(lines), 3)
        resolved = json.loads(self.call("validate", "--resolved", file)[0])
        self.assertEqual(resolved["families"][0]["base"], json.loads(SMALL))
        self.refused("validate", file, "--set", "families.0.axes.0.values=[0]", code=3,
                     says="--set families.0.axes.0.values=[0]: error: families.0.axes.0.values.0: horizon.updates: "
                          "expected a whole number of at least 1, found 0")
        self.refused("run", file, code=3, says='"millrace sweep" runs it')

    def test_shipped_scenarios_are_valid(self):
        shipped = sorted((ROOT / "scenarios").glob("*.json")) + sorted((ROOT / "scenarios/paper").glob("*.json"))
        self.assertGreaterEqual(len(shipped), 13)
        out, err = self.call("validate", *shipped)
        self.assertEqual(err, "")
        self.assertEqual([line.split(": ok (")[0] for line in out.splitlines()], list(map(str, shipped)))

    def test_one_bad_file_among_several(self):
        bad = self.write("bad.json", SMALL.replace('"count": 4', '"count": 0'))
        out, err = self.call("validate", self.small, bad, "missing.json", self.small, expect=3)
        self.assertEqual(out, f"{self.small}: ok (small)\n" * 2)
        self.assertIn(f"{bad}:6:18: error: workers.count", err)
        self.assertIn("missing.json: error: cannot be read", err)

    def test_unreadable_scenarios(self):
        for path in ["missing.json", self.directory]:
            self.refused("run", path, code=3, says=[f"{path}: error: cannot be read"])
        binary = self.directory / "binary.json"
        binary.write_bytes(b"\xff\xfe{\0}\0")
        self.refused("run", binary, code=3, says=f"{binary}:1:1: error: ")

    def test_every_fault_is_located(self):
        # What stands in the scenario, what a careless hand puts there (@: where the report must point), what it says.
        faults = [
            ('"count": 4', '"count": @-1', "workers.count"),
            ('"count": 4', '"count": @3.7', "workers.count"),
            ('"count": 4', '"count": @"four"', "workers.count"),
            ('"count": 4', '"count": @90071992547409930', "90071992547409930"),
            ('"slots": 8', '@"slost": 8', 'did you mean "slots"?'),
            ('"slots": 8', '"slots": 8, @"slots": 9', "slots"),
            ('"mean": 5', '"mean": @NaN', "NaN"),
            ('"mean": 5', '"mean": 5, @"sd": 1', "sd"),
            ('"exponential"', '@"exponental"', 'did you mean "exponential"?'),
            ('"groups": {"size": 4},', '"groups": {"size": 4 @5},', "error"),
            ('"groups": {"size": 4},', '"gröups": {"size": 4}, @"grups": {},', 'did you mean "groups"?'),
            ('"capacity": 64', '@"capacity": 8, "sampling": "uniform_without_replacement"', "can never fill"),
            ('"price": {"usd_per_gpu_hour": 3.6}\n}\n', '"price": {"usd_per_gpu_hour": 3.6}\n@', "error"),
            ('"name": "small"', '"name": @7', "name"),
        ]
        for there, instead, says in faults:
            self.assertEqual(SMALL.count(there), 1, there)
            marked = SMALL.replace(there, instead)
            before = marked.split("@")[0]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            path = self.write("faulty.json", marked.replace("@", ""))
            for command in ["run", "validate"]:
                self.refused(command, path, code=3, says=[f"{path}:{line}:{column}: error: ", says])

    def test_overrides(self):
        out, _ = self.run_small("--set", "workers.count=5", "--set", "groups.size=8", "--set", "workers.count=6",
                                "--set", f"store={QUEUE}", "--set", "name=a word", "--format", "json")
        scenario = json.loads(out)["scenario"]
        self.assertEqual((scenario["workers"]["count"], scenario["groups"]["size"]), (6, 8))
        self.assertEqual((scenario["store"]["kind"], scenario["name"]), ("transfer_queue", "a word"))
        for override, says in [("workers.cuont=3", 'did you mean "count"?'),
                               ("wrokers.count=3", 'did you mean "workers"?'), ("workers.count=3.7", "workers.count"),
                               ("workers.count=", "workers.count"), ("trainers=3", "expected an object"),
                               ("seed", "path=value"),
                               ("store.sampling=unifrom_with_replacement", "uniform_with_replacement")]:
            self.refused("run", self.small, "--set", override, code=3, says=[f"--set {override}: error: ", says])
        # A value that follows is not a second override.
        self.refused("run", self.small, "--set", "workers.count=5", "groups.size=8", code=2, says="groups.size=8")


class Folders(CommandLineTest):
    def test_what_is_no_folder_of_a_sweep_is_a_slip_on_the_command_line(self):
        (self.directory / "empty").mkdir()
        subcommands = ["merge", "pareto"]
        if subprocess.run([PYTHON, "-c", "import matplotlib, plotly"], capture_output=True, check=False).returncode == 0:
            subcommands.append("report")
        for folder in ("missing", "empty", "small.json"):
            for subcommand in subcommands:
                self.refused(subcommand, folder, code=2, says=f"{folder} is not the folder of a sweep")
        sweep = ROOT / "scenarios/sweeps/h100-grid.json"
        self.refused("sweep", sweep, "--out", "small.json", code=2, says="small.json")
        self.assertEqual(self.read("small.json").decode(), SMALL)

    def test_the_folder_of_scripts_may_stand_anywhere(self):
        (self.directory / "scripts").mkdir()
        for name in ("report.py", "figure.py"):
            self.write(f"scripts/{name}", "import sys\nprint(sys.argv[1:])\n")
        for subcommand in ("report", "plot"):
            for words in (["--plots", "scripts", "D", "--out", "x"], ["--plots=scripts", "D", "--out", "x"],
                          ["D", "--plots", "scripts", "--out", "x"], ["D", "--plots=scripts", "--out", "x"],
                          ["D", "--out", "x", "--plots", "scripts"]):
                self.assertEqual(self.call(subcommand, *words)[0], "['D', '--out', 'x']\n", words)
            self.refused(subcommand, "D", "--plots", code=2, says="--plots needs the name of a folder")
            self.refused(subcommand, "D", "--plots=", code=2, says="--plots needs the name of a folder")
            self.refused(subcommand, "D", "--plots", "empty", code=2, says="--plots empty")
            self.refused(subcommand, "--plots", "scripts", "D", "--plots", "scripts", code=2, says="given twice")


class Figure(CommandLineTest):
    def draw(self, *arguments, expect=0):
        words = [PYTHON, ROOT / "plots/run_figure.py", *arguments]
        done = subprocess.run(words, cwd=self.directory, capture_output=True, timeout=LONGEST_S, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done.stderr.decode()

    def setUp(self):
        super().setUp()
        if subprocess.run([PYTHON, "-c", "import matplotlib"], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"{PYTHON} has no matplotlib")

    def check_picture(self, stem, result):
        svg = xml.etree.ElementTree.fromstring(self.read(f"{stem}.svg"))
        self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
        png = self.read(f"{stem}.png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        kind, at = b"", 8
        while at < len(png):
            length, kind = struct.unpack(">I4s", png[at:at + 8])
            (checksum,) = struct.unpack(">I", png[at + 8 + length:at + 12 + length])
            self.assertEqual(zlib.crc32(png[at + 4:at + 8 + length]), checksum)
            at += 12 + length
        self.assertEqual(kind, b"IEND")

        rows = list(csv.DictReader(io.StringIO(self.read(f"{stem}.csv").decode())))
        for key, histogram in result["histograms"].items():
            shares = [float(row["value"]) for row in rows if row["metric"] == key and row["series"] == "share"]
            self.assertAlmostEqual(sum(shares), 1.0 if histogram["total"] else 0.0)
            self.assertLessEqual(len(shares), 40)
        for role in ["workers", "trainers"]:
            shares = [float(row["value"]) for row in rows if row["metric"].startswith(role + "/")]
            self.assertAlmostEqual(sum(shares), 1.0)
        for row in rows:
            if row["series"] == "simulated":
                metric = result["metrics"][row["metric"]]
                self.assertEqual(float(row["value"]), metric["mean"])
                self.assertEqual(row["half_width"], str(metric.get("half_width", "")))
        return rows

    def test_figure_of_a_run(self):
        # Hundreds of updates old and dozens of uses: bars are ranges. Published numbers are drawn beside.
        self.run_small("--output", "r.json", "--set", "store.capacity=800",
                       "--set", 'published=[{"metric": "replay/mean", "value": 2.5, "source": "somewhere"}]')
        self.draw("r.json", "one")
        rows = self.check_picture("one", json.loads(self.read("r.json")))
        drawn = {(row["metric"], row["series"]) for row in rows}
        self.assertLessEqual({("replay/mean", "simulated"), ("replay/mean", "formula"), ("replay/mean", "published"),
                              ("staleness/mean", "formula")}, drawn)
        self.draw("r.json", "two")
        for kind in ["svg", "png", "csv"]:
            self.assertEqual(self.read(f"one.{kind}"), self.read(f"two.{kind}"))

    def test_figure_without_reuse_intervals_or_a_price(self):
        text = SMALL.replace(',\n    "price": {"usd_per_gpu_hour": 3.6}', "").replace(
            '{"kind": "replay_buffer", "capacity": 64}', QUEUE)
        self.small = self.write("queue.json", text)
        self.run_small("--output", "r.json", "--replications", "1")
        result = json.loads(self.read("r.json"))
        self.assertEqual(result["histograms"]["steps_since_last_use"]["total"], 0)
        self.draw("r.json", "queue")
        self.check_picture("queue", result)

    def test_other_files_are_refused(self):
        self.assertIn("not a result of millrace run", self.draw("small.json", "x", expect=3))
        self.assertIn("usage", self.draw("small.json", expect=2))
        self.assertEqual(self.files(), set())


if __name__ == "__main__":
    main()
