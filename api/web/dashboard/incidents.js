/* Incidents of a group: how many monitors began to drift together, since when, which was first, because of what. The table below
 * names all of them, and those that drift alone. */
import { openRow } from "./action-row.js";
import { address, call } from "./api.js";
import { element, fill } from "./dom.js";
import { sentenceText, plural, shorten, time } from "./format.js";
import { linkTo, mutedText } from "./row.js";
import { badge } from "./states.js";

/**
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Drifting} Drifting
 *
 * @typedef {object} Incident
 * @property {string | null} since when the first of its monitors left ok
 * @property {Drifting | null} first that one; null if several did in one second
 * @property {Drifting[]} monitors worst first
 */

/** Incidents that are shown at once, and characters of a name. */
const SHOWN = 5;
const LONGEST = 40;

const HOUR_MS = 3600e3;

/**
 * @param {string} group
 * @param {string} name
 */
function linkOf(group, name) {
    return element("a", { href: linkTo({ group, name }), title: name }, element("bdi", {}, shorten(name, LONGEST)));
}

/** When a monitor left ok, milliseconds. @param {Drifting} monitor */
function onset({ since }) {
    return since ? Date.parse(since) : 0;
}

/**
 * What began to drift together: a new incident begins where no monitor left ok for an hour, or for the length of a window, if
 * that is longer.
 *
 * @param {Group} group
 * @returns {Incident[]} those of two monitors or more; worst first, of equal states the newest
 */
function incidentsOf({ drifting = [], history: [newest] = [] }) {
    const longest = Math.max(HOUR_MS, newest ? Date.parse(newest.end) - Date.parse(newest.start) : 0);
    const second = (/** @type {Drifting | undefined} */ each) => each && Math.floor(onset(each) / 1000);
    const sorted = [...drifting].sort((a, b) => onset(a) - onset(b));
    /** @type {Incident[]} newest first */
    const incidents = [];
    /** @type {Map<Drifting, Incident>} */
    const incidentOf = new Map();
    sorted.forEach((each, i) => {
        if (i === 0 || onset(each) - onset(sorted[i - 1]) > longest)
            incidents.unshift({ since: each.since, first: second(each) === second(sorted[i + 1]) ? null : each, monitors: [] });
        incidentOf.set(each, incidents[0]);
    });
    drifting.forEach((each) => incidentOf.get(each)?.monitors.push(each));
    const together = incidents.filter(({ monitors }) => monitors.length > 1);
    const isWarning = (/** @type {Incident} */ { monitors }) => Number(monitors[0].state === "warning");
    return together.sort((a, b) => isWarning(a) - isWarning(b));
}

/** How an incident is called. @param {Incident} incident */
function nameOf({ monitors, since }) {
    return `${plural(monitors.length, "column")} drift${since ? ` since ${time(since)}` : ""}`;
}

/**
 * How much of an incident nobody is told of, and why.
 *
 * @param {Incident} incident
 */
function silence({ monitors }) {
    const muted = monitors.flatMap((each) => each.muted ?? []);
    const all = muted.find(({ scope }) => scope === "group") ?? (muted.length === monitors.length ? muted[0] : null);
    return all ? element("span", { class: "quiet" }, mutedText(all))
        : muted.length > 0 && element("span", { class: "tag" }, `${muted.length} muted`);
}

/**
 * What the row of actions acts on: the monitors, or where they are muted as a group, the group.
 *
 * @param {string} group
 * @param {Incident} incident
 * @returns {Promise<import("./action-row.js").Subject>}
 */
async function subjectOf(group, { monitors }) {
    const link = `?${new URLSearchParams({ group })}`;
    const names = new Set(monitors.map(({ name }) => name));
    /** @type {{ monitors: import("./types.js").Config[] }} */
    const all = await call("GET", address(["monitors", group]));
    const configs = all.monitors.filter(({ name }) => names.has(name));
    const owners = configs.flatMap(({ annotations }) => /** @type {{ owner?: unknown }} */ (annotations).owner ?? []);
    const ofGroup = configs.find(({ muted }) => muted?.scope === "group")?.muted ?? null;
    return ofGroup ? { paths: [["monitors", group]], muted: ofGroup, wrong: true, link }
        : { paths: configs.map(({ name }) => ["monitors", group, name]), owners: [...new Set(owners.map(String))],
            muted: configs.every(({ muted }) => muted) ? configs[0]?.muted : null, wrong: true, link };
}

/**
 * "5 columns drift since 12:00. The first: age", and why.
 *
 * @param {string} group
 * @param {Incident} incident
 * @param {() => void} changed called after an action
 */
function line(group, incident, changed) {
    const { first, monitors } = incident;
    return element("li", {},
        badge(monitors[0].state), " ",
        element("span", {}, `${nameOf(incident)}. ${first ? "The first" : "The worst"}: `, linkOf(group, (first ?? monitors[0]).name)),
        " ", element("span", { class: "quiet" }, `In its last window: ${sentenceText((first ?? monitors[0]).sentence)}`), " ",
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
    show(group) {
        const incidents = incidentsOf(group);
        const text = JSON.stringify([group.group, incidents]);
        if (text === this.shown)
            return;
        const controls = () => /** @type {HTMLElement[]} */ ([...this.node.querySelectorAll("a, button")]);
        const focused = controls().findIndex((each) => each === document.activeElement);
        const lines = incidents.map((each) => line(group.group, each, this.changed));
        const open = this.node.querySelector("details")?.open;
        this.shown = text;
        fill(this.node,
            lines.length > 0 && element("ul", { "aria-label": "Incidents" }, ...lines.slice(0, SHOWN)),
            lines.length > SHOWN && element("details", { open }, element("summary", {}, `${lines.length - SHOWN} more`),
                element("ul", { "aria-label": "More incidents" }, ...lines.slice(SHOWN))));
        controls()[focused]?.focus({ preventScroll: true });
    }
}
