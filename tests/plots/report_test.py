#!/usr/bin/python3
"""The HTML report, opened in a headless browser:  report_test.py ROOT. It shows all designs, links its parts, writes no
errors and asks for nothing from a network. Exits with 77 (skipped) where plotly or chromium is missing."""
import html.parser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv[1]
PLOTS = os.path.join(ROOT, "plots")
sys.path[:0] = [PLOTS, os.path.dirname(os.path.abspath(__file__))]
sys.dont_write_bytecode = True
BROWSER = shutil.which("chromium")
for what, there in (("matplotlib", importlib.util.find_spec("matplotlib")),
                    ("plotly", importlib.util.find_spec("plotly")), ("chromium", BROWSER)):
    if not there:
        print(f"skipped: there is no {what}")
        sys.exit(77)

import report
import synthetic

LONGEST_S = 600  # machines of any speed, under load: this only ends a browser that hangs
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-extensions", "--enable-logging=stderr",
           "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000"]

# Runs in a copy of the page, after it is ready; what it finds out stands in the title.
PROBE = """<script>
(async function () {
  const found = {};
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  while (document.documentElement.dataset.ready !== "yes") await wait(20);
  const pareto = document.getElementById("pareto"), heat = document.getElementById("heat");
  const rows = () => [...document.querySelectorAll("#table tbody tr")];
  const isSelected = (row) => row.getAttribute("aria-selected") === "true";
  const selected = () => rows().filter(isSelected).map((row) => row.id.slice(4));
  const ring = () => { const last = pareto.data[pareto.data.length - 1]; return [...last.x, ...last.y]; };
  const inHeat = () => (heat.layout.shapes || []).slice(-1).flatMap((s) => [(s.x0 + s.x1) / 2, (s.y0 + s.y1) / 2]);
  found.rows = rows().map((row) => row.id.slice(4));
  found.points = pareto.data.flatMap((trace) => trace.customdata || []).length;
  found.width = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const ids = JSON.parse(document.getElementById("designs").textContent).designs.map((design) => design.design);
  const file = () =>
    document.getElementById("asfile").hidden ? null : document.getElementById("file").textContent;
  found.hidden = document.getElementById("chosen").hidden;
  document.getElementById("row-" + ids[3]).click();
  await wait(200);
  found.afterRow = { selected: selected(), ring: ring(), heat: inHeat(),
                     command: document.getElementById("command").value,
                     file: file(), copied: document.getElementById("copied").textContent, hash: location.hash };
  pareto.emit("plotly_click", { points: [{ customdata: 12 }] });
  await wait(200);
  found.afterPoint = { selected: selected(), ring: ring(), command: document.getElementById("command").value,
                       file: file() };
  heat.emit("plotly_click", { points: [{ customdata: 20 }] });
  await wait(200);
  found.afterCell = { selected: selected(), heat: inHeat() };
  const headers = [...document.querySelectorAll("#table thead button")];
  const values = (k) => rows().map((row) => row.cells[k].textContent);
  const trainers = headers.findIndex((button) => button.textContent === "trainers.count");
  headers[trainers].click();
  found.ascending = values(trainers);
  headers[trainers].click();
  found.descending = values(trainers);
  found.sorted = document.querySelectorAll("#table th")[trainers].getAttribute("aria-sort");
  found.stillSelected = selected();
  document.getElementById("which").value = "failed";
  document.getElementById("which").dispatchEvent(new Event("change"));
  found.failed = rows().map((row) => row.cells[1].textContent);
  document.getElementById("metric").value = "staleness/mean";
  document.getElementById("metric").dispatchEvent(new Event("change"));
  await wait(200);
  found.outlines = heat.layout.shapes.filter((shape) => shape.line.color === "#ffffff").map((shape) => shape.line.dash);
  found.legend = document.getElementById("outlines").textContent;
  found.hover = pareto.data.flatMap((trace) => Array.isArray(trace.text) ? trace.text : []);
  found.colours = heat.data[0].z.flat().filter((z) => z !== null).length;
  document.title = "FOUND " + JSON.stringify(found);
})().catch((error) => { document.title = "FAILED " + error; });
</script>"""


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.directory = cls.holder.name
        cls.study = synthetic.write_folder(cls.path("sweep"))
        assert report.main([cls.path("sweep")]) == 0
        with open(cls.path("sweep/report.html"), encoding="utf-8") as file:
            cls.text = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory, name)

    def open(self, text, *options, address=""):
        """The page's elements when it is done, what stood on the console, and requests beyond files."""
        with tempfile.TemporaryDirectory() as home:
            page, log = os.path.join(home, "page.html"), os.path.join(home, "net.json")
            with open(page, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([BROWSER, *OPTIONS, f"--user-data-dir={home}/profile", f"--log-net-log={log}",
                                   *options, "--dump-dom", f"file://{page}{address}"],
                                  capture_output=True, text=True, timeout=LONGEST_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
            with open(log, encoding="utf-8") as file:
                return done.stdout, console, self.requests(file.read())

    @staticmethod
    def requests(log):
        """Addresses that a page asked for (the browser's own requests have no page as initiator)."""
        try:
            events = json.loads(log)["events"]
        except ValueError:  # a browser that is stopped leaves the closing brackets out
            events = json.loads(log.rstrip().rstrip(",") + "]}")["events"]
        parameters = [event.get("params", {}) for event in events]
        return [p["url"] for p in parameters if "url" in p and "initiator" in p and p["initiator"] != "not an origin"
                and not p["url"].startswith(("file:", "data:", "blob:"))]

    def probe(self, text, *options, metric="staleness/mean"):
        """`metric` is what the heat map shows in the end."""
        script = PROBE.replace('"staleness/mean"', json.dumps(metric))
        dom, console, requests = self.open(text.replace("</body>", script + "</body>"), *options)
        self.assertEqual((console, requests), ([], []))
        title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)[1]
        self.assertTrue(title.startswith("FOUND "), title)
        return json.loads(html.unescape(title[6:]))

    def test_a_request_would_be_seen(self):
        text = '<!DOCTYPE html><link rel="icon" href="data:,"><img src="http://example.invalid/x.png">' \
               '<script>console.error("seen")</script>'
        _, console, requests = self.open(text)
        self.assertEqual(requests[:1], ["http://example.invalid/x.png"])
        self.assertIn("seen", "".join(console))

    def test_it_is_one_file(self):
        for tag, attributes in Tags(re.sub(r"<script[ >].*?</script>", "", self.text, flags=re.DOTALL)).tags:
            for name in ("src", "href", "xlink:href"):
                self.assertTrue(attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes))
        self.assertIsNone(re.search(r"@import|url\((?!#)", re.search(r"<style>(.*?)</style>", self.text, re.DOTALL)[1]))
        self.assertIn("<title>split and buffer – millrace report</title>", self.text)
        for word in ("35 designs: 5 on the frontier, 9 undecided, 20 dominated, 1 failed.", "38.00", "± 0.21",
                     "one replication", '<p id="conclusion">The frontier, all of the family buffer, runs from '):
            self.assertTrue(word in self.text, word)  # not the whole page as the message
        ids = [attributes["id"] for _, attributes in Tags(self.text).tags if "id" in attributes]
        self.assertEqual(len(set(ids)), len(ids), "figures do not share ids")

    def test_parts_are_linked(self):
        designs = self.study["designs"]
        ids = [one["design"] for one in designs]
        found = self.probe(self.text, "--window-size=1280,900")
        # Those on the frontier stand first, then undecided, dominated and failed ones; the first objective orders each.
        rank = {"in": 0, "undecided": 1, "out": 2}
        key = {one["design"]: (rank.get(one.get("membership"), 3),
                               one["metrics"]["compute/gamma_simulated"]["mean"] if "metrics" in one else 0)
               for one in designs}
        self.assertEqual(sorted(found["rows"]), sorted(ids))
        self.assertEqual([key[one] for one in found["rows"]], sorted(key.values()))
        self.assertEqual(found["hidden"], True)
        self.assertEqual(found["points"], len(ids) - 1)  # one has failed
        row = found["afterRow"]
        self.assertEqual(row["selected"], [ids[3]])
        self.assertEqual(row["ring"], [designs[3]["metrics"][one["metric"]]["mean"] for one in synthetic.OBJECTIVES])
        self.assertEqual([round(x, 9) for x in row["heat"]], [1, 0])  # 4:4 is second from the left, N = 64 the lowest
        self.assertEqual(row["command"], "millrace run ../paper/qwen2.5-7b-6-2.json --set workers.count=4 "
                                         "--set trainers.count=4 --set store.capacity=64 --replications "
                                         f"{designs[3]['replications']}")
        self.assertIn(row["copied"], ("Copied.", "Press Ctrl+C to copy."))
        for one, i in ((row, 3), (found["afterPoint"], 12)):  # of those that have a file, its command as well
            wanted = designs[i].get("scenario")
            self.assertEqual(one["file"], wanted and f"millrace run {self.path('sweep')}/{wanted}")
        self.assertEqual(row["hash"], "#design=" + ids[3])
        self.assertEqual(found["afterPoint"]["selected"], [ids[12]])
        self.assertEqual(found["afterPoint"]["ring"][0], designs[12]["metrics"]["compute/gamma_simulated"]["mean"])
        self.assertEqual(found["afterCell"]["selected"], [ids[20]])
        self.assertEqual(found["ascending"], sorted(found["ascending"], key=int))
        self.assertEqual(found["descending"], sorted(found["ascending"], key=int, reverse=True))
        self.assertEqual((found["sorted"], found["stillSelected"]), ("descending", [ids[20]]))
        self.assertEqual(found["failed"], ["failed: " + designs[7]["error"]])
        self.assertEqual(found["colours"], 29)
        kinds = [one.get("membership") for one in designs if one["family"] == "buffer"]
        self.assertEqual(sorted(found["outlines"]), sorted(["solid"] * kinds.count("in")
                                                           + ["4px,3px"] * kinds.count("undecided")))
        self.assertEqual(found["legend"], "Outlined: on the frontier. Dashed outline: undecided.")
        self.assertEqual(sum("workers.count = " in text for text in found["hover"]), len(ids) - 1)

    def test_phone_in_the_dark(self):
        found = self.probe(self.text, "--window-size=500,900", "--blink-settings=preferredColorScheme=0")
        self.assertLessEqual(found["width"], 0, "the page scrolls sideways")

    def test_address_of_a_design(self):
        wanted = self.study["designs"][9]["design"]
        dom, console, requests = self.open(self.text, address="#design=" + wanted)
        self.assertEqual((console, requests), ([], []))
        self.assertEqual(re.findall(r'<tr id="row-(\w+)"[^>]*aria-selected="true"', dom), [wanted])

    def test_words_of_a_file_stay_words(self):
        study = json.loads(json.dumps(self.study).replace(
            "no buffer", "<b>x</b></script><script>document.title='hit'//"))
        study["objectives"] += [{"metric": "replay/mean", "goal": "maximize"}]  # three: no staircase
        for one in study["designs"]:
            one["values"] = {"admission": {"kind": "</script>"}}  # and nothing for a heat map
        os.makedirs(self.path("odd"), exist_ok=True)
        with open(self.path("odd/pareto.json"), "w", encoding="utf-8") as file:
            json.dump(study, file)
        self.assertEqual(report.main([self.path("odd"), "--out", self.path("odd.html")]), 0)
        with open(self.path("odd.html"), encoding="utf-8") as file:
            dom, console, requests = self.open(file.read())
        self.assertEqual((console, requests), ([], []))
        self.assertIn("<title>split and buffer", dom)
        self.assertIn('data-ready="yes"', dom)
        self.assertEqual(len(re.findall(r'<tr id="row-', dom)), len(study["designs"]))

    def test_ties_and_added_designs_are_marked(self):
        study = json.loads(json.dumps(self.study))
        front = next(one for one in study["designs"] if one.get("on_front"))
        other = next(one for one in study["designs"] if one.get("membership") == "out")
        other.update(membership="in", on_front=True, metrics=front["metrics"], refined=True)
        os.makedirs(self.path("tied"), exist_ok=True)
        with open(self.path("tied/pareto.json"), "w", encoding="utf-8") as file:
            json.dump(study, file)
        self.assertEqual(report.main([self.path("tied")]), 0)
        with open(self.path("tied/report.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("Added by the sweep itself: 1.", text)
        found = self.probe(text, "--window-size=1280,900")
        self.assertEqual(sum("2 designs at this point" in hover for hover in found["hover"]), 2)
        self.assertEqual(sum("added by the sweep" in hover for hover in found["hover"]), 1)

    def test_assumed_noise_and_added_designs(self):
        study = json.loads(json.dumps(self.study).replace("staleness/mean", "noise/relative_variance"))
        like = study["designs"][0]
        study["designs"].append({**like, "design": "f" * 16, "refined": True,
                                 "values": {**like["values"], "store.capacity": 96}})
        os.makedirs(self.path("noisy"), exist_ok=True)
        with open(self.path("noisy/pareto.json"), "w", encoding="utf-8") as file:
            json.dump(study, file)
        self.assertEqual(report.main([self.path("noisy")]), 0)
        with open(self.path("noisy/report.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn('<p id="conclusion">Under the assumed noise model: The frontier', text)
        self.assertIn("Not drawn: 1 design that the sweep added between values of its axes.", text)
        found = self.probe(text, "--window-size=1280,900", metric="noise/relative_variance")
        self.assertEqual(found["legend"],
                         "Outlined: on the frontier. Dashed outline: undecided. Under the assumed noise model.")
        self.assertEqual((len(found["rows"]), found["colours"]), (len(study["designs"]), 29))

    def test_same_bytes_twice(self):
        subprocess.run([sys.executable, "-B", os.path.join(PLOTS, "report.py"), self.path("sweep"), "--out",
                        self.path("again.html")], check=True, env={**os.environ, "PYTHONHASHSEED": "3"})
        with open(self.path("again.html"), encoding="utf-8") as file:
            self.assertEqual(file.read() == self.text, True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
