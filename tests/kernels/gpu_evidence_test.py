"""What gpu_evidence.py says about folders of evidence, made up here."""
import json
import pathlib
import tempfile
import unittest

import gpu_evidence


def evidence(date, sources="this", passed=True):
    return {"device": "NVIDIA H200", "date": date, "sources_sha256": sources,
            "checks": [{"name": "classifier, NMSE", "passed": passed}], "speeds": []}


class Judge(unittest.TestCase):
    def judged(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(content))
            return gpu_evidence.judge(pathlib.Path(folder), "this")

    def test_without_evidence_it_is_not_yet_run_on_hardware(self):
        status, sentence = self.judged()
        self.assertEqual(status, gpu_evidence.SKIPPED)
        self.assertIn("not yet been run on hardware", sentence)

    def test_evidence_for_these_sources_counts(self):
        status, sentence = self.judged(a=evidence("2026-01-01T00:00Z"))
        self.assertEqual(status, 0)
        self.assertIn("NVIDIA H200, 2026-01-01", sentence)

    def test_evidence_for_other_sources_does_not(self):
        status, sentence = self.judged(a=evidence("2026-01-01T00:00Z", sources="others"))
        self.assertEqual(status, gpu_evidence.SKIPPED)
        self.assertIn("GPU evidence is for other kernel sources", sentence)

    def test_the_newest_file_decides(self):
        old, new = evidence("2026-01-01T00:00Z"), evidence("2026-02-01T00:00Z", sources="others")
        self.assertEqual(self.judged(z=old, a=new)[0], gpu_evidence.SKIPPED)
        self.assertEqual(self.judged(z=evidence("2026-02-01T00:00Z"), a=evidence("2026-01-01T00:00Z", "others"))[0], 0)

    def test_a_run_that_failed_fails(self):
        self.assertEqual(self.judged(a=evidence("2026-01-01T00:00Z", passed=False))[0], 1)

    def test_the_hash_changes_with_a_name_and_with_a_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "kernels" / "cuda").mkdir(parents=True)
            source = root / "kernels" / "cuda" / "a.cu"
            source.write_text("x")
            first = gpu_evidence.sources_hash(root)
            source.write_text("y")
            second = gpu_evidence.sources_hash(root)
            source.rename(root / "kernels" / "cuda" / "b.cu")
            self.assertEqual(len({first, second, gpu_evidence.sources_hash(root)}), 3)

    def test_speeds_are_compared_round_by_round(self):
        def speed(by, tokens):
            return {"what": "update", "replicas": 1, "by": by, "tokens_per_second": tokens}
        (one,) = gpu_evidence.comparisons([speed("millrace", 10), speed("torch eager", 5), speed("millrace", 12),
                                           speed("torch eager", 3), speed("millrace", 9), speed("torch eager", 3)])
        self.assertEqual((one["lowest"], one["times_faster"], one["highest"]), (2, 3, 4))


if __name__ == "__main__":
    unittest.main()
