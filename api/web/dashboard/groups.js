/* Groups as cards: state, how many of its monitors drift, and of its segments. */
import { element, fill, oneLine } from "./dom.js";
import { count, lasting, plural } from "./format.js";
import { mutedTag, silentTag } from "./row.js";
import { badge, isAlarm, lookOf } from "./states.js";

/** @typedef {import("./types.js").Group} Group */

/** Groups that are shown as cards. */
const CARDS = 24;

/** How many of a group's monitors drift. @param {Group} group */
function driftsIn({ states }) {
    return states.critical + states.warning;
}

/** The same in words. @param {Group} group */
export function drifting(group) {
    const { monitors, stale } = group;
    const bad = driftsIn(group);
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
    const bad = segments.filter(driftsIn).length;
    return bad > 0 ? `${count(bad)} of ${plural(segments.length, "segment")} drift${bad === 1 ? "s" : ""}` : `${plural(segments.length, "segment")}, none drifts`;
}

/**
 * Groups without the segments of others among them, which stand where the worst of both does.
 *
 * @param {Group[]} groups worst first
 * @returns {{ group: Group, segments: Group[] }[]}
 */
function fold(groups) {
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
 */
function card(group, segments) {
    const bad = driftsIn(group);
    const query = new URLSearchParams({ group: group.group });
    return element("li", { class: `card ${lookOf(group)}` },
        element("a", { href: `?${query}`, title: group.group, "aria-label": group.group }, oneLine(group.group)),
        badge(lookOf(group)),
        element("span", { class: "quiet" }, bad > 0 && group.since ? `not ok for ${lasting(group.since)}` : ""),
        group.stale > 0 && isAlarm(group.state) && silentTag(count(group.stale)),
        group.muted && mutedTag(group.muted),
        element("span", { class: "quiet rest" }, drifting(group),
            segments.length > 0 && element("br"), segments.length > 0 && segmentsText(segments)));
}

export class Cards {
    constructor() {
        this.shown = "";
        this.node = element("ul", { class: "cards", "aria-label": "Groups" });
    }

    /**
     * @param {Group[]} groups worst first
     * @returns {{ shown: number, all: number }} numbers of cards, and of groups that are no segments
     */
    show(groups) {
        const folded = fold(groups);
        const shown = folded.slice(0, CARDS);
        this.update(shown.map(({ group, segments }) => card(group, segments)));
        return { shown: shown.length, all: folded.length };
    }

    /** @param {HTMLElement[]} cards */
    update(cards) {
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
