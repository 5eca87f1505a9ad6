"""What a sweep says, in a sentence or two: only numbers of its own designs, and no more than their intervals allow."""
import math

from designs import at_one_point, has_metric, mean_and_spread, shared_label
from figure_style import metric_title, short_number

# Where designs have one of these, it decides which is best: cost and worth of an update in one number.
TO_TARGET = ["noise/relative_compute_to_target", "learner/compute_to_target"]
REUSE = "replay/mean"
ONCE = 1.01  # uses per rollout up to which it counts as used once
MORE_IS_BETTER = ("learner/pass@", "learner/greedy", "workers/busy", "trainers/busy")


def goal_of(metric, objectives=()):
    """As the sweep has it, else as the metric is meant."""
    stated = {one["metric"]: one["goal"] for one in objectives}
    return stated.get(metric, "maximize" if metric.startswith(MORE_IS_BETTER) else "minimize")


def target_metric(designs):
    """The metric that decides which design is best, None where there is none."""
    return next((key for key in TO_TARGET if any(has_metric(one, key) for one in designs)), None)


def best_of(designs, key, goal="minimize"):
    """All designs with the best mean, the first of them first."""
    known = [one for one in designs if has_metric(one, key)]
    tied = at_one_point(known, [key])
    return (min if goal == "minimize" else max)(tied, key=lambda some: mean_and_spread(some[0], key)[0], default=[])


def named(designs, families):
    """3:5, N = 252 (buffer)"""
    label, owners = shared_label(designs), list(dict.fromkeys(one["family"] for one in designs))
    if len(families) < 2 or not any(owners):
        return label
    return f"{label} ({', '.join(owners)})" if label else ", ".join(owners)


def in_sentence(metric):
    """A metric's title inside a sentence, without the unit after its comma."""
    words = metric_title(metric).split(",")[0]
    return words if words[:2].isupper() else words[0].lower() + words[1:]


def comparison(study):
    """The best design for the target and what it is compared with: the best that reuses no rollout where it does (or
    the other way round), else the best of another family. None where there is no such metric."""
    designs, families = study["designs"], study["families"]
    key = target_metric(designs)
    if key is None:
        return None
    best = best_of(designs, key)
    reuses = [one for one in designs if has_metric(one, REUSE) and mean_and_spread(one, REUSE)[0] > ONCE]
    once = [one for one in designs if has_metric(one, REUSE) and mean_and_spread(one, REUSE)[0] <= ONCE]
    found = {"metric": key, "best": best, "reference": [], "words": ""}
    if best[0] in reuses and best_of(once, key):
        found.update(reference=best_of(once, key), words="the best design that uses every rollout once")
    elif best[0] in once and best_of(reuses, key):
        found.update(reference=best_of(reuses, key), words="the best design that reuses rollouts")
    else:
        others = [one for one in designs if one["family"] != best[0]["family"]]
        if best_of(others, key):
            found.update(reference=best_of(others, key), words="the best design of another family")
    found["title"] = f"{named(best, families)} needs the least compute to the target"
    if not found["reference"]:
        return found
    (mean, half), (other, other_half) = (mean_and_spread(some[0], key) for some in (best, found["reference"]))
    where = named(found["reference"], families)
    if other - mean > math.hypot(half, other_half):
        saving = f"{100 * (1 - mean / other):.0f} %"
        found["title"] = f"{named(best, families)} needs {saving} less compute to the target than {found['words']}"
        found["sentence"] = f"{named(best, families)} needs the least compute to the target: {saving} less than " \
                            f"{where}, {found['words']}."
    else:
        found["title"] = f"{named(best, families)} and {where} need the same compute to the target within their " \
                         "intervals"
        found["sentence"] = f"{named(best, families)} and {where}, {found['words']}, need the same compute to the " \
                            "target within their intervals."
    return found


def ends(study):
    """The two ends of the frontier by means: its best in the first and in the second objective, None without any."""
    front = [one for one in study["designs"] if one.get("on_front")]
    keys = [one["metric"] for one in study["objectives"][:2]]
    if not front:
        return None
    sign = 1 if study["objectives"][0]["goal"] == "minimize" else -1
    tied = at_one_point(front, keys)
    return [pick(tied, key=lambda some: sign * mean_and_spread(some[0], keys[0])[0]) for pick in (min, max)]


def headline(study):
    """The finding as the heading of a figure."""
    found = comparison(study)
    if found:
        return found["title"]
    at = ends(study)
    if at is None:
        return str(study["name"])
    keys = [one["metric"] for one in study["objectives"][:2]]
    first, last = ([short_number(mean_and_spread(some[0], key)[0]) for key in keys] for some in at)
    if first == last:
        return f"{named(at[0], study['families'])} is the best in both objectives"
    return "Along the frontier " + " and ".join(
        f"{in_sentence(key)} {'goes ' if key == keys[0] else ''}from {a} to {b}"
        for key, a, b in zip(keys, first, last))


def named_in_headline(study):
    """Ids of the designs that are the heading's best."""
    found = comparison(study)
    return {one["design"] for one in found["best"]} if found else set()


def sentences(study):
    """The conclusion for a reader who reads nothing else."""
    found, at = comparison(study), ends(study)
    text = [found.get("sentence", found["title"] + ".")] if found else []
    if at is None:
        return " ".join(text + ["No design has a place on the frontier."])
    keys = [one["metric"] for one in study["objectives"][:2]]

    def end(some):
        return named(some, study["families"]) + ": " + ", ".join(
            f"{in_sentence(key)} {short_number(mean_and_spread(some[0], key)[0])}" for key in keys)

    front = [one for one in study["designs"] if one.get("on_front")]
    owners = {one["family"] for one in front}
    only = f", all of the family {owners.pop()}," if len(owners) == 1 < len(study["families"]) else ""
    if end(at[0]) == end(at[1]):
        text.append(f"The frontier is one point: {end(at[0])}.")
    else:
        text.append(f"The frontier{only} runs from {end(at[0])}; to {end(at[1])}.")
    return " ".join(text)


def extreme(designs, families, metric, goal):
    """Compute to target: lowest at 3:5, N = 252 (buffer), 0.659"""
    best = best_of(designs, metric, goal)
    where = named(best, families)
    word = "lowest" if goal == "minimize" else "highest"
    value = short_number(mean_and_spread(best[0], metric)[0])
    return f"{metric_title(metric)}: {word}{' at ' + where if where else ''}, {value}"
