"""What the tests of `millrace sweep` share: a small sweep of two families, in which one design fails."""
import json
import pathlib
import shutil
import subprocess

from case import LONGEST_S, MILLRACE, CommandCase

BASE = {
    "name": "base",
    "seed": 3,
    "horizon": {"updates": 600},
    "workers": {"count": 2, "slots": 4, "service": {"kind": "first_order", "gpu_s_per_rollout": {
        "kind": "lognormal", "mean": 0.5, "cv": 0.5}}},
    "groups": {"size": 4},
    "trainers": {"count": 2, "batch": 16, "service": {"kind": "fixed", "gpu_s_per_update": 2}},
    "store": {"kind": "replay_buffer", "capacity": 32},
}
QUEUE = {"kind": "transfer_queue", "capacity": 64}
SWEEP = {
    "name": "small",
    "families": [
        {"name": "buffer", "base": "base.json",
         "axes": [{"path": "store.capacity", "values": [16, 64, 256]}, {"path": "workers.count", "values": [1, 2, 4]}]},
        # The second design lets 8 rollouts start for updates of 16: an impossible one, which has a row that says so.
        {"name": "queue", "base": "base.json", "set": {"store": QUEUE, "workers.slots": 8},
         "axes": [{"path": "admission", "values": [{"kind": "token_bucket", "steps_ahead": 1},
                                                {"kind": "token_bucket", "steps_ahead": 0, "rollouts_per_update": 8}]}]},
    ],
    "objectives": [{"metric": "compute/gamma_simulated", "goal": "minimize"},
                   {"metric": "staleness/mean", "goal": "minimize"}],
    "replications": 4,
}
DESIGNS = 11
ADAPTIVE = {**SWEEP, "replications": {"least": 3, "most": 20, "budget": 100}}


class SweepCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.write("base.json", json.dumps(BASE))
        self.sweep_file = self.write("sweep.json", json.dumps(SWEEP))
        self.adaptive_file = self.write("adaptive.json", json.dumps(ADAPTIVE))

    def sweep(self, folder, *arguments, file="sweep.json", expect=0):
        return self.call("sweep", file, "--out", folder, *arguments, expect=expect)

    def start(self, folder, *arguments, command=(), file="sweep.json", env=None):
        """A sweep that is not waited for."""
        process = subprocess.Popen([*command, MILLRACE, "sweep", file, "--out", folder, *arguments],
                                   cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, LONGEST_S)
        self.addCleanup(process.kill)
        return process

    def merge(self, folder):
        """Exit code and standard error of `millrace merge`."""
        done = subprocess.run([MILLRACE, "merge", folder], cwd=self.directory, capture_output=True, timeout=LONGEST_S,
                              check=False)
        return done.returncode, done.stderr.decode()

    def merged(self, folder):
        return self.read(f"{folder}/merged.jsonl")

    def rows(self, folder):
        """Whole rows in all files of the folder."""
        return sum(file.read_bytes().count(b"\n") for file in (self.directory / folder).glob("runs*.jsonl"))

    def remove(self, folder):
        shutil.rmtree(self.directory / folder, ignore_errors=True)

    def expected(self, file="sweep.json"):
        """merged.jsonl of a sweep that nothing disturbed."""
        folder = "undisturbed-" + pathlib.Path(file).stem
        if not (self.directory / folder).exists():
            self.sweep(folder, "--quiet", file=file)
        return self.merged(folder)
