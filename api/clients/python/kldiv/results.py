"""What the service answers about monitors: dicts, with a picture and a sentence in notebooks."""
from __future__ import annotations

import datetime
import html
from typing import Any, Dict, Iterable, List

from ._report import (COLOURS, DRIFTS, HEIGHT, MAX_BARS, WIDTH, bars, bin_name, content, kl_text, page, reason_of_times, table)

MAX_NAMES = 5
SHOWN_BY_BINS = ("labels_chosen", "labels_cut")


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

    def reason(self) -> str:
        """What has changed, in the words of the service; of dates, the bins that account for most of the shift."""
        return reason_of_times(self) if self.times else str(self.get("sentence") or "")

    def sentence(self) -> str:
        """The verdict, and, of what drifts, the reason."""
        said = f"{self.name}: {self.verdict.replace('_', ' ')}, {self['n']:,} values; KL {kl_text(self)}"
        if self.get("g_test"):
            said += f", p {self['g_test']['p_value']:.2g}"
        return f"{said}: {self.reason()}" if self.verdict in DRIFTS and self.reason() else said

    def svg(self) -> str:
        """Bars of the reference (outlines) and of the values (filled), by bin."""
        return bars(self)

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
    before. `windows` counts windows by verdict, of a table whose rows have times of their own. `segments` are the results
    of segments, by their groups."""

    def __init__(self, results: Iterable[dict[str, Any]], warnings: list[dict[str, Any]] | None = None,
                 replayed: bool = False, windows: dict[str, int] | None = None) -> None:
        super().__init__(Result(result) for result in results)
        self.warnings, self.replayed, self.windows = warnings or [], replayed, windows
        self.segments: dict[str, Results] = {}

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
        return [result for result in self if result.state in DRIFTS]

    def worst_first(self) -> list[Result]:
        """By state, then by verdict, then by KL."""
        order = list(COLOURS)
        return sorted(self, key=lambda result: (*(order.index(each) if each in order else len(order)
                                                  for each in (result.state, result.verdict)), -result.kl if result.kl == result.kl else 0))

    def notes(self) -> list[str]:
        """What the warnings say, a line for each column that is not compared, or that is read with care."""
        return [f"{warning['column'] or 'table'}: {warning['message']}" for warning in self.warnings
                if warning["code"] not in SHOWN_BY_BINS]

    def frame(self) -> Any:
        """A DataFrame of the scores, or where there is no pandas a list of dicts."""
        return as_frame([{**{key: result[key] for key in ("name", "verdict", "state", "n", "js", "psi") if key in result},
                          "kl": result.kl, "p_value": result.p_value, "sentence": result.sentence()} for result in self])

    def save_html(self, path: Any, title: str = "Drift") -> None:
        """Writes a page of all results, which needs nothing else, to a file."""
        text = page(self, title)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)

    def plot(self) -> Any:
        """A figure of matplotlib, which must be there: the results that drift, or all if none does."""
        import matplotlib.pyplot
        shown = self.drifting or self
        figure, axes = matplotlib.pyplot.subplots(len(shown), squeeze=False, figsize=(8, 4 * len(shown)), layout="constrained")
        for result, each in zip(shown, axes[:, 0]):
            result.plot(each)
        return figure

    def __str__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return content(self, 20)


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
