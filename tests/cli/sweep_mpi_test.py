#!/usr/bin/python3
"""Sweeps whose work is shared by ranks of MPI:  sweep_mpi_test.py MILLRACE SOURCE_DIR MPIEXEC

Exits with 77, which ctest takes for skipped, where millrace was built without MPI.
"""
import json
import os
import signal
import subprocess
import sys
import time

from case import LONGEST_S, MILLRACE, main
from sweep_case import DESIGNS, SWEEP, SweepCase

MPIEXEC = sys.argv.pop(3) if len(sys.argv) > 3 else ""
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}  # other MPIs ignore these


class Ranks(SweepCase):
    def on_ranks(self, ranks, folder, *arguments, file="sweep.json", expect=0):
        done = subprocess.run([MPIEXEC, "-n", str(ranks), MILLRACE, "sweep", file, "--out", folder, *arguments],
                              cwd=self.directory, capture_output=True, timeout=LONGEST_S, env=ENVIRONMENT, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def test_the_number_of_ranks_does_not_change_a_byte(self):
        for ranks in (1, 2, 3):
            out, err = self.on_ranks(ranks, f"ranks-{ranks}")
            self.assertEqual(out.count("11 designs"), 1, "only one rank reports")
            self.assertEqual(err.count("1 of the 11 designs failed"), 1)
            self.assertEqual(self.merged(f"ranks-{ranks}"), self.expected())
            self.assertEqual(self.rows(f"ranks-{ranks}"), DESIGNS, "something was run twice")
        files = sorted(file.name for file in (self.directory / "ranks-3").glob("runs*"))
        self.assertEqual(files, [f"runs-rank-{rank}-of-3.jsonl" for rank in range(3)])

    def test_rounds_of_an_adaptive_sweep(self):
        self.on_ranks(3, "out", "--jobs", "2", "--quiet", file="adaptive.json")
        self.assertEqual(self.merged("out"), self.expected("adaptive.json"))

    def test_designs_that_are_added_are_the_same_on_all_ranks(self):
        refined = {**SWEEP, "families": SWEEP["families"][:1], "refine": {"designs": 4}}
        self.write("refined.json", json.dumps(refined))
        self.on_ranks(3, "out", "--quiet", file="refined.json")
        self.assertEqual(self.merged("out"), self.expected("refined.json"))
        self.assertGreater(self.rows("out"), 9, "nothing was added")

    def test_what_ranks_have_done_is_kept(self):
        process = self.start("out", "--quiet", "--set", "families.0.set={\"horizon.updates\":60000}",
                             command=[MPIEXEC, "-n", "2"], env=ENVIRONMENT)
        deadline = time.monotonic() + LONGEST_S
        while not (self.directory / "out").exists() or self.rows("out") < 2:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        self.assertNotEqual(process.wait(LONGEST_S), 0)
        there = self.rows("out")
        self.assertGreaterEqual(there, 2)
        self.assertLess(there, DESIGNS)
        code, err = self.merge("out")
        self.assertEqual(code, 1)
        self.assertIn(f"{DESIGNS - there} of {DESIGNS} blocks are missing", err)

    def test_a_fault_is_said_once_and_ends_all_ranks(self):
        self.write("bad.json", "{}")
        _, err = self.on_ranks(3, "out", file="bad.json", expect=3)
        self.assertEqual(err.count("error: families"), 1, err)
        _, err = self.on_ranks(2, "out", "--shard", "1/2", expect=2)
        self.assertEqual(err.count("share the work anyway"), 1, err)
        # One rank alone cannot write its rows.
        self.sweep("out", "--quiet", "--shard", "1/5")
        (self.directory / "out" / "runs-rank-1-of-2.jsonl").mkdir()
        _, err = self.on_ranks(2, "out", expect=1)
        self.assertIn("error on rank 1: cannot write", err)


if __name__ == "__main__":
    if MILLRACE is not None:
        version = subprocess.run([MILLRACE, "--version"], capture_output=True, check=True).stdout
        if b"MPI: not built" in version:
            print("skipped: millrace was built without MPI")
            sys.exit(77)
    main()
