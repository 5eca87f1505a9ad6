"""What the tests of the command line share: the program under test, a folder of their own, and checked calls.

A test file is called with MILLRACE SOURCE_DIR [unittest ...].
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

MILLRACE = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 2 else None
ROOT = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
LONGEST_S = 60  # far beyond any run here: a hang is a failure, not a wait


class CommandCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name):
        return (self.directory / name).read_bytes()

    def call(self, *arguments, expect=0):
        """Standard output and standard error, after a check of the exit code."""
        done = subprocess.run([MILLRACE, *map(str, arguments)], cwd=self.directory, capture_output=True,
                              timeout=LONGEST_S, check=False)
        self.assertEqual(done.returncode, expect, f"exit code of millrace {arguments}: {done.stderr!r}")
        return done.stdout.decode(), done.stderr.decode(errors="replace")

    def refused(self, *arguments, code, says):
        out, err = self.call(*arguments, expect=code)
        self.assertEqual(out, "", f"{arguments} printed a result")
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, err)
        return err


def main():
    if MILLRACE is None:
        sys.exit(f"usage: {sys.argv[0]} MILLRACE SOURCE_DIR [unittest arguments]")
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])
