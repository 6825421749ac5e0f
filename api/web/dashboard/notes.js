/* Notes: what people say about a time, in a list and on the time axis. */
import { localInput, moment } from "./actions.js";
import { address, call, request } from "./api.js";
import { curl } from "./commands.js";
import { openDialog } from "./dialog.js";
import { element, renew } from "./dom.js";
import { isolate, time } from "./format.js";
import { colourOf, font } from "./plot.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Note} Note
 * @typedef {import("./dialog.js").Values} Values
 */

/** Notes that are shown, the latest. */
const LISTED = 100;

/** Height of the marks below the chart, rem; pixels of a bar, and of the radius of a disc with a number. */
export const NOTES_REM = 1.5;
const BAR_PX = 4;
const DISC_PX = 8;

/**
 * Where the notes of a monitor or a group are.
 *
 * @param {string} group
 * @param {string | null} name
 * @param {string[]} rest
 */
function place(group, name, ...rest) {
    return [...(name === null ? ["groups", group] : ["monitors", group, name]), "notes", ...rest];
}

export class Notes {
    /**
     * @param {string} group
     * @param {string | null} name null for all of the group
     * @param {() => void} changed called after a change
     */
    constructor(group, name, changed) {
        this.group = group;
        this.name = name;
        this.changed = changed;
        /** @type {Note[]} earliest first */
        this.notes = [];
        this.node = element("ol", { class: "notes", "aria-label": "Notes" });
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const url = address(place(this.group, this.name), { limit: LISTED });
        this.notes = (await call("GET", url, { signal })).notes.reverse();
        this.show();
    }

    show() {
        this.node.hidden = this.notes.length === 0;
        renew(this.node, ...this.notes.map((note) => element("li", {},
            element("span", { class: "quiet" }, spanOf(note)), " ", element("bdi", {}, note.text),
            note.name !== this.name && element("span", { class: "quiet" },
                ` on ${note.name === null ? "the group" : isolate(note.name)}`), " ",
            element("button", { type: "button", "aria-label": `Delete the note ${isolate(note.text)}`,
                                click: () => this.remove(note) }, "Delete …"))));
    }

    /**
     * Writes one.
     *
     * @param {number} from milliseconds
     * @param {number} [to]
     */
    async write(from, to) {
        const { group, name } = this;
        const urlOf = (/** @type {Values} */ { of }) => address(place(group, of === "monitor" ? name : null));
        const body = (/** @type {Values} */ values) => JSON.stringify({
            text: values.text, from: moment(values.from), to: values.to ? moment(values.to) : undefined,
        });
        return openDialog({
            title: "A note on the time axis",
            text: "Everybody sees it at its time, until it is deleted.",
            fields: [
                { name: "text", label: "Text", attributes: { required: true, maxlength: 500 } },
                { name: "from", label: "From", type: "datetime-local", value: localInput(from),
                  attributes: { required: true, step: 1 } },
                { name: "to", label: "To", type: "datetime-local", value: to ? localInput(to) : "",
                  attributes: { step: 1 }, hint: "Empty: a moment" },
                ...(name === null ? [] : [{ name: "of", label: "On", type: "select", value: "monitor",
                    options: /** @type {[string, string][]} */ (
                        [["monitor", "this monitor"], ["group", "all of the group"]]) }]),
            ],
            button: "Write",
            command: (values) => curl(urlOf(values).href, "-d", body(values)),
            run: (values) => call("POST", urlOf(values), { body: body(values), type: "application/json" }),
        });
    }

    /** @param {Note} note */
    async remove(note) {
        const url = address(place(note.group, note.name, String(note.id)));
        const done = await openDialog({
            title: "Delete the note",
            text: `${spanOf(note)}: ${isolate(note.text)}`,
            fields: [],
            button: "Delete",
            dangerous: true,
            command: () => curl("-X", "DELETE", url.href),
            run: () => request("DELETE", url),
        });
        if (done)
            this.changed();
    }
}

/** @param {Note} note */
function spanOf({ from, to }) {
    return from === to ? time(from) : `${time(from)} to ${time(to)}`;
}

/**
 * Draws a bar below the chart for the time of each note, with its number in the list.
 *
 * @param {uPlot} plot
 * @param {Note[]} notes earliest first
 */
export function markNotes(plot, notes) {
    const { ctx, bbox, root } = plot;
    const scale = devicePixelRatio;
    const right = bbox.left + bbox.width;
    const foot = bbox.top + bbox.height;
    let free = -Infinity; /* to the right of the discs so far */
    ctx.save();
    ctx.font = font(0.85 * scale);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    notes.forEach((note, i) => {
        const [from, to] = [note.from, note.to].map((at) => plot.valToPos(Date.parse(at) / 1000, "x", true));
        if (to < bbox.left || from > right)
            return;
        const start = Math.max(from, bbox.left);
        ctx.fillStyle = colourOf(root, "var(--text)");
        ctx.fillRect(start, foot, Math.max(Math.min(to, right) - start, 1.5 * scale), BAR_PX * scale);
        if (start < free)
            return;
        free = start + 2 * DISC_PX * scale;
        const y = foot + (BAR_PX + DISC_PX) * scale;
        ctx.beginPath();
        ctx.arc(start, y, DISC_PX * scale, 0, 2 * Math.PI);
        ctx.fill();
        ctx.fillStyle = colourOf(root, "var(--surface)");
        ctx.fillText(String(i + 1), start, y);
    });
    ctx.restore();
}
