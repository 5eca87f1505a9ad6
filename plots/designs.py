"""The designs of a sweep as `millrace pareto` left them in DIR/pareto.json, or those of single results."""
import json
import os

from figure_style import BadInput, BadRequest, Reading, load_json, load_result, short_number

SYMBOLS = {"store.capacity": "N", "workers.count": "W", "trainers.count": "T", "trainers.batch": "B",
           "groups.size": "G", "weight_sync.every": "k", "workers.slots": "slots",
           "learner.optimizer.learning_rate": "lr", "trainers.fresh_per_update": "R",
           "admission.rollouts_per_update": "R"}
WORKERS, TRAINERS = "workers.count", "trainers.count"
MEANINGS = {"N": "rollouts in the buffer or queue", "B": "rollouts per update", "G": "rollouts per prompt",
            "k": "updates between weight transfers", "lr": "learning rate", "R": "fresh rollouts per update",
            "W": "inference workers", "T": "trainers"}
FEW = 3  # values up to which a label of designs at one point lists them


def load_folder(folder):
    """pareto.json, checked as far as figures need it; every design gets a "label"."""
    path = os.path.join(folder, "pareto.json")
    if not os.path.exists(os.path.join(folder, "sweep.json")) and not os.path.exists(path):
        raise BadRequest(f"{folder} is not the folder of a sweep: there is no {folder}/sweep.json")
    if not os.path.exists(path):
        raise BadRequest(f"{folder} has no pareto.json yet: run  millrace pareto {folder}")
    study = load_json(path)
    with Reading(path):
        objectives = [(str(one["metric"]), one["goal"]) for one in study["objectives"]]
        if len(objectives) < 2 or any(goal not in ("minimize", "maximize") for _, goal in objectives):
            raise ValueError("it takes two objectives, each to minimize or maximize")
        families = list(study["families"])
        for design in study["designs"]:
            families.index(design["family"])
            design["label"] = label(design["values"])
            design["set"] = [str(one) for one in design.get("set", [])]
            design["refined"] = design.get("refined") is True  # added by the sweep between two designs of its axes
            if "error" in design:
                continue
            if design["membership"] not in ("in", "out", "undecided"):
                raise ValueError(f'{design["design"]}: membership is {design["membership"]!r}')
            if not isinstance(design["on_front"], bool):
                raise ValueError(f'{design["design"]}: on_front is {design["on_front"]!r}')
            for estimate in design["metrics"].values():
                estimate["mean"]
    study["target_words"] = target_words(folder, study["designs"])
    return study


def target_words(folder, designs):
    """pass@1 = 0.5: the accuracy that learners of all designs are to reach; None where it is not one, or not known."""
    path, found = os.path.join(folder, "sweep.json"), set()
    sweep = load_json(path) if os.path.exists(path) else {}
    with Reading(path):
        bases = {family["name"]: family["base"] for family in sweep.get("sweep", {}).get("families", [])}
        for design in designs:
            base = bases.get(design["family"])
            changes = [text.split("=", 1)[0] for text in design["set"]]
            # A sweep over targets, or over learners, has no single one.
            if not isinstance(base, dict) or {"learner", "learner.target_pass_at_1"} & set(changes):
                return None
            found.add((base.get("learner") or {}).get("target_pass_at_1"))
    if len(found) != 1 or None in found:
        return None
    return f"pass@1 = {short_number(found.pop())}"


def load_results(paths):
    """Results of `millrace run` as designs of one family; `values` then holds the whole scenario by dotted paths."""
    designs = []
    for path in paths:
        result = load_result(path)
        with Reading(path):
            values = dict(flat(result["scenario"]))
            metrics = {key: {"mean": float(metric["mean"]), "half_width": metric.get("half_width"),
                             "replications": metric["replications"]} for key, metric in result["metrics"].items()}
            designs.append({"design": path, "family": "", "values": values, "metrics": metrics,
                            "label": str(result["scenario"]["name"])})
    return designs


def load_any(paths):
    """(name, families, designs, objectives) of one folder of a sweep or of results."""
    folders = [path for path in paths if os.path.isdir(path)]
    if folders and len(paths) > 1:
        raise BadRequest("either one folder of a sweep or results, not both")
    if folders:
        study = load_folder(folders[0])
        return str(study["name"]), study["families"], study["designs"], study["objectives"]
    return "", [""], load_results(paths), []


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, prefix + key + ".")
        else:
            yield prefix + key, value


def symbol(path):
    return SYMBOLS.get(path, path.rsplit(".", 1)[-1])


def value_text(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value if isinstance(value, str) else json.dumps(value)
    return short_number(value)


def distinguishes(path):
    """Whether the axis says what a design is, not only how long it was looked at."""
    return not path.startswith("horizon.") and path not in ("seed", "name", "description")


def label(values):
    """6:2, N = 84: how many work and train, then the other axes."""
    return ", ".join(text for text, _ in parts(values))


def parts(values):
    """[what is written, path] of a label; axes that go together under one symbol (R) are one part."""
    found, rest = [], dict(values)
    if WORKERS in rest and TRAINERS in rest:
        found.append((f"{value_text(rest.pop(WORKERS))}:{value_text(rest.pop(TRAINERS))}", WORKERS))
    for path, value in rest.items():
        if not distinguishes(path):
            continue
        text = value_text(value)
        text = text if len(text) <= 24 else text[:22] + " …"
        text = text if isinstance(value, str) else f"{symbol(path)} = {text}"
        if text not in (other for other, _ in found):
            found.append((text, path))
    return found


def label_key(designs):
    """What the symbols in these designs' labels mean, in the order in which they appear."""
    words = []
    for design in designs:
        for text, path in parts(design["values"]):
            if path == WORKERS and ":" in text:
                words.append("W:T = workers : trainers")
            elif symbol(path) in MEANINGS:
                words.append(f"{symbol(path)} = {MEANINGS[symbol(path)]}")
    return ", ".join(dict.fromkeys(words))


def shared_label(designs):
    """One label for designs at the same point: what they have in common, and where they differ in one axis its values
    (6:2, N = 2,048 or 8,192); else how many they are."""
    if len({design["label"] for design in designs}) == 1:
        return designs[0]["label"]
    each = [dict((path, text) for text, path in parts(design["values"])) for design in designs]
    paths = list(each[0])
    differing = [path for path in paths if len({one.get(path) for one in each}) > 1]
    several = f"{len(designs)} designs"
    if any(list(one) != paths for one in each) or len({design["family"] for design in designs}) > 1:
        return several
    common = [each[0][path] for path in paths if path not in differing]
    if len(differing) > 1:
        return ", ".join([several] + common) if common else several
    texts = list(dict.fromkeys(one[differing[0]] for one in each))
    head = f"{symbol(differing[0])} = " if all(text.startswith(f"{symbol(differing[0])} = ") for text in texts) else ""
    texts = [text.removeprefix(head) for text in texts]
    listed = (", ".join(texts[:-1]) + " or " + texts[-1] if len(texts) <= FEW
              else f"{texts[0]} … {texts[-1]}")
    return ", ".join(head + listed if path == differing[0] else each[0][path] for path in paths)


def at_one_point(designs, keys):
    """Lists of designs whose means are equal in all of `keys`, in order."""
    found = {}
    for design in designs:
        found.setdefault(tuple(mean_and_spread(design, key)[0] for key in keys), []).append(design)
    return list(found.values())


def families_without(families, designs, paths):
    """Names of the families none of whose designs has values of all `paths`."""
    return [name for name in families
            if not any(design["family"] == name and set(paths) <= set(design["values"]) for design in designs)]


def not_shown(families, designs, paths):
    """What a figure over `paths` says of families that have no place in it; None where all have."""
    missing = families_without(families, designs, paths)
    if not missing:
        return None
    return f"Not shown: {', '.join(missing)} (not swept over {' and '.join(paths)})."


def has_metric(design, key):
    return "metrics" in design and key in design["metrics"] and design["metrics"][key]["mean"] is not None


def mean_and_spread(design, key):
    """Mean and half width, the latter 0 where there is none."""
    metric = design["metrics"][key]
    return float(metric["mean"]), float(metric.get("half_width") or 0.0)


def known_metrics(designs):
    return sorted({key for design in designs for key in design.get("metrics", {})})
