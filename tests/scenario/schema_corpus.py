#!/usr/bin/python3
"""Holds the JSON Schemas of all kinds of files against the corpora that their decoders are tested with.

A schema is what editors check while a file is written; the decoder is what millrace believes. Both must accept the same
files, and where the schema cannot see a fault, expected.tsv says so. Needs python3-jsonschema.
"""
import copy
import json
import math
import pathlib
import sys

from jsonschema import Draft7Validator, RefResolver

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "scenario" / "corpus"
SCHEMAS = ROOT / "scenarios" / "schema"
DEEPEST = 100


class NotStrict(ValueError):
    pass


def strict_json(text):
    """The document, or NotStrict for what RFC 8259 or the project's stricter rules forbid."""

    def members(pairs):
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise NotStrict("duplicate key")
        return dict(pairs)

    def whole(digits):
        if abs(int(digits)) > 2**53:
            raise NotStrict("integer beyond 2^53")
        return int(digits)

    def real(digits):
        if not math.isfinite(float(digits)):
            raise NotStrict("beyond a double")
        return float(digits)

    def constant(word):
        raise NotStrict(word)

    def depth(node):
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else None
        return 0 if children is None else 1 + max(map(depth, children), default=0)

    try:
        document = json.loads(
            text, object_pairs_hook=members, parse_int=whole, parse_float=real, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        raise NotStrict(str(error)) from error
    if depth(document) > DEEPEST:
        raise NotStrict("nested too deeply")
    return document


def expected_visibility(corpus):
    """{file: "yes" | "no" | "syntax"} from expected.tsv."""
    visibility = {}
    for line in (corpus / "expected.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            visibility[fields[0]] = fields[5]
    return visibility


def required_keys(corpus):
    """{kind of an object, or the key it stands under: [keys it must have]} from required.tsv."""
    lines = (corpus / "required.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: keys.split() for name, keys in rows}


def name_of(node, path):
    """The name under which required.tsv lists an object."""
    names = [step for step in path if isinstance(step, str)]
    return node.get("kind", names[-1] if names else ".")


def undocumented_keys(schema, path=""):
    """Paths of properties that lack a description, or that give an editor nothing to offer."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from undocumented_keys(part, f"{path}[{index}]")
        return
    if not isinstance(schema, dict):
        return
    for key, rule in schema.get("properties", {}).items() if "additionalProperties" in schema else ():
        if rule is True:  # `kind`, described where its object is
            continue
        if "description" not in rule or not ({"examples", "enum", "default"} & rule.keys()):
            yield f"{path}.{key}"
    for name, part in schema.items():
        if name not in ("examples", "default", "enum", "const"):
            yield from undocumented_keys(part, f"{path}/{name}")


def objects_in(node, path=()):
    """Paths of all objects, without those in a sweep file that are values for a scenario."""
    if isinstance(node, dict):
        yield path
        for key, child in node.items():
            if key != "values" and path[-1:] != ("set",):
                yield from objects_in(child, path + (key,))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from objects_in(child, path + (index,))


def at(node, path):
    for step in path:
        node = node[step]
    return node


def is_learn_file(file):
    """As the decoder tells the kinds apart: a learner without a pipeline."""
    return not {"workers", "store"} & strict_json(file.read_text(encoding="utf-8")).keys()


def failures_of(schema_file, corpus, shipped, fewest_good, fewest_shipped, fewest_bad):
    failures = []

    def require(condition, text):
        if not condition:
            failures.append(text)

    schema = json.loads(schema_file.read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    # A base that stands in a sweep file is a scenario.
    scenario = json.loads((SCHEMAS / "scenario.schema.json").read_text(encoding="utf-8"))
    validator = Draft7Validator(schema, resolver=RefResolver(schema["$id"], schema, {scenario["$id"]: scenario}))
    for path in undocumented_keys(schema):
        require(False, f"the schema's {path} lacks a description, or an example, default or enum")

    good = sorted((corpus / "good").glob("*.json"))
    require(len(good) >= fewest_good and len(shipped) >= fewest_shipped, "files are missing")
    required = required_keys(corpus)
    mutations = 0
    for file in good + shipped:
        document = strict_json(file.read_text(encoding="utf-8"))
        for error in validator.iter_errors(document):
            require(False, f"{file.name}: the schema rejects it: {error.message} at {list(error.absolute_path)}")
        for path in objects_in(document):
            mutant = copy.deepcopy(document)
            at(mutant, path)["no_such_key"] = 1
            mutations += 1
            require(not validator.is_valid(mutant), f"{file.name}: the schema allows an unknown key in {path}")
            for key in required.get(name_of(at(document, path), path), []):
                if key in at(document, path):
                    mutant = copy.deepcopy(document)
                    del at(mutant, path)[key]
                    mutations += 1
                    require(not validator.is_valid(mutant), f"{file.name}: the schema does not miss {key} in {path}")

    visibility = expected_visibility(corpus)
    bad = sorted((corpus / "bad").glob("*.json"))
    require(len(bad) >= fewest_bad, "bad files are missing")
    require({file.name for file in bad} == visibility.keys(), "bad/ and expected.tsv name different files")
    for file in bad:
        expected = visibility.get(file.name)
        try:
            document = strict_json(file.read_bytes().decode("utf-8"))
        except NotStrict as error:
            require(expected == "syntax", f"{file.name}: not strict JSON ({error}), expected {expected}")
            continue
        seen = "no" if validator.is_valid(document) else "yes"
        require(seen == expected, f"{file.name}: rejected by the schema: {seen}, expected {expected}")

    print(
        f"{schema_file.name}: {len(good)} good, {len(shipped)} shipped, {len(bad)} bad files, {mutations} mutations, "
        f"{len(failures)} failures"
    )
    return failures


def main():
    scenarios = ROOT / "scenarios"
    learning = sorted((scenarios / "learn").glob("*.json"))
    learners = [file for file in learning if is_learn_file(file)]
    pipelines = sorted(scenarios.glob("*.json")) + sorted((scenarios / "paper").glob("*.json"))
    pipelines += [file for file in learning if not is_learn_file(file)]
    failures = failures_of(SCHEMAS / "scenario.schema.json", CORPUS, pipelines, 15, 15, 45)
    failures += failures_of(SCHEMAS / "learn.schema.json", CORPUS / "learn", learners, 12, 3, 60)
    sweeps = sorted([*(scenarios / "sweeps").glob("*.json"), *(scenarios / "learn" / "families").glob("*.json")])
    failures += failures_of(SCHEMAS / "sweep.schema.json", CORPUS / "sweep", sweeps, 5, 12, 100)
    calibrations = sorted((scenarios / "calibrations").glob("*.json"))
    failures += failures_of(SCHEMAS / "calibration.schema.json", CORPUS / "calibration", calibrations, 3, 3, 40)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
