"""What the service answers about monitors: dicts, with a picture and a sentence in notebooks."""
from __future__ import annotations

import datetime
import html
from typing import Any, Dict, Iterable, List

MAX_NAMES = 5
COLOURS = {"critical": "#b3261e", "warning": "#a15c00", "ok": "#1b6e3c", "insufficient_data": "#5f6368"}
WIDTH, HEIGHT, MAX_BARS, MAX_LABELLED = 420, 90, 60, 15
TOP_SHARE, MAX_NAMED = 0.8, 3


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def moment(seconds: float) -> str:
    """A date, with its time of day unless that is midnight, in UTC."""
    try:
        text = f"{datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds):%Y-%m-%d %H:%M}"
    except OverflowError:
        return f"{seconds:.6g}"
    return text[:-6] if text.endswith(" 00:00") else text


def bin_name(each: dict[str, Any], times: bool = False) -> str:
    """The name of a bin, of intervals with six digits, or as dates."""
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


class Result(dict):  # type: ignore[type-arg]
    """A window of a monitor, scored: the members are those of api/monitors/README.md. `times` is true if values are seconds since
    1970 of dates."""

    times = False

    @property
    def name(self) -> str:
        return str(self["name"])

    @property
    def verdict(self) -> str:
        return str(self["verdict"])

    @property
    def state(self) -> str:
        """The monitor's state after the window; of an evaluation, which changes none, the verdict."""
        return str(self["state"] if self.get("window") else self["verdict"])

    @property
    def kl(self) -> float:
        """KL in nats; infinity, where JSON has null."""
        return float("inf") if self.get("infinite") else float("nan") if self["kl"] is None else float(self["kl"])

    def sentence(self) -> str:
        """The verdict, and because of what."""
        said = f"{self.name}: {self.verdict.replace('_', ' ')}, {self['n']:,} values"
        if self["kl"] is None:
            return f"{said}; KL is infinite." if self.get("infinite") else f"{said}; nothing to compare with."
        said += f"; KL {self.kl:.3g} nats"
        if self.get("g_test"):
            said += f", p {self['g_test']['p_value']:.2g}"
        chosen, share = top_bins(self.get("bins") or [])
        if self.verdict in ("ok", "insufficient_data"):
            return said + "."
        if not self.times and None not in (self.get("mean"), self.get("mean_reference")):
            said += f"; mean {self['mean_reference']:.4g} → {self['mean']:.4g}"
        ratio = (self.get("pooled") or {}).get("ratio")
        if ratio:
            times = f", {ratio['ratio']:.2g} times" if ratio["ratio"] is not None else ""
            said += f". {ratio['bin']} {percent(ratio['reference'])} → {percent(ratio['current'])}{times}"
        if not chosen:
            return said + "."
        named = ", ".join(f"{bin_name(b, self.times)} {percent(b['reference'])} → {percent(b['current'])}"
                          for b in chosen[:MAX_NAMED])
        bins = "1 bin accounts" if len(chosen) == 1 else f"{len(chosen)} bins account"
        return f"{said}. {bins} for {percent(share)} of the shift: {named}{' …' if len(chosen) > MAX_NAMED else '.'}"

    def svg(self) -> str:
        """Bars of the reference (outlines) and of the values (filled), by bin."""
        bins = [b for b in self.get("bins") or [] if b["reference"] or b["current"]][:MAX_BARS]
        if not bins:
            return ""
        top = max(max(b["reference"] or 0, b["current"] or 0) for b in bins)
        step, bars, colour = WIDTH / len(bins), [], COLOURS.get(self.verdict, "#5f6368")
        for i, each in enumerate(bins):
            title = f"{bin_name(each, self.times)}: {percent(each['reference'] or 0)} → {percent(each['current'] or 0)}"
            bars.append(f"<g><title>{html.escape(title)}</title>")
            for key, style in ("current", f'fill="{colour}" fill-opacity="0.55"'), (
                    "reference", 'fill="none" stroke="currentColor"'):
                height = HEIGHT * (each[key] or 0) / top
                bars.append(f'<rect x="{i * step + 1:.1f}" y="{HEIGHT - height + 1:.1f}" width="{max(step - 2, 1):.1f}" '
                            f'height="{height:.1f}" {style}/>')
            if len(bins) <= MAX_LABELLED:
                below = bin_name(each) if each.get("kind") != "interval" else (
                    moment(each["lower"]) if self.times else f"{each['lower']:.4g}")
                bars.append(f'<text x="{i * step + 2:.1f}" y="{HEIGHT + 12}" font-size="10" fill="currentColor">'
                            f"{html.escape(below[:int(step / 6)])}</text>")
            bars.append("</g>")
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 16}" role="img">'
                f'<title>{html.escape(self.sentence())}</title>{"".join(bars)}</svg>')

    @property
    def p_value(self) -> float:
        """The p-value of the G-test; NaN if there is none."""
        return float((self.get("g_test") or {}).get("p_value", "nan"))

    def plot(self, axes: Any = None) -> Any:
        """The same bars by matplotlib, which must be there; the axes."""
        if axes is None:
            import matplotlib.pyplot
            axes = matplotlib.pyplot.subplots()[1]
        bins = [b for b in self.get("bins") or [] if b["reference"] or b["current"]]
        for key, style in ("current", {"color": COLOURS.get(self.verdict, "#5f6368"), "alpha": 0.55}), (
                "reference", {"fill": False, "edgecolor": "black"}):
            axes.bar(range(len(bins)), [b[key] or 0 for b in bins], label=key, **style)
        axes.set_xticks(range(len(bins)), [bin_name(b, self.times) for b in bins], rotation=90, fontsize="small")
        axes.set_title(f"{self.name}: {self.verdict.replace('_', ' ')}")
        axes.legend()
        return axes

    def _repr_html_(self) -> str:
        colour = COLOURS.get(self.verdict, "#5f6368")
        return f'<p style="color:{colour}">{html.escape(self.sentence())}</p>{self.svg()}'


class Results(List[Result]):
    """The results of a table, by monitor; `warnings` are the service's, `replayed` is true if its rows were counted
    before. `windows` counts windows by verdict, of a table whose rows have times of their own."""

    def __init__(self, results: Iterable[dict[str, Any]], warnings: list[dict[str, Any]] | None = None,
                 replayed: bool = False, windows: dict[str, int] | None = None) -> None:
        super().__init__(Result(result) for result in results)
        self.warnings, self.replayed, self.windows = warnings or [], replayed, windows

    def __getitem__(self, key: Any) -> Any:
        """By position, or by the monitor's name."""
        if isinstance(key, str):
            return next((result for result in self if result.name == key), None) or self._missing(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return any(result.name == key for result in self) if isinstance(key, str) else super().__contains__(key)

    @staticmethod
    def _missing(key: str) -> Result:
        raise KeyError(key)

    @property
    def drifting(self) -> list[Result]:
        return [result for result in self if result.state in ("warning", "critical")]

    def frame(self) -> Any:
        """A DataFrame of the scores, or where there is no pandas a list of dicts."""
        return as_frame([{**{key: result[key] for key in ("name", "verdict", "state", "n", "js", "psi") if key in result},
                          "kl": result.kl, "p_value": result.p_value, "sentence": result.sentence()} for result in self])

    def save_html(self, path: Any) -> None:
        """Writes a page of all results, which needs nothing else, to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write('<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Drift</title>'
                       f'<body style="font-family:sans-serif">{self._page(len(self))}</body></html>\n')

    def plot(self) -> Any:
        """A figure of matplotlib, which must be there: the results that drift, or all if none does."""
        import matplotlib.pyplot
        shown = self.drifting or self
        figure, axes = matplotlib.pyplot.subplots(len(shown), squeeze=False, figsize=(8, 4 * len(shown)), layout="constrained")
        for result, each in zip(shown, axes[:, 0]):
            result.plot(each)
        return figure

    def __str__(self) -> str:
        return "\n".join(result.sentence() for result in self)

    def _repr_html_(self) -> str:
        return self._page(20)

    def _page(self, limit: int) -> str:
        order = list(COLOURS)
        worst = sorted(self, key=lambda result: order.index(result.verdict) if result.verdict in order else 9)
        said = f"<p>{len(self.drifting)} of {len(self)} columns drift.</p>"
        more = f"<p>{len(self) - limit} more are not shown; save_html(PATH) writes all.</p>" if len(self) > limit else ""
        return said + "".join(result._repr_html_() for result in worst[:limit]) + more


class Summary(Dict[str, Any]):
    """The state of a group, as `GET /groups/{group}` has it."""

    def sentence(self) -> str:
        others = [f"{n} {state.replace('_', ' ')}" for state, n in self["states"].items() if n]
        return f"{self['group']}: {self['state'].replace('_', ' ')}; {self['monitors']} monitors: {', '.join(others)}"

    def incidents(self) -> list[str]:
        """What began to drift together, a sentence for each incident of several monitors, newest first: between two of them
        none did for an hour, or for the length of a window, if that is longer."""
        longest = max([3600.0] + [seconds_of(each["end"]) - seconds_of(each["start"]) for each in self["history"][:1]])
        chains, last = list[List[Dict[str, Any]]](), 0.0
        for each in sorted((each for each in self["drifting"] if each["since"]), key=lambda each: seconds_of(each["since"])):
            if not chains or seconds_of(each["since"]) - last > longest:
                chains.append([])
            chains[-1].append(each)
            last = seconds_of(each["since"])
        return [incident_text(chain, self["drifting"]) for chain in reversed(chains) if len(chain) > 1]

    def svg(self) -> str:
        """How many monitors drifted, by period: oldest first."""
        periods = list(reversed(self["history"]))[-MAX_BARS:]
        step, bars = WIDTH / max(1, len(periods)), []
        for i, each in enumerate(periods):
            height = HEIGHT * each["drifting"] / max(1, each["monitors"])
            bars.append(f"<g><title>{html.escape(each['start'])}: {each['drifting']} of {each['monitors']} drift</title>"
                        f'<rect x="{i * step:.1f}" y="{HEIGHT - height:.1f}" width="{max(step - 1, 1):.1f}" '
                        f'height="{height + 1:.1f}" '
                        f'fill="{COLOURS["critical" if each["drifting"] else "ok"]}"/></g>')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 2}" role="img">'
                f'<title>Monitors that drifted, of {len(periods)} periods</title>{"".join(bars)}</svg>') if bars else ""

    def _repr_html_(self) -> str:
        rows = [f"<li>{html.escape(each['name'])}: {each['state']}, since {each['since']}: "
                f"{html.escape(', '.join(each['top']))}</li>" for each in self["drifting"]]
        said = "".join(f"<p>{html.escape(text)}</p>" for text in [self.sentence(), *self.incidents()])
        return f"{said}<ul>{''.join(rows)}</ul>{self.svg()}"


def seconds_of(text: str) -> float:
    """A time of the service, which has no fractions or six digits of them, in seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def incident_text(chain: list[dict[str, Any]], drifting: list[dict[str, Any]]) -> str:
    """5 columns since 2026-11-20T12:00:00Z: age, income, job …; first was age"""
    names = [each["name"] for each in drifting if each in chain][:MAX_NAMES]
    first = f"; first was {chain[0]['name']}" if chain[0]["since"][:19] != chain[1]["since"][:19] else ""
    return f"{len(chain)} columns since {chain[0]['since']}: {', '.join(names)}{' …' if len(chain) > len(names) else ''}{first}"


def as_frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    frame = pandas.DataFrame(rows)
    for name in ("start", "end", "at"):
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name])
    return frame
