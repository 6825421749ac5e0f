/* A row of the overview: state, names, KL against its thresholds, its course, why, since when. */
import { element } from "./dom.js";
import { ago, binName, count, number, percent, time } from "./format.js";
import { sparkline } from "./spark.js";
import { badge } from "./states.js";
import { term } from "./term.js";

/** @typedef {import("./types.js").Listed} Listed */

/** @type {[name: string, title: string][]} */
const COLUMNS = [
    ["State", "The verdict of its windows"],
    ["Monitor", "Group and name"],
    ["KL, nats", "Divergence of the last closed window from the reference; the bar ends at twice " +
        "the critical threshold"],
    ["Trend", "KL of the last 30 windows, oldest first; lines are the thresholds"],
    ["Because of", "The bins that contribute most to the last window's KL"],
    ["Since", "When the state began"],
    ["Values", "Number of values of the last closed window"],
    ["Last seen", "When values came last"],
];

export function head() {
    return element("div", { role: "rowgroup", class: "head" }, element("div", { role: "row" },
        ...COLUMNS.map(([name, means]) =>
            element("span", { role: "columnheader" }, term(name, means)))));
}

/**
 * @param {string} name
 * @param {...import("./dom.js").Child} children
 */
function cell(name, ...children) {
    return element("span", { role: "cell", class: name }, ...children);
}

/** @param {string | null} when */
function moment(when) {
    return when && element("time", { datetime: when, title: time(when) });
}

/** Says how long ago a moment was. @param {HTMLTimeElement} moment */
export function age(moment) {
    const text = ago(moment.dateTime);
    if (moment.textContent !== text)
        moment.textContent = text;
}

/** @param {Listed} monitor */
function link(monitor) {
    const query = new URLSearchParams({ group: monitor.group, monitor: monitor.name });
    const group = new URLSearchParams({ group: monitor.group });
    return cell("name",
        element("a", { class: "group", href: `?${group}` }, element("bdi", {}, monitor.group)),
        element("a", { class: "monitor", href: `?${query}`, title: monitor.name },
            element("bdi", {}, monitor.name)));
}

/** @param {Listed} monitor */
function divergence(monitor) {
    if (!monitor.window || (monitor.kl === null && !monitor.infinite))
        return cell("kl", element("span", { class: "none" }, "none yet"));
    const { warning, critical } = monitor.thresholds;
    const full = 2 * critical || 1;
    const value = monitor.infinite ? full : Math.min(monitor.kl ?? 0, full);
    const meter = element("span", {
        class: `meter ${monitor.state}`, "aria-hidden": "true",
        title: `warning ${number(warning)}, critical ${number(critical)}`,
    });
    meter.style.setProperty("--value", `${(100 * value) / full}%`);
    meter.style.setProperty("--at-warning", `${(100 * warning) / full}%`);
    meter.style.setProperty("--at-critical", `${(100 * critical) / full}%`);
    return cell("kl", element("span", { class: "figure" }, number(monitor.kl)), meter);
}

/** @param {Listed} monitor */
function cause(monitor) {
    const drifts = monitor.state === "critical" || monitor.state === "warning";
    const share = monitor.top_share ? `${percent(monitor.top_share)}: ` : "";
    const names = monitor.top.flatMap((name, i) =>
        [i > 0 && " · ", element("bdi", {}, binName(name))]);
    return drifts ? cell("cause", share, ...names) : cell("cause");
}

/** @param {Listed} monitor */
export function row(monitor) {
    const { warning, critical } = monitor.thresholds;
    return element("div", { role: "row" },
        cell("state", badge(monitor.state)),
        link(monitor),
        divergence(monitor),
        cell("course", sparkline(monitor.recent, warning, critical)),
        cause(monitor),
        cell("since", moment(monitor.since)),
        cell("n", monitor.window ? count(monitor.n ?? 0) : ""),
        cell("seen", moment(monitor.last_observation)));
}
