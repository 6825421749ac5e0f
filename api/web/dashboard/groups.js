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
    return `${bad > 0 ? `${count(bad)} of ${plural(monitors, "monitor")} drift`
        : `${plural(monitors, "monitor")}, none drifts`}${silent}`;
}

/**
 * @param {Group} group
 * @param {Listed[]} worst of its monitors
 */
function card(group, worst) {
    const bad = group.states.critical + group.states.warning > 0;
    const query = new URLSearchParams({ group: group.group });
    return element("li", { class: `card ${lookOf(group)}` },
        element("a", { href: `?${query}` }, element("bdi", {}, group.group)),
        badge(lookOf(group)),
        group.stale > 0 && isAlarm(group.state) && silentTag(count(group.stale)),
        group.muted && element("span", { class: "tag" }, "muted"),
        element("span", { class: "quiet" }, drifting(group),
            bad && group.since ? `, for ${lasting(group.since)}` : ""),
        heatStrip(worst));
}

export class Cards {
    constructor() {
        this.shown = "";
        this.node = element("ul", { class: "cards", "aria-label": "Groups" });
    }

    /**
     * @param {Group[]} groups worst first
     * @param {Listed[]} monitors the worst of all
     */
    show(groups, monitors) {
        const cards = groups.map((group) =>
            card(group, monitors.filter((each) => each.group === group.group)));
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
