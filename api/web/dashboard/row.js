/* A row of a list of monitors: state, names, KL against its thresholds, its course, why, since when. */
import { element, oneLine } from "./dom.js";
import { ago, count, isolate, sentenceText, number, time } from "./format.js";
import { mayBeChance } from "./sentences.js";
import { sparkline } from "./spark.js";
import { badge, isAlarm, lookOf, LOOKED, meaning, shape } from "./states.js";
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

/** When a monitor began to be as it looks. @param {Listed} monitor */
function began(monitor) {
    return lookOf(monitor) === "silent" ? monitor.last_observation : monitor.severity_since;
}

/** @param {Listed} monitor */
function divergence(monitor) {
    return monitor.infinite ? Infinity : monitor.kl ?? -1;
}

/** @type {Record<string, Column>} */
export const COLUMNS = {
    state: { name: "State", means: "What the windows show together; hover a state for its meaning",
             key: (monitor) => LOOKED.length - LOOKED.indexOf(lookOf(monitor)) },
    monitor: { name: "Monitor", means: "Group and name", key: ({ group, name }) => `${group}\0${name}` },
    kl: { name: "KL, nats", means: "Divergence of the last closed window from the reference; the bar ends at " +
              "twice the critical threshold", key: divergence },
    course: { name: "Trend", means: "KL of the last 30 windows, oldest first; lines are the thresholds" },
    cause: { name: "Because of", means: "What moved most in the last window" },
    since: { name: "Since", means: "When the state began, or values came last", key: (monitor) => milliseconds(began(monitor)) },
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
        element("a", { class: "group", href: `?${group}`, title: monitor.group, "aria-label": monitor.group },
            oneLine(monitor.group)),
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
        class: `meter ${lookOf(monitor)}${isBeyond(monitor) ? " beyond" : ""}`, "aria-hidden": "true",
        title: `warning ${number(warning)}, critical ${number(critical)}`,
    });
    if (isBeyond(monitor))
        meter.style.setProperty("--chance", `${(100 * Math.min(monitor.noise_floor ?? 0, full)) / full}%`);
    meter.style.setProperty("--value", `${(100 * value) / full}%`);
    meter.style.setProperty("--at-warning", `${(100 * warning) / full}%`);
    meter.style.setProperty("--at-critical", `${(100 * critical) / full}%`);
    return cell("kl", element("span", { class: "figure" }, number(monitor.kl)), meter);
}

/** True if KL is beyond a threshold, and yet it is no alarm. @param {Listed} monitor */
function isBeyond({ state, kl, noise_floor: noise, thresholds }) {
    return state === "ok" && noise !== null && (kl ?? 0) >= thresholds.warning;
}

/** What moved, in the server's words, or what is missing. @param {Listed} monitor */
function cause(monitor) {
    const { last_observation: last, sentence, state } = monitor;
    const text = isAlarm(state) ? sentenceText(sentence)
        : lookOf(monitor) === "silent" && last ? `No values since ${time(last)}`
        : mayBeChance({ ...monitor, verdict: state });
    return cell("cause", text && element("span", { title: text }, text));
}

/** How the reason of a mute begins that somebody made who looks at an alarm. */
export const ACKNOWLEDGED = "acknowledged: ";

/** What is silent beside its state. @param {string} text */
export function silentTag(text) {
    return element("span", { class: "tag silent", title: meaning("silent") }, shape("silent"), text);
}

/** State, and what else there is to know before one relies on it. @param {Listed} monitor */
function standing(monitor) {
    return cell("state", badge(lookOf(monitor)), monitor.stale && isAlarm(monitor.state) && silentTag("silent"),
        monitor.muted && mutedTag(monitor.muted));
}

/** @param {import("./types.js").Muted} muted */
export function mutedText({ until, reason, by }) {
    const end = until && time(until);
    const isAcknowledged = reason.startsWith(ACKNOWLEDGED);
    const why = isAcknowledged ? reason.slice(ACKNOWLEDGED.length) : reason;
    return `${isAcknowledged ? "Acknowledged" : "Muted"}${by ? ` by ${by}` : ""}${end ? ` until ${end}` : ""}${why ? `: ${why}` : ""}`;
}

/** The name of the button that ends a mute. @param {import("./types.js").Muted} muted */
export function unmuteText({ reason }) {
    return reason.startsWith(ACKNOWLEDGED) ? "Take back" : "Unmute";
}

/** What is muted, as a tag. @param {import("./types.js").Muted} muted */
export function mutedTag(muted) {
    return element("span", { class: "tag", title: mutedText(muted) },
        muted.reason.startsWith(ACKNOWLEDGED) ? "acknowledged" : "muted");
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
        cell("since", moment(began(monitor))),
        cell("n", monitor.window ? count(monitor.n ?? 0) : ""),
        cell("seen", moment(monitor.last_observation)),
        cell("act", element("button", { type: "button", class: "open", click: act,
                                        "aria-label": `Actions on ${isolate(monitor.name)}` }, "⋯")));
}
