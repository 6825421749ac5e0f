/* Incidents of a group: which monitors began to drift together, since when, which was first, because of what. */
import { openRow } from "./action-row.js";
import { address, call } from "./api.js";
import { element, fill } from "./dom.js";
import { isolateLabels, plural, shorten, time } from "./format.js";
import { linkTo, mutedText } from "./row.js";
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
function linkOf(group, name) {
    return element("a", { href: linkTo({ group, name }), title: name }, element("bdi", {}, shorten(name, LONGEST)));
}

/** How an incident is called. @param {Incident} incident */
function nameOf({ count, since }) {
    return `${plural(count, "column")}${since ? ` since ${time(since)}` : ""}`;
}

/**
 * How much of an incident nobody is told of, and why.
 *
 * @param {Incident} incident
 */
function silence({ count, monitors }) {
    const muted = monitors.flatMap((each) => each.muted ?? []);
    const all = muted.find(({ scope }) => scope === "group") ?? (muted.length === count ? muted[0] : null);
    return all ? element("span", { class: "quiet" }, mutedText(all))
        : muted.length > 0 && element("span", { class: "tag" }, `${muted.length} muted`);
}

/**
 * What the row of actions acts on: the monitors, or where not all are listed, or all are muted as a group, the group.
 *
 * @param {string} group
 * @param {Incident} incident
 * @returns {Promise<import("./action-row.js").Subject>}
 */
async function subjectOf(group, { count, monitors }) {
    const link = `?${new URLSearchParams({ group })}`;
    const paths = monitors.map(({ name }) => ["monitors", group, name]);
    /** @type {import("./types.js").Config[]} */
    const configs = await Promise.all(paths.map((path) => call("GET", address(path))));
    const owners = configs.flatMap(({ annotations }) => /** @type {{ owner?: unknown }} */ (annotations).owner ?? []);
    const ofGroup = configs.find(({ muted }) => muted?.scope === "group")?.muted ?? null;
    return ofGroup || count > monitors.length
        ? { paths: [["monitors", group]], muted: ofGroup, wrong: true, link }
        : { paths, owners: [...new Set(owners.map(String))],
            muted: configs.every(({ muted }) => muted) ? configs[0].muted : null, wrong: true, link };
}

/**
 * "5 columns since 12:00: age, income …; first was age", and why.
 *
 * @param {string} group
 * @param {Incident} incident
 * @param {() => void} changed called after an action
 */
function line(group, incident, changed) {
    const { state, first, count, monitors, sentence } = incident;
    const names = monitors.slice(0, NAMED).flatMap(({ name }, i) => [i > 0 && ", ", linkOf(group, name)]);
    return element("li", {},
        badge(state), " ",
        element("span", {}, `${nameOf(incident)}: `, ...names, count > NAMED && " …",
            ...(first !== null && count > 1 ? ["; first was ", linkOf(group, first)] : [])),
        " ", element("span", { class: "quiet" }, isolateLabels(sentence)), " ",
        element("span", { class: "act" },
            element("button", { type: "button", class: "open", "aria-label": `Actions on ${nameOf(incident)}`,
                                click: () => openRow(nameOf(incident), () => subjectOf(group, incident), changed) }, "⋯")),
        silence(incident));
}

export class Incidents {
    /** @param {() => void} changed called after an action */
    constructor(changed) {
        this.changed = changed;
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
        const controls = () => /** @type {HTMLElement[]} */ ([...this.node.querySelectorAll("a, button")]);
        const focused = controls().findIndex((each) => each === document.activeElement);
        const lines = incidents.map((each) => line(group, each, this.changed));
        const open = this.node.querySelector("details")?.open;
        this.shown = text;
        fill(this.node,
            lines.length > 0 && element("ul", { "aria-label": "Incidents" }, ...lines.slice(0, SHOWN)),
            lines.length > SHOWN && element("details", { open }, element("summary", {}, `${lines.length - SHOWN} more`),
                element("ul", { "aria-label": "More incidents" }, ...lines.slice(SHOWN))));
        controls()[focused]?.focus({ preventScroll: true });
    }
}
