"""What a sweep says, in a sentence or two: only numbers of its own designs, and no more than their intervals allow."""
import math

from designs import at_one_point, has_metric, mean_and_spread, shared_label
from figure_style import metric_title, short_number

# Where designs have one of these, it decides which is best: cost and worth of an update in one number.
TO_TARGET = ["noise/relative_compute_to_target", "learner/compute_to_target"]
REUSE = "replay/mean"
NOISE_WORDS = "under the assumed noise model"
MOST_NAMED = 3   # designs in a sentence
MAP_HEADING = 30
HEADING = 60     # characters that their names may take in a heading
ONCE = 1.01  # uses per rollout up to which it counts as used once
MORE_IS_BETTER = ("learner/pass@", "learner/greedy", "workers/busy", "trainers/busy")


def goal_of(metric, objectives=()):
    """As the sweep has it, else as the metric is meant."""
    stated = {one["metric"]: one["goal"] for one in objectives}
    return stated.get(metric, "maximize" if metric.startswith(MORE_IS_BETTER) else "minimize")


def target_metric(designs):
    """The metric that decides which design is best, None where there is none."""
    return next((key for key in TO_TARGET if any(has_metric(one, key) for one in designs)), None)


def complete(designs, key):
    """Designs that have the metric in all their replications; those that have it in some, if none has it in all: where
    only the lucky replications reach a target, their mean is no estimate."""
    known = [one for one in designs if has_metric(one, key)]
    return [one for one in known
            if one["metrics"][key].get("replications") in (None, 0, one.get("replications"))] or known


def some_lack(designs, key):
    """Whether complete() leaves any out."""
    return len(complete(designs, key)) < sum(has_metric(one, key) for one in designs)


def interval(design, key):
    mean, half = mean_and_spread(design, key)
    return mean - half, mean + half


def without_interval(design, key):
    """One replication, not a closed form: there is a mean, and nobody knows how good it is."""
    return design["metrics"][key].get("half_width") is None and bool(design["metrics"][key].get("replications"))


def best_of(designs, key, goal="minimize"):
    """All designs with the best mean, the first of them first."""
    tied = at_one_point(complete(designs, key), [key])
    return (min if goal == "minimize" else max)(tied, key=lambda some: mean_and_spread(some[0], key)[0], default=[])


def leaders(designs, key, goal="minimize"):
    """The best by its mean and all designs whose intervals overlap its own, as lists of designs at one point, the best
    first: the intervals do not tell which of them is the best."""
    best = best_of(designs, key, goal)
    if not best:
        return []
    sign = 1 if goal == "minimize" else -1
    low, high = interval(best[0], key)
    near = [one for one in complete(designs, key) if interval(one, key)[0] <= high and interval(one, key)[1] >= low]
    return sorted(at_one_point(near, [key]), key=lambda some: sign * mean_and_spread(some[0], key)[0])


def named(designs, families):
    """3:5, N = 252 (buffer)"""
    label, owners = shared_label(designs), list(dict.fromkeys(one["family"] for one in designs))
    if len(families) < 2 or not any(owners):
        return label
    return f"{label} ({', '.join(owners)})" if label else ", ".join(owners)


def listed(points, families, longest=None):
    """3:5, N = 252 and 4:4, N = 252 (buffer): at most three, and how many others there are. `longest` is the number of
    characters that names may take in a heading."""
    owners = {one["family"] for some in points for one in some}
    of = f" ({next(iter(owners))})" if len(families) > 1 and len(owners) == 1 and "" not in owners else ""
    names = list(dict.fromkeys(named(some, families) for some in points))
    if of:  # once for all of them
        names = list(dict.fromkeys(name.removesuffix(of) for name in names))
        if len(names) == 1 and names[0] == next(iter(owners)):
            of = ""
    shown = names[:MOST_NAMED]
    while longest and len(shown) > 1 and len("; ".join(shown)) > longest:
        shown.pop()
    rest = len(names) - len(shown)
    others = [f"{rest} other{'s' if rest > 1 else ''}"] if rest else []
    *first, last = shown + others
    return ("; ".join(first) + " and " + last if first else last) + of, len(names)


def percent(low, high):
    """A range of shares in per cent, rounded outwards; `high` None where there is no bound."""
    if high is None:
        return f"at least {math.floor(100 * low)} %"
    if round(100 * low) == round(100 * high):
        return f"{'' if low == high else 'about '}{100 * (low + high) / 2:.0f} %"
    least, most = math.floor(100 * low), math.ceil(100 * high)
    return f"{least} to {most} %" if least > 0 else f"up to {most} %"


def capital(words):
    return words[0].upper() + words[1:]


def in_sentence(metric):
    """A metric's title inside a sentence, without the unit after its comma."""
    words = metric_title(metric).split(",")[0]
    return words if words[:2].isupper() else words[0].lower() + words[1:]


def reference_of(designs, best, key):
    """What the best is compared with, and in words: the designs that use every rollout once where it reuses them (or
    the other way round), else those of other families."""
    reuses = [one for one in designs if has_metric(one, REUSE) and mean_and_spread(one, REUSE)[0] > ONCE]
    once = [one for one in designs if has_metric(one, REUSE) and mean_and_spread(one, REUSE)[0] <= ONCE]
    if best in reuses and best_of(once, key):
        return complete(once, key), "the best design that uses every rollout once"
    if best in once and best_of(reuses, key):
        return complete(reuses, key), "the best design that reuses rollouts"
    return (complete([one for one in designs if one["family"] != best["family"]], key),
            "the best design of another family")


def comparison(study):
    """The best designs for the target, as far as intervals tell them apart, and what they are compared with. Savings
    are ranges in which all of both intervals lie. None where there is no such metric."""
    designs, families = study["designs"], study["families"]
    key = target_metric(designs)
    if key is None:
        return None
    first = leaders(designs, key)
    best = [one for some in first for one in some]
    target = study.get("target_words") if key.startswith("learner/") else None
    compute = f"compute to {target or 'the target'}"
    (who, count), (short, _) = listed(first, families), listed(first, families, HEADING)
    if any(without_interval(one, key) for one in best):
        who, count = listed(first[:1], families)
        return {"metric": key, "best": first[0],
                "title": f"{who} {'has' if count == 1 else 'have'} the least mean {compute}; there are no intervals"}
    need = "needs" if count == 1 and " designs" not in who else "need"
    same = "" if count == 1 else ", the same within their intervals"
    found = {"metric": key, "best": best, "title": f"{short} {need} the least {compute}{same}"}
    found["sentence"] = f"{who} {need} the least {compute}{same}"
    # Whichever of them is the best needs no more than the first may, and no less than any may.
    low, high = min(interval(one, key)[0] for one in best), interval(best[0], key)[1]
    others, words = reference_of(designs, best[0], key)
    if others and not any(one in best for one in others):
        # The best of the others is known no better than this, whichever it is.
        least, most = (min(interval(one, key)[k] for one in others) for k in (0, 1))
        if least > high:
            saving = percent(1 - high / least, min(1.0, 1 - low / most))
            which = "" if count == 1 else "whichever is the best, "
            found["sentence"] += f": {which}{saving} less than {named(best_of(others, key), families)}, {words}"
            if count == 1:
                found["title"] = f"{who} {need} {saving} less {compute} than {words}"
    rest = [one for one in designs if one not in best]
    if count == 1 and best_of(rest, key):
        following = best_of(rest, key)
        least, most = interval(following[0], key)
        if least > high > 0:
            more = percent(least / high - 1, most / low - 1 if low > 0 else None)
            found["sentence"] += f". The next, {named(following, families)}, needs {more} more"
    found["sentence"] += "."
    if some_lack(designs, key):
        found["sentence"] += " Designs that reach it in some replications only are left out of that."
    return found


def assumes_noise(metrics):
    """Whether one of them comes from the scenario's noise model, not from anything measured."""
    return any(key is not None and key.startswith("noise/") for key in metrics)


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
    text = " ".join(text)
    if assumes_noise(keys + [found["metric"] if found else None]):
        text = capital(NOISE_WORDS) + ": " + text
    return text


def extreme(designs, families, metric, goal):
    """Compute to target: lowest at 3:5, N = 252 (buffer), 0.659. With the designs that intervals do not tell from it,
    and what to say of that under the heading, None where there is nothing to say."""
    first = leaders(designs, metric, goal)
    (where, count), (short, _) = listed(first, families), listed(first, families, MAP_HEADING)
    word = "lowest" if goal == "minimize" else "highest"
    means = [mean_and_spread(some[0], metric)[0] for some in first]
    values = list(dict.fromkeys(short_number(value) for value in (means[0], means[-1])))
    notes = [f"{word} within their intervals: {where}"] if count > 1 and len(first) > 1 else []
    if some_lack(designs, metric):
        notes.append("the heading leaves out designs that have the metric in some replications only")
    heading = f"{metric_title(metric)}: {word}{' at ' + short if short else ''}, {' to '.join(values)}"
    return heading, "; ".join(notes) or None
