/* One group: how it is, since when, how much of it drifted over time, and what can be done to it. */
import { menu, renewActions } from "./action-row.js";
import { acknowledge, editSettings, mute, remove, unmute } from "./actions.js";
import { address, call } from "./api.js";
import { element, fill, renew, svg } from "./dom.js";
import { isolate, lasting, list, time } from "./format.js";
import { drifting, segmentLinks, segmentsText } from "./groups.js";
import { Incidents } from "./incidents.js";
import { Notes } from "./notes.js";
import { boundsOf, rangeText } from "./range.js";
import { saveReport } from "./report.js";
import { mutedText, silentTag, unmuteText } from "./row.js";
import { badge, isAlarm, lookOf } from "./states.js";

/** @typedef {import("./types.js").Group} Group */

/** Columns that are named. */
const NAMED = 8;

/** Size of the chart of the past, in its own units. */
const WIDTH = 1000;
const HEIGHT = 40;
const HATCH = 8; /* between the lines of a time without data */

export class GroupPanel {
    /** @param {import("./refresh.js").Refresher} refresher of the view, for what an action changes */
    constructor(refresher) {
        this.refresher = refresher;
        this.state = element("span");
        this.text = element("p");
        this.incidents = new Incidents(() => this.refresher.load());
        this.columns = element("p");
        this.segments = element("div");
        this.past = element("div");
        this.actions = element("div", { class: "buttons" });
        this.shown = "";
        /** @type {Notes | null} */
        this.notes = null;
        this.written = element("div");
        /** @type {Group | null} */
        this.group = null;
        this.node = element("section", { class: "panel", "aria-label": "Group" },
            element("div", { class: "title" }, this.state, this.actions),
            this.text, this.incidents.node, this.past, this.segments, this.written, this.columns);
    }

    /**
     * @param {string} name
     * @param {import("./range.js").Range} range
     * @param {AbortSignal} signal
     * @returns {Promise<Group>}
     */
    async load(name, range, signal) {
        const notes = this.notes?.group === name ? this.notes
            : new Notes(name, null, () => this.refresher.load());
        const [group, { groups }] = await Promise.all([
            call("GET", address(["groups", name], boundsOf(range)), { signal }),
            call("GET", address(["groups"], { segment_of: name, limit: 1000 }), { signal }),
            notes.load(signal)]);
        if (this.notes !== notes)
            fill(this.written, notes.node);
        this.notes = notes;
        this.range = range;
        this.show(group);
        renew(this.segments, groups.length > 0 && element("h3", {}, segmentsText(groups)),
            groups.length > 0 && element("ul", { class: "segments" }, ...segmentLinks(groups)));
        return group;
    }

    /** Writes times again, in another zone. */
    redraw() {
        this.shown = "";
        this.incidents.redraw();
        if (this.group)
            this.show(this.group);
    }

    /** @param {Group} group */
    show(group) {
        this.group = group;
        renew(this.state, badge(lookOf(group)), group.stale > 0 && isAlarm(group.state) && silentTag(`${group.stale} silent`));
        renew(this.text, group.segment_of && "Segment of ", group.segment_of &&
            element("a", { href: `?${new URLSearchParams({ group: group.segment_of })}` }, element("bdi", {}, group.segment_of)),
            `${group.segment_of ? ": " : ""}${drifting(group)}${group.since && lookOf(group) !== "silent" ? `, since ${time(group.since)}, for ${lasting(group.since)}` : ""}. `,
            group.muted && `${mutedText(group.muted)}. `,
            element("a", { href: `?${new URLSearchParams({ events: "", group: group.group })}` }, "Changes of state"));
        this.incidents.show(group);
        renew(this.columns, ...columns(group));
        fill(this.past, ...course([...(group.history ?? [])].reverse(), this.range, group.silent?.length === group.monitors));
        const text = JSON.stringify([group.muted, group.group, isAlarm(group.state)]);
        if (text !== this.shown)
            this.showActions(group);
        this.shown = text;
    }

    /** @param {Group} group */
    showActions({ group, muted, state }) {
        const path = ["monitors", group];
        const act = async (/** @type {() => Promise<unknown>} */ action) => {
            if (await action() !== false)
                this.refresher.load();
        };
        const button = (/** @type {string} */ text, /** @type {() => Promise<unknown>} */ action) =>
            element("button", { type: "button", click: () => act(action) }, text);
        renewActions(this.actions,
            ...(isAlarm(state) && !muted ? [button("Acknowledge …", () => acknowledge(path))] : []),
            muted ? button(unmuteText(muted), () => unmute(path)) : button("Mute …", () => mute(path)),
            menu(button("Settings of all …", () => editSettings(path, null)),
                 button("Note …", async () => this.notes?.write(Date.now())),
                 element("button", { type: "button", click: () => saveReport(group) }, "Save report")),
            element("button", { type: "button", class: "apart", click: async () => {
                if (await remove(path))
                    location.assign("?");
            } }, "Delete …"));
    }
}

/**
 * Columns that no longer come, and new ones with links that add them.
 *
 * @param {Group} group
 */
function columns({ group, absent = [], new: fresh = [] }) {
    const add = (/** @type {string} */ name) => element("a", {
        href: `?${new URLSearchParams({ add: "", into: group, include: name })}`, "aria-label": `Add ${name}` }, "add");
    const gone = absent.slice(0, NAMED).map(({ name }) => isolate(name));
    return [
        absent.length > 0 && `No longer in the data: ${list(gone)}${absent.length > NAMED ? " …" : ""}. `,
        fresh.length > 0 && "New in the data: ",
        ...fresh.slice(0, NAMED).flatMap((name, i) => [i > 0 && ", ", element("bdi", {}, name), " (", add(name), ")"]),
        fresh.length > 0 && (fresh.length > NAMED ? " …" : "."),
    ];
}

/**
 * The part of the monitors that were not ok, over time.
 *
 * @param {NonNullable<Group["history"]>} history oldest first
 * @param {import("./range.js").Range | undefined} range
 * @param {boolean} silent
 */
function course(history, range, silent) {
    if (history.length < 2)
        return [range?.from && element("p", { class: "quiet" }, `Fewer than two windows ${rangeText(range)}.`)];
    const first = range?.from ?? Date.parse(history[0].start);
    const ended = history[history.length - 1].end;
    const last = range?.to ?? Math.max(Date.now(), Date.parse(ended));
    const x = (/** @type {string} */ when) => ((Date.parse(when) - first) / (last - first || 1)) * WIDTH;
    const bars = history.map(({ start, end, drifting: n, monitors }) => {
        const height = (n / (monitors || 1)) * HEIGHT;
        const width = Math.max(x(end) - x(start), 1);
        return n > 0 ? `M${x(start).toFixed(1)} ${HEIGHT}v${-height.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}z` : "";
    });
    const gap = [];
    for (let at = x(ended) + HATCH; silent && !range?.to && at < WIDTH; at += HATCH)
        gap.push(`M${at.toFixed(1)} ${HEIGHT}v${-HEIGHT}`);
    const most = history.reduce((worst, each) => (each.drifting > worst.drifting ? each : worst));
    return [
        svg("svg", { class: "past", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
                     "aria-label": `Monitors that were not ok, over time: at most ${most.drifting} of ${most.monitors}` },
            svg("path", { class: "calm", d: `M${x(history[0].start).toFixed(1)} 0H${x(ended).toFixed(1)}V${HEIGHT}H${x(history[0].start).toFixed(1)}z` }),
            svg("path", { d: bars.join("") }), svg("path", { class: "gap", d: gap.join("") })),
        element("p", { class: "ends quiet" }, element("span", {}, time(first)),
            element("span", {}, `part of the monitors that were not ok${gap.length > 0 ? `; no data since ${time(ended)}` : ""}`),
            element("span", {}, range?.to ? time(last) : "now")),
    ];
}
