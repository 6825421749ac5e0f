"""Results as texts, tables and pages. A page is one file: no script, nothing from elsewhere."""
from __future__ import annotations

import datetime
import html
from typing import Any

COLOURS = {"critical": "#b3261e", "warning": "#a15c00", "ok": "#1b6e3c", "insufficient_data": "#5f6368"}
WIDTH, HEIGHT, MAX_BARS, MAX_LABELLED = 420, 90, 60, 15
TOP_SHARE, MAX_NAMED = 0.8, 3
DRIFTS = ("warning", "critical")


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def moment(seconds: float) -> str:
    """A date, with its time of day unless that is midnight, in UTC."""
    try:
        text = f"{datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds):%Y-%m-%d %H:%M}"
    except OverflowError:
        return f"{seconds:.6g}"
    return text[:-6] if text.endswith(" 00:00") else text


def bin_name(each: dict[str, Any], times: bool = False, unseen: list[dict[str, Any]] | None = None) -> str:
    """The name of a bin, of intervals with six digits, or as dates; of other labels those that were never seen before."""
    if each.get("kind") == "other" and unseen:
        return ", ".join(f"“{label['label']}”" for label in unseen[:MAX_NAMED])
    if each.get("kind") != "interval":
        return str(each["name"])
    ends = [moment(each[end]) if times else f"{each[end]:.6g}" for end in ("lower", "upper")]
    return f"{each['name'][0]}{', '.join(ends)}{each['name'][-1]}"


def top_bins(bins: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """The fewest bins that account for four fifths of the shift, and their share."""
    chosen, share = [], 0.0
    for each in sorted((b for b in bins if b.get("share")), key=lambda b: -float(b["share"])):
        chosen.append(each)
        share += each["share"]
        if share >= TOP_SHARE:
            break
    return chosen, share


def kl_text(result: Any) -> str:
    return "infinite" if result.kl == float("inf") else "-" if result.kl != result.kl else f"{result.kl:.3g}"


def reason_of_times(result: Any) -> str:
    chosen, share = top_bins(result.get("bins") or [])
    if not chosen:
        return ""
    named = ", ".join(f"{bin_name(b, True)} {percent(b['reference'])} → {percent(b['current'])}" for b in chosen[:MAX_NAMED])
    bins = "1 bin accounts" if len(chosen) == 1 else f"{len(chosen)} bins account"
    return f"{bins} for {percent(share)} of the shift: {named}{' …' if len(chosen) > MAX_NAMED else ''}"


def bars(result: Any) -> str:
    """Bars of the reference (outlines) and of the values (filled), by bin."""
    bins = [b for b in result.get("bins") or [] if b["reference"] or b["current"]][:MAX_BARS]
    if not bins:
        return ""
    top = max(max(b["reference"] or 0, b["current"] or 0) for b in bins)
    step, drawn, colour = WIDTH / len(bins), [], COLOURS.get(result.verdict, "#5f6368")
    for i, each in enumerate(bins):
        title = f"{bin_name(each, result.times, result.get('unseen'))}: {percent(each['reference'] or 0)} → {percent(each['current'] or 0)}"
        drawn.append(f"<g><title>{html.escape(title)}</title>")
        for key, style in ("current", f'fill="{colour}" fill-opacity="0.55"'), (
                "reference", 'fill="none" stroke="currentColor"'):
            height = HEIGHT * (each[key] or 0) / top
            drawn.append(f'<rect x="{i * step + 1:.1f}" y="{HEIGHT - height + 1:.1f}" width="{max(step - 2, 1):.1f}" '
                        f'height="{height:.1f}" {style}/>')
        if len(bins) <= MAX_LABELLED:
            below = bin_name(each, unseen=result.get("unseen")) if each.get("kind") != "interval" else (
                moment(each["lower"]) if result.times else f"{each['lower']:.4g}")
            drawn.append(f'<text x="{i * step + 2:.1f}" y="{HEIGHT + 12}" font-size="10" fill="currentColor">'
                        f"{html.escape(below[:int(step / 6)])}</text>")
        drawn.append("</g>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 16}" role="img">'
            f'<title>{html.escape(result.sentence())}</title>{"".join(drawn)}</svg>')


def printable(text: str) -> str:
    """Without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def headline(results: Any) -> str:
    """How many columns drift by their state, which a window changes when it closes; and by windows that are open."""
    n, drifting = len(results), len(results.drifting)
    waiting = sum(each.verdict in DRIFTS and each.state not in DRIFTS and not (each.get("window") or {}).get("closed", True)
                  for each in results)
    return f"{drifting} of {n} {'column' if n == 1 else 'columns'} {'drifts' if drifting == 1 else 'drift'}" + (
        f"; {waiting} more would if {'its' if waiting == 1 else 'their'} open window closed now" if waiting else "")


def why(result: Any) -> str:
    if result.verdict == "insufficient_data":
        needed = max(50, 5 * sum(each.get("kind") == "interval" for each in result.get("bins") or []))
        return f"{result['n']:,} of {needed} values" if result["n"] < needed else "nothing to compare with"
    return str(result.reason()) if result.verdict in DRIFTS else ""


def table(results: Any) -> str:
    """Worst first: column, verdict, KL in nats, and of what drifts the reason."""
    rows = [("column", "verdict", "KL (nats)", "why")]
    rows += [(printable(each.name), each.verdict.replace("_", " "), kl_text(each), printable(why(each))) for each in results.worst_first()]
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{row[0]:{wide[0]}}  {row[1]:{wide[1]}}  {row[2]:>{wide[2]}}  {row[3]}".rstrip() for row in rows]
    return "\n".join([headline(results), "", *lines])


def content(results: Any, limit: int) -> str:
    """Tables and bars of the worst results, for a page or a notebook."""
    worst, cell = results.worst_first()[:limit], '<td style="padding:2px 12px 2px 0;vertical-align:top'
    rows = "".join(f'<tr>{cell}">{html.escape(each.name)}</td>{cell};color:{COLOURS.get(each.verdict, "#5f6368")}">'
                   f'{html.escape(each.verdict.replace("_", " "))}</td>{cell};text-align:right">{kl_text(each)}</td>'
                   f'{cell}">{html.escape(why(each))}</td></tr>' for each in worst)
    drawn = "".join(f"<h3>{html.escape(each.name)}</h3>{bars(each)}" for each in worst if each.verdict in DRIFTS)
    more = f"<p>{len(results) - limit} more are not shown; save_html(PATH) writes all.</p>" if len(results) > limit else ""
    return (f"<p><strong>{headline(results)}.</strong></p><table><tr><th align=left>column<th align=left>verdict<th align=left>KL (nats)"
            f"<th align=left>why</tr>{rows}</table>{more}{drawn}")


def page(results: Any, title: str = "Drift") -> str:
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in results.notes())
    bars_are = "<p>Outlines are shares of the reference, filled bars those of the current values.</p>" if results.drifting else ""
    return (f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
            '<meta name="viewport" content="width=device-width"><body style="font-family:sans-serif;max-width:60em;margin:2em auto">'
            f"<h1>{html.escape(title)}</h1>{content(results, len(results))}{bars_are}"
            f"{f'<h2>Not compared, or read with care</h2><ul>{notes}</ul>' if notes else ''}</body></html>\n")
