/* Groups as cards: state, how many of its monitors drift, and the course of the worst of them. */
import { element, fill, svg } from "./dom.js";
import { count, lasting, plural } from "./format.js";
import { silentTag } from "./row.js";
import { badge, isAlarm, lookOf } from "./states.js";

/**
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Listed} Listed
 */

/** Rows and columns of a heat strip: monitors, and their last windows. */
const ROWS = 5;
const WINDOWS = 30;

/** Size of a cell with the space around it. */
const CELL = 6;

/** What a cell says of KL, as a class. */
const LEVELS = /** @type {const} */ (["calm", "warning", "critical"]);

/**
 * The last windows of monitors: a row for each, the newest on the right.
 *
 * @param {Listed[]} monitors
 */
function heatStrip(monitors) {
    /** @type {Record<string, string[]>} */
    const cells = { calm: [], warning: [], critical: [] };
    monitors.slice(0, ROWS).forEach(({ recent, thresholds, state }, y) => {
        const drifts = isAlarm(state); /* else KL is chance, however large */
        recent.slice(-WINDOWS).forEach((kl, i, { length }) => {
            const level = !drifts ? "calm" : kl === null || kl >= thresholds.critical ? "critical"
                : kl >= thresholds.warning ? "warning" : "calm";
            cells[level].push(`M${(WINDOWS - length + i) * CELL} ${y * CELL}h5v5h-5z`);
        });
    });
    return svg("svg", { class: "heat", viewBox: `0 0 ${WINDOWS * CELL} ${ROWS * CELL}`,
                        preserveAspectRatio: "xMinYMin meet", "aria-hidden": "true" },
        ...LEVELS.map((level) => svg("path", { class: level, d: cells[level].join("") })));
}

/** How many of a group's monitors drift. @param {Group} group */
export function drifting({ states, monitors, stale }) {
    const bad = states.critical + states.warning;
    const silent = stale > 0 ? `, ${count(stale)} silent` : "";
    return `${bad > 0 ? `${count(bad)} of ${plural(monitors, "monitor")} drift${bad === 1 ? "s" : ""}`
        : `${plural(monitors, "monitor")}, none drifts`}${silent}`;
}

/** The value of a segment: country=DE of orders[country=DE]. @param {Group} group */
function segmentName({ group, segment_of: parent }) {
    return parent === null ? group : group.slice(parent.length + 1, -1);
}

/** Links to segments, worst first. @param {Group[]} segments */
export function segmentLinks(segments) {
    return segments.map((each) => element("li", {}, badge(lookOf(each)), " ",
        element("a", { href: `?${new URLSearchParams({ group: each.group })}` }, element("bdi", {}, segmentName(each))),
        element("span", { class: "quiet" }, ` ${drifting(each)}`)));
}

/** How many segments drift. @param {Group[]} segments */
export function segmentsText(segments) {
    const bad = segments.filter(({ states }) => states.critical + states.warning > 0).length;
    return bad > 0 ? `${count(bad)} of ${plural(segments.length, "segment")} drift${bad === 1 ? "s" : ""}` : `${plural(segments.length, "segment")}, none drifts`;
}

/**
 * Groups without the segments of others among them, which stand where the worst of both does.
 *
 * @param {Group[]} groups worst first
 * @returns {{ group: Group, segments: Group[] }[]}
 */
export function fold(groups) {
    const all = new Map(groups.map((group) => [group.group, { group, segments: /** @type {Group[]} */ ([]) }]));
    const folded = new Set();
    for (const group of groups) {
        const parent = all.get(group.segment_of ?? "");
        parent?.segments.push(group);
        folded.add(parent ?? all.get(group.group));
    }
    return [...folded];
}

/**
 * @param {Group} group
 * @param {Group[]} segments
 * @param {Listed[]} worst of its monitors
 */
function card(group, segments, worst) {
    const bad = group.states.critical + group.states.warning > 0;
    const query = new URLSearchParams({ group: group.group });
    return element("li", { class: `card ${lookOf(group)}` },
        element("a", { href: `?${query}` }, element("bdi", {}, group.group)),
        badge(lookOf(group)),
        group.stale > 0 && isAlarm(group.state) && silentTag(count(group.stale)),
        group.muted && element("span", { class: "tag" }, "muted"),
        element("span", { class: "quiet" }, drifting(group),
            bad && group.since ? `, for ${lasting(group.since)}` : "",
            segments.length > 0 && element("br"), segments.length > 0 && segmentsText(segments)),
        heatStrip(worst));
}

export class Cards {
    constructor() {
        this.shown = "";
        this.node = element("ul", { class: "cards", "aria-label": "Groups" });
    }

    /**
     * @param {{ group: Group, segments: Group[] }[]} groups worst first
     * @param {Listed[]} monitors the worst of all
     */
    show(groups, monitors) {
        const cards = groups.map(({ group, segments }) =>
            card(group, segments, monitors.filter((each) => each.group === group.group)));
        const text = cards.map((each) => each.outerHTML).join("");
        if (text === this.shown)
            return;
        const focused = [...this.node.querySelectorAll("a")].findIndex((link) => link === document.activeElement);
        this.shown = text;
        fill(this.node, ...cards);
        if (focused >= 0)
            this.node.querySelectorAll("a")[focused]?.focus({ preventScroll: true });
    }
}
