"""The designs of a sweep as `millrace pareto` left them in DIR/pareto.json, or those of single results."""
import json
import os

from figure_style import BadInput, BadRequest, Reading, load_json, load_result, short_number

SYMBOLS = {"store.capacity": "N", "workers.count": "W", "trainers.count": "T", "trainers.batch": "B",
           "groups.size": "G", "weight_sync.every": "k", "workers.slots": "slots",
           "learner.optimizer.learning_rate": "lr"}


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
            if "error" in design:
                continue
            if design["membership"] not in ("in", "out", "undecided"):
                raise ValueError(f'{design["design"]}: membership is {design["membership"]!r}')
            if not isinstance(design["on_front"], bool):
                raise ValueError(f'{design["design"]}: on_front is {design["on_front"]!r}')
            for estimate in design["metrics"].values():
                estimate["mean"]
    return study


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
    """(heading, families, designs) of one folder of a sweep or of results."""
    folders = [path for path in paths if os.path.isdir(path)]
    if folders and len(paths) > 1:
        raise BadRequest("either one folder of a sweep or results, not both")
    if folders:
        study = load_folder(folders[0])
        return str(study["name"]), study["families"], study["designs"]
    return "", [""], load_results(paths)


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
    parts, rest = [], dict(values)
    if "workers.count" in rest and "trainers.count" in rest:
        parts.append(f'{value_text(rest.pop("workers.count"))}:{value_text(rest.pop("trainers.count"))}')
    for path, value in rest.items():
        if not distinguishes(path):
            continue
        text = value_text(value)
        text = text if len(text) <= 24 else text[:22] + " …"
        parts.append(text if isinstance(value, str) else f"{symbol(path)} = {text}")
    return ", ".join(parts)


def has_metric(design, key):
    return "metrics" in design and key in design["metrics"] and design["metrics"][key]["mean"] is not None


def mean_and_spread(design, key):
    """Mean and half width, the latter 0 where there is none."""
    metric = design["metrics"][key]
    return float(metric["mean"]), float(metric.get("half_width") or 0.0)


def known_metrics(designs):
    return sorted({key for design in designs for key in design.get("metrics", {})})
