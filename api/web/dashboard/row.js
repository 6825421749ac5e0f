/* A row of a list of monitors: state, names, KL against its thresholds, its course, why, since when. */
import { element } from "./dom.js";
import { ago, count, isolate, isolateLabels, number, time } from "./format.js";
import { sparkline } from "./spark.js";
import { badge, STATES } from "./states.js";
import { term } from "./term.js";

/**
 * @typedef {import("./types.js").Listed} Listed
 *
 * @typedef {object} Column
 * @property {string} name
 * @property {string} means
 * @property {(monitor: Listed) => number | string} [key] by which rows are sorted, the greatest first
 */

/** @param {string | null} when */
function moment(when) {
    return when && element("time", { datetime: when, title: time(when) });
}

/** @param {string | null} when */
function milliseconds(when) {
    return when ? Date.parse(when) : -Infinity;
}

/** @param {Listed} monitor */
function divergence(monitor) {
    return monitor.infinite ? Infinity : monitor.kl ?? -1;
}

/** @type {Record<string, Column>} */
export const COLUMNS = {
    state: { name: "State", means: "The verdict of its windows",
             key: ({ state }) => STATES.length - STATES.indexOf(state) },
    monitor: { name: "Monitor", means: "Group and name", key: ({ group, name }) => `${group}\0${name}` },
    kl: { name: "KL, nats", means: "Divergence of the last closed window from the reference; the bar ends at " +
              "twice the critical threshold", key: divergence },
    course: { name: "Trend", means: "KL of the last 30 windows, oldest first; lines are the thresholds" },
    cause: { name: "Because of", means: "What moved most in the last window" },
    since: { name: "Since", means: "When the state began", key: ({ severity_since: since }) => milliseconds(since) },
    n: { name: "Values", means: "Number of values of the last closed window", key: ({ n }) => n ?? -1 },
    seen: { name: "Last seen", means: "When values came last",
            key: ({ last_observation: last }) => milliseconds(last) },
    act: { name: "Actions", means: "Owner, acknowledge, mute, link" },
};

/**
 * The names of the columns; a click on one sorts by it.
 *
 * @param {(column: string) => void} sort
 */
export function head(sort) {
    return element("div", { role: "rowgroup", class: "head" }, element("div", { role: "row" },
        ...Object.entries(COLUMNS).map(([id, { name, means, key }]) =>
            element("span", { role: "columnheader", class: id, "data-column": id },
                term(name, means, key && (() => sort(id)))))));
}

/**
 * @param {string} name
 * @param {...import("./dom.js").Child} children
 */
function cell(name, ...children) {
    return element("span", { role: "cell", class: name }, ...children);
}

/** Says how long ago a moment was. @param {HTMLTimeElement} moment */
export function age(moment) {
    const text = ago(moment.dateTime);
    if (moment.textContent !== text)
        moment.textContent = text;
}

/** The page of a monitor. @param {{ group: string, name: string }} monitor */
export function linkTo({ group, name }) {
    return `?${new URLSearchParams({ group, monitor: name })}`;
}

/** @param {Listed} monitor */
function link(monitor) {
    const group = new URLSearchParams({ group: monitor.group });
    return cell("name",
        element("a", { class: "group", href: `?${group}` }, element("bdi", {}, monitor.group)),
        element("a", { class: "monitor", href: linkTo(monitor), title: monitor.name },
            element("bdi", {}, monitor.name)));
}

/** @param {Listed} monitor */
function figure(monitor) {
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

/** What moved, in the server's words. @param {Listed} monitor */
function cause(monitor) {
    const drifts = monitor.state === "critical" || monitor.state === "warning";
    const text = isolateLabels(monitor.sentence);
    return drifts ? cell("cause", element("span", { title: text }, text)) : cell("cause");
}

/** State, and what else there is to know before one relies on it. @param {Listed} monitor */
function standing(monitor) {
    return cell("state", badge(monitor.state),
        monitor.stale && element("span", { class: "tag", title: "No values for longer than stale_after" }, "silent"),
        monitor.muted && element("span", { class: "tag", title: mutedText(monitor.muted) }, "muted"));
}

/** @param {import("./types.js").Muted} muted */
export function mutedText({ until, reason }) {
    const end = until === "ok" ? "it is ok again" : until && time(until);
    return `Muted${end ? ` until ${end}` : ""}${reason ? `: ${reason}` : ""}`;
}

/**
 * @param {Listed} monitor
 * @param {() => void} act called to show what can be done
 */
export function row(monitor, act) {
    const { warning, critical } = monitor.thresholds;
    return element("div", { role: "row" },
        standing(monitor),
        link(monitor),
        figure(monitor),
        cell("course", sparkline(monitor.recent, warning, critical)),
        cause(monitor),
        cell("since", moment(monitor.severity_since)),
        cell("n", monitor.window ? count(monitor.n ?? 0) : ""),
        cell("seen", moment(monitor.last_observation)),
        cell("act", element("button", { type: "button", class: "open", click: act,
                                        "aria-label": `Actions on ${isolate(monitor.name)}` }, "⋯")));
}
