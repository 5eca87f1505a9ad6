"""A folder as millrace pareto leaves it, made from formulas: enough designs, intervals and failures to draw."""
import json
import math
import os
import random

OBJECTIVES = [{"metric": "compute/gamma_simulated", "goal": "minimize"},
              {"metric": "staleness/mean", "goal": "minimize"}]
MU = 5.0


def write_folder(folder, capacities=(64, 128, 256, 512, 1024, 2048), splits=((7, 1), (6, 2), (5, 3), (4, 4), (3, 5)),
                 seed=1):
    """Writes DIR/pareto.json and returns what stands in it."""
    random_numbers = random.Random(seed)
    designs = []
    for family in ("buffer", "no buffer"):
        for capacity in capacities if family == "buffer" else (None,):
            for workers, trainers in splits:
                designs.append(design(random_numbers, len(designs), family, capacity, workers, trainers))
    designs[7] = {key: designs[7][key] for key in ("design", "family", "values", "set", "base", "replications")}
    designs[7]["error"] = "update 12 waits for 60 rollouts, and <all> workers are blocked"
    decide(designs)
    document = {"name": "split and buffer", "description": "Eight GPUs, split and with buffers of several sizes.",
                "sweep_hash": "0123456789abcdef", "confidence": 0.95, "objectives": OBJECTIVES,
                "reference_point": [1.5, 60.0], "hypervolume": {"value": 38.1, "mean": 38.0, "half_width": 0.21},
                "families": ["buffer", "no buffer"],
                "family_hypervolumes": {"buffer": {"value": 38.0, "mean": 37.9, "half_width": 0.2},
                                        "no buffer": {"value": 21.0, "mean": 21.0, "note": "one replication"}},
                "designs": designs}
    os.makedirs(os.path.join(folder, "frontier"), exist_ok=True)
    with open(os.path.join(folder, "pareto.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    return document


def design(random_numbers, index, family, capacity, workers, trainers):
    gamma = (1 + workers / trainers) / (1 + MU)
    replay = max(1.0, MU * trainers / workers) if capacity else 1.0
    if not capacity:  # the slower side sets the pace
        gamma = max((workers + trainers) / (trainers * (1 + MU)), MU * (workers + trainers) / (workers * (1 + MU)))
    staleness = (capacity / 64 / 2 * replay / 2 if capacity else 0.4 * trainers) + random_numbers.uniform(0.2, 0.6)
    period = gamma * (1 + MU) * 60 / (workers + trainers)

    def estimate(mean, spread):
        return {"mean": mean, "half_width": spread * mean, "replications": 20}

    values = {"workers.count": workers, "trainers.count": trainers}
    if capacity:
        values["store.capacity"] = capacity
    return {"design": f"{0xABC0000000000000 + index:016x}", "family": family, "values": values,
            "set": [f"{path}={value}" for path, value in values.items()],
            "base": "../paper/qwen2.5-7b-6-2.json", "replications": 20,
            "metrics": {"compute/gamma": {"mean": (1 + workers / trainers) / (1 + MU), "half_width": None,
                                          "replications": 0},
                        "compute/gamma_simulated": estimate(gamma, 0.012),
                        "compute/reserved_gpu_s_per_update": estimate(gamma * 60 * (1 + MU), 0.012),
                        "staleness/mean": estimate(staleness, 0.06), "replay/mean": estimate(replay, 0.01),
                        "time/update_period_s": estimate(period, 0.012),
                        "rollouts/trained_per_update": estimate(60.0, 0.0),
                        "rollouts/generated_per_update": estimate(60.0 / replay, 0.01)}}


def decide(designs):
    """Membership by intervals: out when something is surely better in both, in when nothing may be, else undecided."""
    def bounds(one, key):
        metric = one["metrics"][key]
        return metric["mean"] - metric["half_width"], metric["mean"], metric["mean"] + metric["half_width"]

    keys = [objective["metric"] for objective in OBJECTIVES]
    done = [one for one in designs if "metrics" in one]
    for one in done:
        others = [other for other in done if other is not one]
        one["on_front"] = not any(all(bounds(o, k)[1] <= bounds(one, k)[1] for k in keys) for o in others)
        surely = any(all(bounds(o, k)[2] < bounds(one, k)[0] for k in keys) for o in others)
        perhaps = any(all(bounds(o, k)[0] <= bounds(one, k)[2] for k in keys) for o in others)
        one["membership"] = "out" if surely else "undecided" if perhaps else "in"
        if one["on_front"] or one["membership"] == "undecided":
            one["scenario"] = f"frontier/{one['design']}.json"
    assert not math.isnan(sum(bounds(one, keys[0])[1] for one in done))


def write_crowd(folder, seed, count=60, goals=("minimize", "minimize")):
    """Designs at random around a curve, many of them on the frontier and close to each other."""
    random_numbers = random.Random(seed)
    designs = []
    for index in range(count):
        t = random_numbers.random()
        # Every third close to the curve x y = 1 of the best.
        away = random_numbers.choice((0.0, 0.05, 0.6)) * random_numbers.random()
        x, y = 0.3 + t + away, 1 / (0.3 + t) + away
        metrics = {}
        for objective, goal, value in zip(OBJECTIVES, goals, (x, y)):
            mean = value if goal == "minimize" else 5 - value
            metrics[objective["metric"]] = {"mean": mean, "half_width": 0.02, "replications": 5}
        designs.append({"design": f"{index:016x}", "family": ("one", "two")[index % 2],
                        "values": {"workers.count": 1 + index % 7, "trainers.count": 8 - index % 7,
                                   "store.capacity": 64 * (1 + index % 4)},
                        "set": [], "base": "a.json", "replications": 5, "metrics": metrics})
    sign = [1 if goal == "minimize" else -1 for goal in goals]
    keys = [objective["metric"] for objective in OBJECTIVES]
    for one in designs:
        at = [s * one["metrics"][k]["mean"] for s, k in zip(sign, keys)]
        one["on_front"] = not any(
            all(s * other["metrics"][k]["mean"] <= a for s, k, a in zip(sign, keys, at)) and other is not one
            for other in designs)
        one["membership"] = "in" if one["on_front"] else "undecided" if int(one["design"], 16) % 5 == 0 else "out"
    document = {"name": f"crowd {seed}", "description": "", "sweep_hash": "", "confidence": 0.95,
                "objectives": [{"metric": k, "goal": g} for k, g in zip(keys, goals)], "families": ["one", "two"],
                "designs": designs}
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "pareto.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    return document


def learning_result(name, seeds):
    """As much of a result with a learner as curves need; `seeds` are lists of (units, value)."""
    return {"millrace_result": 1, "scenario": {"name": name}, "learner": {"seeds": [
        {"replication": i, "replica": 0, "curve": {"update": list(range(len(points))),
                                                   "compute/units": [x for x, _ in points],
                                                   "learner/greedy": [y for _, y in points]}}
        for i, points in enumerate(seeds)]}}
