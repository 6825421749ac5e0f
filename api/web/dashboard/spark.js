/* Sparklines: the course of KL over the last windows, beside the thresholds. */
import { svg } from "./dom.js";
import { nats, number } from "./format.js";

const WIDTH = 120;
const HEIGHT = 28;
const PAD = 2;

/**
 * Draws numbers, oldest first; null is infinite and lies at the top.
 *
 * @param {(number | null)[]} values
 * @param {number} warning
 * @param {number} critical
 */
export function sparkline(values, warning, critical) {
    const finite = values.filter((value) => value !== null);
    const top = Math.max(critical, ...finite) * 1.05 || 1;
    const step = (WIDTH - 2 * PAD) / Math.max(values.length - 1, 1);
    const y = (/** @type {number | null} */ value) =>
        value === null ? PAD : HEIGHT - PAD - (value / top) * (HEIGHT - 2 * PAD);
    const x = (/** @type {number} */ i) => WIDTH - PAD - (values.length - 1 - i) * step;
    const line = values.map((value, i) => `${i > 0 ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`);
    const dots = values.flatMap((value, i) => value === null || i === values.length - 1
        ? [svg("circle", { class: value === null ? "infinite" : "last", cx: x(i), cy: y(value), r: 2.2 })]
        : []);
    return svg("svg",
        {
            class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
            "aria-label": describe(values, finite),
        },
        svg("line", { class: "at-warning", x1: 0, x2: WIDTH, y1: y(warning), y2: y(warning) }),
        svg("line", { class: "at-critical", x1: 0, x2: WIDTH, y1: y(critical), y2: y(critical) }),
        svg("path", { class: "line", d: line.join("") }),
        ...dots);
}

/**
 * @param {(number | null)[]} values
 * @param {number[]} finite
 */
function describe(values, finite) {
    if (values.length === 0)
        return "no windows yet";
    const infinite = values.length - finite.length;
    const range = finite.length > 0
        ? `KL from ${number(Math.min(...finite))} to ${nats(Math.max(...finite))}` : "";
    const rest = infinite > 0 ? `${infinite} infinite` : "";
    return `last ${values.length} windows: ${[range, rest].filter(Boolean).join(", ")}`;
}
