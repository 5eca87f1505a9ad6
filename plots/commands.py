"""Commands that run a sweep's designs again, from the directory in which the report was made.

A sweep file names its base scenarios relative to itself, and every design of a family has the family's "set" in common.
So each family's base with that inside is written beside the report, and a command holds the design's own axes only.
"""
import json
import os
import re
import shlex

from figure_style import Reading, load_json


class Commands:
    """`folder` is that of the sweep, as it is named in the commands."""

    def __init__(self, study, folder):
        self.folder = folder
        self.bases = {}  # by family: file, scenario, changes that are in it
        bases = scenarios(folder)
        for family in study["families"]:
            if family not in bases:
                continue
            own = [one for one in study["designs"] if one["family"] == family]
            shared = [text for text in (own[0]["set"] if own else [])
                      if all(text in one["set"] for one in own) and text.split("=", 1)[0] not in own[0]["values"]]
            scenario, inside = with_changes(bases[family], shared)
            self.bases[family] = (os.path.join(folder, "bases", file_name(family, study["families"])), scenario, inside)

    def write(self):
        for path, scenario, _ in self.bases.values():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".part", "w", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(scenario, indent=2, ensure_ascii=False) + "\n")
            os.replace(path + ".part", path)

    def by_set(self, design):
        """The base scenario and what changes it."""
        base, _, inside = self.bases.get(design["family"]) or (str(design.get("base", "SCENARIO.json")), None, [])
        words = ["millrace", "run", base]
        for text in design["set"]:
            if text not in inside:
                words += ["--set", text]
        words += ["--set", f"horizon.warmup_updates={design['warmup_updates']}"] if needs_warmup(design) else []
        words += ["--replications", str(design["replications"])] if design.get("replications") else []
        return shlex.join(words)

    def by_file(self, design):
        """The file that millrace pareto wrote of a design of the frontier, None for others."""
        if not design.get("scenario"):
            return None
        return shlex.join(["millrace", "run", os.path.join(self.folder, design["scenario"])])


def needs_warmup(design):
    """Whether the warm-up that the sweep measured with has to be said, so that the command gives the same numbers."""
    warmup = design.get("warmup_updates")
    if not isinstance(warmup, int) or isinstance(warmup, bool):
        return False
    return not any(text.startswith("horizon.warmup_updates=") or (text.startswith("horizon=") and
                                                                 '"warmup_updates"' in text) for text in design["set"])


def scenarios(folder):
    """The families' bases from DIR/sweep.json, by name."""
    path = os.path.join(folder, "sweep.json")
    if not os.path.exists(path):
        return {}
    sweep = load_json(path)
    with Reading(path):
        return {family["name"]: family["base"] for family in sweep["sweep"]["families"]
                if isinstance(family["base"], dict)}


def file_name(family, families):
    """no-buffer.json; with a number where two names would be the same file."""
    plain = [re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "family" for name in families]
    i = families.index(family)
    return plain[i] + (f"-{i + 1}" if plain.count(plain[i]) > 1 else "") + ".json"


def with_changes(base, changes):
    """The base with those of the `path=value` texts inside that name a place in it, and which ones those are. Others
    stay on the command line: what is added to a default object (admission.steps_ahead) is decided by millrace."""
    scenario, inside = json.loads(json.dumps(base)), []
    for text in changes:
        path, value = text.split("=", 1)
        *parents, last = path.split(".")
        place = scenario
        for key in parents:
            place = place.get(key) if isinstance(place, dict) else None
        try:
            value = json.loads(value)
        except ValueError:
            continue
        if isinstance(place, dict):
            place[last] = value
            inside.append(text)
    return scenario, inside
