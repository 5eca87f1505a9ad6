"""Labels beside points of a scatter figure: none over another, none outside, each joined to its point by a line."""
import math

from matplotlib.transforms import Bbox

ANGLES = [2 * math.pi * i / 24 for i in range(24)]
DISTANCES = [15, 22, 31, 42, 56, 74, 96]  # pixels at 100 dpi, for labels that a leader joins to their points
NEAR = 70  # points with the same label closer than this share it
BESIDE, UNDER = 8, 8  # from a point to a label that touches it, across and upwards
# What a candidate's place costs, in pixels of distance it is worth walking to avoid it.
OVER_POINT, OVER_LINE, ACROSS_LEADER, WRONG_SIDE, LEADER = 45, 30, 90, 5, 8
TOO_FAR = 100  # a label that costs more than this confuses more than it says


def touching(x, y, width, height):
    """(cost, box) of the places right beside a point, as one reads: to its right first, then left, then under or over
    it, beginning or ending at the point."""
    left, right, middle = x - BESIDE - width, x + BESIDE, y - height / 2
    below, above = y - UNDER - height, y + UNDER
    return [(cost, Bbox.from_bounds(*corner, width, height)) for cost, corner in (
        (0, (right, middle)), (2, (x - 3, below)), (3, (x - 3, above)), (4, (left, middle)),
        (5, (x + 3 - width, below)), (6, (x + 3 - width, above)), (6, (x - width / 2, below)),
        (7, (x - width / 2, above)))]


def merged(points, texts):
    """[text, its points], in order; equal texts of near points are one."""
    found = []
    for point, text in zip(points, texts):
        for other, places in found:
            if other == text and all(math.dist(point, place) < NEAR for place in places):
                places.append(point)
                break
        else:
            found.append((text, [point]))
    return found


def place(points, texts, size_of, obstacles, lines, bounds, towards):
    """Greedy: the labels with the least room first, each at the cheapest place left.

    `points` in pixels with one text each; size_of(text) -> (width, height); `obstacles` are boxes of marks, `lines`
    pairs of points that labels had better not cross; `bounds` the box they stay in; `towards` the direction (x, y) in
    which there is most room. Returns (text, box, [leader as (from, to)]) per label and how many found no place.
    """
    wanted = merged(points, texts)
    direction = math.atan2(towards[1], towards[0])
    crowded = [sum(math.dist(places[0], other) < 2 * NEAR for other in points) for _, places in wanted]
    placed, leaders, left_out = [None] * len(wanted), [], 0
    for i in sorted(range(len(wanted)), key=lambda i: (-crowded[i], i)):
        text, places = wanted[i]
        width, height = size_of(text)
        centre = [sum(place[k] for place in places) / len(places) for k in (0, 1)]
        best = None
        for distance, box in candidates(centre, width, height, direction):
            if best is not None and best[0] <= distance:
                continue
            if not inside(box, bounds) or any(overlap(box, other[1], 3) for other in placed if other):
                continue
            own = [(place, nearest_on(box, place)) for place in places]
            cost = distance
            cost += OVER_POINT * sum(overlap(box, obstacle, 1) for obstacle in obstacles)
            cost += OVER_LINE * sum(crosses(box, *line) for line in lines)
            cost += ACROSS_LEADER * sum(crosses(box, *leader) for leader in leaders)
            cost += ACROSS_LEADER * sum(crosses(other[1], *leader) for other in placed if other for leader in own)
            cost += ACROSS_LEADER * sum(segments_cross(*a, *b) for a in own for b in leaders)
            if best is None or cost < best[0]:
                best = (cost, box, own)
        if best is None or best[0] > TOO_FAR:
            left_out += 1
            continue
        placed[i] = (text, best[1], best[2])
        leaders += best[2]
    return [one for one in placed if one], left_out


def candidates(centre, width, height, direction):
    """(cost, box) of all places considered; those on the other side than `direction` cost a little more."""
    for cost, box in touching(*centre, width, height):
        aside = math.atan2((box.y0 + box.y1) / 2 - centre[1], (box.x0 + box.x1) / 2 - centre[0])
        yield cost + 0.2 * WRONG_SIDE * (1 - math.cos(aside - direction)), box
    for distance in DISTANCES:
        for angle in ANGLES:
            yield (LEADER + distance + WRONG_SIDE * (1 - math.cos(angle - direction)),
                   box_at(centre, angle, distance, width, height))


def box_at(centre, angle, distance, width, height):
    x = centre[0] + math.cos(angle) * (distance + width / 2)
    y = centre[1] + math.sin(angle) * (distance + height / 2)
    return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)


def inside(box, bounds):
    return box.x0 >= bounds.x0 and box.x1 <= bounds.x1 and box.y0 >= bounds.y0 and box.y1 <= bounds.y1


def overlap(a, b, gap=0.0):
    return a.x0 < b.x1 + gap and b.x0 < a.x1 + gap and a.y0 < b.y1 + gap and b.y0 < a.y1 + gap


def nearest_on(box, point):
    return min(max(point[0], box.x0), box.x1), min(max(point[1], box.y0), box.y1)


def segments_cross(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def crosses(box, a, b):
    """Whether the segment a-b runs through the box."""
    if any(box.x0 < p[0] < box.x1 and box.y0 < p[1] < box.y1 for p in (a, b)):
        return True
    corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
    return any(segments_cross(a, b, corners[k], corners[(k + 1) % 4]) for k in range(4))
