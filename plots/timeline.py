"""What happened when: updates, weight versions and what went through the store, from the step log of a run.

The log has one row per update, so this is drawn per update. What every worker did between updates is not in it.
"""
import json

from figure_style import (BLACK, BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, SKY, VERMILION, BadInput, BadRequest, Reading,
                          load_result, new_figure, number, plain_ticks, title)

MOST_UPDATES = 400  # more slices than that are narrower than a pixel or two


def arguments(parser):
    parser.add_argument("steps", metavar="STEPS.jsonl", help="step log of a run (millrace run --steps)")
    parser.add_argument("--result", metavar="RESULT.json",
                        help="result of the same run: tells training from waiting where updates take a fixed time, and "
                        "what the store held")
    parser.add_argument("--replication", type=int, default=0, help="which one (%(default)s)")
    parser.add_argument("--first", type=int, metavar="N",
                        help="first update drawn (the first after the warm-up that the result tells of, else 1)")
    parser.add_argument("--updates", type=int, default=40, metavar="N", help="how many (%(default)s)")
    parser.add_argument("--title", help="heading of the figure")


def make(options):
    if not 1 <= options.updates <= MOST_UPDATES:
        raise BadRequest(f"--updates takes a whole number from 1 to {MOST_UPDATES}")
    story = tell(options)
    return draw(story), rows(story)


def tell(options):
    steps = read_steps(options.steps, options.replication)
    scenario, warmup = None, None
    if options.result:
        result = load_result(options.result)
        with Reading(options.result):
            scenario, warmup = result["scenario"], int(result["warmup_updates"])
    with Reading(options.steps):
        with_store(steps, scenario)
        train_s = fixed_training_time(scenario)
        for step in steps:
            # The update ends the step; before it, trainers waited for rollouts or for a weight transfer.
            step["train_s"] = None if train_s is None else min(train_s, step["period"])
        first = options.first
        if first is None:  # a learner may have ended the run before
            first = warmup + 1 if warmup and any(step["step"] > warmup for step in steps) else 1
        drawn = [step for step in steps if first <= step["step"] < first + options.updates]
    if not drawn:
        raise BadRequest(f"{options.steps} has no update {first} of replication {options.replication}: it has "
                         f"{len(steps)} updates of it")
    name = options.title or (str(scenario["name"]) if scenario else "Timeline")
    return {"steps": drawn, "title": name, "scenario": scenario, "warmup": warmup, "replication": options.replication}


def read_steps(path, replication):
    found = []
    try:
        with open(path, encoding="utf-8") as file:
            for line_number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    if row["replication"] == replication:
                        found.append({"step": row["step"], "end": float(row["time/wall_s"]),
                                      "period": float(row["time/update_period_s"]),
                                      "generated": row["rollouts/generated"], "trained": row["rollouts/trained"],
                                      "dropped": row["rollouts/dropped"], "staleness": row.get("staleness/mean"),
                                      "fresh": row.get("last_use/new_fraction")})
                except (KeyError, TypeError, ValueError) as error:
                    raise BadInput(f"{path}:{line_number}: it is not a row of a step log ({type(error).__name__}: "
                                   f"{error})") from error
    except OSError as error:
        raise BadInput(f"{path}: it cannot be read: {error.strerror}") from error
    return found


def with_store(steps, scenario):
    """Rollouts in the store after each update, as far as the counts decide them.

    What enters a transfer queue leaves it by training or by being dropped; the counts include what is generated but
    waits for its group, its grading or room. A buffer keeps what it has until it is full.
    """
    store = scenario["store"] if scenario else None
    held = 0
    for step in steps:
        if store is None:
            step["store"] = None
        elif store["kind"] == "transfer_queue":
            held += step["generated"] - step["trained"] - step["dropped"]
            step["store"] = held
        else:
            held = min(int(store["capacity"]), held + step["generated"])
            step["store"] = held


def fixed_training_time(scenario):
    """Seconds per update where the service law makes them the same for all, else None."""
    if scenario is None:
        return None
    service, count = scenario["trainers"]["service"], scenario["trainers"]["count"]
    if set(service) <= {"kind", "gpu_s_per_update"} and service["kind"] == "fixed":
        return service["gpu_s_per_update"] / count
    if set(service) <= {"kind", "parallel_s", "serial_s"} and service["kind"] == "split":
        return service["parallel_s"] / count + service["serial_s"]
    return None


def rows(story):
    yield ("update", "start_s", "end_s", "train_s", "wait_s", "generated", "trained", "first_uses", "dropped",
           "staleness_mean", "in_store_or_before_it")
    for s in story["steps"]:
        fresh = None if s["fresh"] is None else s["fresh"] * s["trained"]
        yield (s["step"], s["end"] - s["period"], s["end"], s["train_s"],
               None if s["train_s"] is None else s["period"] - s["train_s"], s["generated"], s["trained"], fresh,
               s["dropped"], s["staleness"], s["store"])


def draw(story):
    steps = story["steps"]
    split = steps[0]["train_s"] is not None
    notes = [f"updates {steps[0]['step']} to {steps[-1]['step']} of replication {story['replication']}; thin lines: a "
             "new policy version exists"
             + ("" if split else "; training and waiting cannot be told apart without --result or where training takes "
                                 "random times"),
             "from the step log, which has a row per update: what each worker did between them, and when weights "
             "reached it, is not in it"]
    if story["warmup"] and steps[0]["step"] <= story["warmup"]:
        notes[0] += f"; the first {story['warmup']} updates are warm-up"
    figure = new_figure(12.0, 6.6)
    top = title(figure, story["title"], notes)
    panels = [("slices", 0.16), ("rates", 0.30), ("store", 0.27), ("staleness", 0.27)]
    if steps[0]["store"] is None:
        panels = [("slices", 0.2), ("rates", 0.45), ("staleness", 0.35)]
    room, gap = top - 0.1 - 0.03, 0.035
    y = top - 0.03
    first, last = steps[0]["end"] - steps[0]["period"], steps[-1]["end"]
    for k, (kind, share) in enumerate(panels):
        tall = share * (room - gap * (len(panels) - 1))
        axes = figure.add_axes((0.21, y - tall, 0.755, tall), xlim=(first, last))
        y -= tall + gap
        for step in steps:
            axes.axvline(step["end"], color=PURPLE, linewidth=0.7, alpha=0.55, zorder=1)
        draw_one = {"slices": draw_slices, "rates": draw_rates, "store": draw_store, "staleness": draw_staleness}[kind]
        draw_one(axes, story)
        plain_ticks(axes.xaxis)
        axes.tick_params(labelbottom=k == len(panels) - 1)
    axes.set_xlabel("simulated time, s")
    return figure


def beside(axes, *lines):
    """What a panel shows, left of it: text and colour per line."""
    box, figure = axes.get_position(), axes.figure
    step = 0.18 / figure.get_figheight()
    for i, (text, colour) in enumerate(lines):
        figure.text(0.04, (box.y0 + box.y1) / 2 + (len(lines) / 2 - i - 0.5) * step, text, color=colour, size=9.5,
                    va="center", weight="bold" if i == 0 else "normal")


def draw_slices(axes, story):
    for step in story["steps"]:
        start, end = step["end"] - step["period"], step["end"]
        if step["train_s"] is None:
            axes.barh(0, end - start, 0.8, left=start, color=BLUE, edgecolor="white", linewidth=0.8,
                      gid=f"update-{step['step']}", zorder=2)
            continue
        begin = end - step["train_s"]
        if begin - start > 1e-9 * end:
            axes.barh(0, begin - start, 0.8, left=start, color=SKY, hatch="....", edgecolor="white", linewidth=0.8,
                      gid=f"wait-{step['step']}", zorder=2)
        axes.barh(0, end - begin, 0.8, left=begin, color=BLUE, edgecolor="white", linewidth=0.8,
                  gid=f"update-{step['step']}", zorder=2)
    axes.set(yticks=[], ylim=(-0.5, 0.5))
    axes.spines["left"].set_visible(False)
    if story["steps"][0]["train_s"] is None:
        beside(axes, ("Updates", BLACK), ("from one to the next", BLUE))
    else:
        beside(axes, ("Trainers", BLACK), ("■ train", BLUE), ("▨ wait", SKY))


def draw_rates(axes, story):
    steps = story["steps"]
    edges = [steps[0]["end"] - steps[0]["period"]] + [step["end"] for step in steps]
    lines = [("Rollouts per s", BLACK)]
    highest = 0
    for key, colour, dash, mark in (("generated", GREEN, "-", "—"), ("trained", BLUE, (0, (4, 2)), "- -"),
                                    ("dropped", VERMILION, (0, (1, 1.2)), "···")):
        if key == "dropped" and not any(step["dropped"] for step in steps):
            continue
        rates = [step[key] / step["period"] if step["period"] > 0 else 0.0 for step in steps]
        highest = max(highest, *rates)
        axes.stairs(rates, edges, color=colour, linestyle=dash, linewidth=1.5, zorder=3, gid=key, baseline=None)
        lines.append((f"{mark} {key}", colour))
    axes.set_ylim(0, 1.08 * highest or 1)
    plain_ticks(axes.yaxis)
    axes.yaxis.get_major_locator().set_params(nbins=3)
    beside(axes, *lines)


def draw_store(axes, story):
    steps = story["steps"]
    ends, held = [step["end"] for step in steps], [step["store"] for step in steps]
    capacity = story["scenario"]["store"]["capacity"]
    axes.fill_between(ends, held, color=ORANGE, alpha=0.45, linewidth=0, zorder=2, gid="store")
    axes.plot(ends, held, color=ORANGE, linewidth=1.4, zorder=3)
    axes.axhline(capacity, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(0, 1.15 * max(capacity, *held))
    plain_ticks(axes.yaxis)
    axes.yaxis.get_major_locator().set_params(nbins=3)
    queue = story["scenario"]["store"]["kind"] == "transfer_queue"
    beside(axes, ("Unused rollouts" if queue else "Buffer, rollouts", BLACK),
           ("in queue or before" if queue else "after each update", GREY), (f"··· capacity {capacity:,}", GREY))


def draw_staleness(axes, story):
    steps = [step for step in story["steps"] if step["staleness"] is not None]
    axes.plot([step["end"] for step in steps], [step["staleness"] for step in steps], color=BLACK, linewidth=1.2,
              marker="o", markersize=3, zorder=3, gid="staleness")
    axes.grid(axis="y", color=PALE, linewidth=0.7)
    highest = max((step["staleness"] for step in steps), default=1)
    axes.set_ylim(0, 1.1 * highest or 1)
    plain_ticks(axes.yaxis)
    axes.yaxis.get_major_locator().set_params(nbins=3)
    mean = sum(step["staleness"] for step in steps) / max(1, len(steps))
    beside(axes, ("Staleness", BLACK), ("mean of the batch,", GREY), (f"here {number(mean, 3)}", GREY))
