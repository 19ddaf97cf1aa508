"""Pictures of the results as plain SVG: latency against rate, and bars. rows: as in results.json."""
import html
import math

COLORS = ("#7a828c", "#b07aa1", "#9c755f", "#59a14f", "#1f6fd1", "#e07a10", "#b3246b", "#138a72")
SLO_MS = 50
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 460, 64, 190, 44, 52


def begin(width, height, title, note):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="system-ui,sans-serif" font-size="13" fill="#333">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n<text x="12" y="22" font-size="16" font-weight="600">{html.escape(title)}</text>\n'
        f'<text x="12" y="{height - 8}" font-size="11" fill="#777">{html.escape(note)}</text>\n'
    )


def ticks(low, high):
    """1, 2, 5 of each decade."""
    every = [digit * 10.0**decade for decade in range(-3, 7) for digit in (1, 2, 5)]
    return [tick for tick in every if low <= tick <= high]


def points_of(row):
    """(rate, p99) of the open-loop runs; of several at one rate the median."""
    runs = [(run["sent"], run["p99"]) for run in row["open"].values()] + [(run["rate"], run["p99"]) for run in row["search"]]
    at = {}
    for rate, p99 in runs:
        at.setdefault(round(rate, 1), []).append(p99)
    return [(rate, sorted(seen)[len(seen) // 2]) for rate, seen in sorted(at.items()) if rate > 0]


def latency_against_rate(rows, note):
    lines = [(row, points_of(row)) for row in rows]
    every = [point for _, points in lines for point in points]
    if not every:
        return begin(WIDTH, HEIGHT, "p99 against rate", note) + "</svg>\n"
    low_x, high_x = min(x for x, _ in every) / 1.15, max(x for x, _ in every) * 1.15
    low_y, high_y = min(min(y for _, y in every), SLO_MS) / 1.3, max(max(y for _, y in every), SLO_MS) * 1.3
    place_x = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / low_x) / math.log(high_x / low_x)
    place_y = lambda y: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(y / low_y) / math.log(high_y / low_y)
    out = begin(WIDTH, HEIGHT, "p99 (ms) against offered rate (requests/s), open loop", note)
    for x in ticks(low_x, high_x):
        out += f'<path d="M{place_x(x):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e3e6e9"/><text x="{place_x(x):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{x:g}</text>\n'
    for y in ticks(low_y, high_y):
        out += f'<path d="M{LEFT} {place_y(y):.1f}H{WIDTH - RIGHT}" stroke="#e3e6e9"/><text x="{LEFT - 7}" y="{place_y(y) + 4:.1f}" text-anchor="end">{y:g}</text>\n'
    out += f'<path d="M{LEFT} {place_y(SLO_MS):.1f}H{WIDTH - RIGHT}" stroke="#c6282d" stroke-dasharray="5 4"/>\n'
    for i, (row, points) in enumerate(lines):
        color, key = COLORS[i % len(COLORS)], TOP + 14 + 21 * i
        path = "L".join(f"{place_x(x):.1f} {place_y(y):.1f}" for x, y in points)
        out += f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>\n' if points else ""
        out += "".join(f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3.2" fill="{color}"/>' for x, y in points)
        out += f'<rect x="{WIDTH - RIGHT + 16}" y="{key - 9}" width="14" height="10" fill="{color}"/>'
        out += f'<text x="{WIDTH - RIGHT + 36}" y="{key}">{html.escape(row["label"])}</text>\n'
    out += f'<text x="{WIDTH - RIGHT + 16}" y="{TOP + 20 + 21 * len(lines)}" fill="#c6282d">- - {SLO_MS} ms</text>\n'
    return out + "</svg>\n"


def bars(rows, note):
    panels = (
        (f"highest rate with p99 <= {SLO_MS} ms, requests/s (more is better)", lambda r: r["max_rate"], "{:.0f}"),
        ("64 connections, closed loop, requests/s (more is better)", lambda r: r["closed"]["64"]["rate"], "{:.0f}"),
        ("1 connection, p50, ms (less is better)", lambda r: r["closed"]["1"]["p50"], "{:.2f}"),
    )
    step, label, room = 22, 150, 600
    height = 40 + len(panels) * (step * len(rows) + 40) + 16
    out, y = begin(WIDTH, height, "MiniLM-L6, the same sentences", note), 54
    for title, figure, form in panels:
        most = max([figure(row) for row in rows] + [1e-9])
        out += f'<text x="12" y="{y}" font-weight="600">{html.escape(title)}</text>\n'
        for i, row in enumerate(rows):
            value, top = figure(row), y + 8 + step * i
            text = form.format(value) if value else "none"
            out += f'<text x="{label - 8}" y="{top + 14}" text-anchor="end">{html.escape(row["label"])}</text>'
            out += f'<rect x="{label}" y="{top + 2}" width="{max(value / most * room, 1):.1f}" height="{step - 6}" fill="{COLORS[i % len(COLORS)]}"/>'
            out += f'<text x="{label + max(value / most * room, 1) + 7:.1f}" y="{top + 14}">{text}</text>\n'
        y += step * len(rows) + 40
    return out + "</svg>\n"
