/* Incidents of a group: which monitors began to drift together, since when, which was first, because of what. */
import { element, fill } from "./dom.js";
import { isolateLabels, plural, shorten, time } from "./format.js";
import { badge } from "./states.js";

/**
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Incident} Incident
 */

/** Incidents that are shown at once, monitors of one that are named, and characters of a name. */
const SHOWN = 5;
const NAMED = 8;
const LONGEST = 40;

/**
 * @param {string} group
 * @param {string} name
 */
function link(group, name) {
    return element("a", { href: `?${new URLSearchParams({ group, monitor: name })}`, title: name },
        element("bdi", {}, shorten(name, LONGEST)));
}

/**
 * How much of an incident nobody is told of.
 *
 * @param {Incident} incident
 */
function silence({ count, monitors }) {
    const muted = monitors.filter((each) => each.muted).length;
    return muted > 0 && element("span", { class: "tag" }, muted === count ? "muted" : `${muted} muted`);
}

/**
 * "5 columns since 12:00: age, income …; first was age", and why.
 *
 * @param {string} group
 * @param {Incident} incident
 */
function line(group, incident) {
    const { state, since, first, count, monitors, sentence } = incident;
    const names = monitors.slice(0, NAMED).flatMap(({ name }, i) => [i > 0 && ", ", link(group, name)]);
    return element("li", {},
        badge(state), silence(incident), " ",
        element("span", {}, plural(count, "column"), since && ` since ${time(since)}`, ": ", ...names,
            count > NAMED && " …", ...(first !== null && count > 1 ? ["; first was ", link(group, first)] : [])),
        " ", element("span", { class: "quiet" }, isolateLabels(sentence)));
}

export class Incidents {
    constructor() {
        this.shown = "";
        this.node = element("div", { class: "incidents" });
    }

    /** Writes times again, in another zone. */
    redraw() {
        this.shown = "";
    }

    /** @param {Group} group */
    show({ group, incidents = [] }) {
        const text = JSON.stringify([group, incidents]);
        if (text === this.shown)
            return;
        const links = () => [...this.node.querySelectorAll("a")];
        const focused = links().findIndex((each) => each === document.activeElement);
        const lines = incidents.map((each) => line(group, each));
        const open = this.node.querySelector("details")?.open;
        this.shown = text;
        fill(this.node,
            lines.length > 0 && element("ul", { "aria-label": "Incidents" }, ...lines.slice(0, SHOWN)),
            lines.length > SHOWN && element("details", { open }, element("summary", {}, `${lines.length - SHOWN} more`),
                element("ul", { "aria-label": "More incidents" }, ...lines.slice(SHOWN))));
        links()[focused]?.focus({ preventScroll: true });
    }
}
