/* The calculator: reads the fields, calls the server while one types, and shows the result. */
import { ask } from "./divergences.js";
import { ApiError } from "./api.js";
import { byId, element } from "./dom.js";
import { isolate, plural } from "./format.js";
import { EXAMPLE, load, save } from "./form-state.js";
import { parse } from "./parse.js";
import { hasCounts, lossRequest } from "./loss-request.js";
import { inFields, ResultView } from "./result.js";
import { showSettings } from "./settings.js";
import { tableText, Unreadable } from "./tables.js";

/**
 * @typedef {import("./loss-request.js").Input} Input
 * @typedef {import("./loss-request.js").Side} Side
 * @typedef {import("./loss-request.js").LossRequest} LossRequest
 * @typedef {import("./tables.js").Table} Table
 * @typedef {import("./tables.js").Pair} Pair
 */

/** Milliseconds without a key before the server is called. */
const TYPED_MS = 250;

const MEMBERS = /** @type {(keyof Input)[]} */ (Object.keys(EXAMPLE));
const view = new ResultView();
let asking = new AbortController();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let refused = false;

/** @param {keyof Input} member */
function field(member) {
    return /** @type {HTMLInputElement} */ (byId(member));
}

/** @returns {Input} */
function input() {
    return /** @type {Input} */ (
        Object.fromEntries(MEMBERS.map((member) => [member, field(member).value])));
}

/** @param {Partial<Input>} values */
function put(values) {
    for (const [member, value] of Object.entries(values)) {
        const node = byId(member);
        field(/** @type {keyof Input} */ (member)).value = value;
        if (node instanceof HTMLSelectElement && node.selectedIndex < 0)
            node.selectedIndex = 0; /* the link has a choice that does not exist */
    }
    update();
}

/** @param {Side | "pseudocount"} name @param {string} [text] */
function tell(name, text = "") {
    byId(`${name}-problem`).textContent = text;
    field(name).setAttribute("aria-invalid", String(text !== ""));
}

/**
 * Runs a step of reading; an error is shown at the field.
 *
 * @template T
 * @param {() => T} step
 * @param {Side} side
 */
function attempt(step, side) {
    try {
        return step();
    } catch (error) {
        if (!(error instanceof Unreadable))
            throw error;
        tell(error.field ?? side, `Not usable: ${error.message}.`);
        return null;
    }
}

/**
 * The table of a field, with a line that says how it was read. Null if there is none. Of a text
 * with both tables it is the field's own.
 *
 * @param {Side} side
 * @returns {Table | null}
 */
function tableOf(side) {
    tell(side);
    const found = attempt(() => parse(field(side).value), side);
    const table = found && "rows" in found ? found : found && found[side];
    const [row] = table?.rows ?? [];
    const sum = row?.reduce((a, b) => a + b) ?? 0;
    const sums = /^(count|prob)$/.test(field(`${side}Space`).value);
    byId(`${side}-summary`).textContent = !table ? "" : table.rows.length > 1
        ? `${plural(table.rows.length, "row")} of ${plural(row.length, "bin")}`
        : plural(row.length, "bin") + (sums ? `, sum ${Number(sum.toPrecision(9))}` : "");
    return table;
}

/** The request of the fields; null if there is none. */
function read() {
    const now = input();
    const [reference, current] = [tableOf("reference"), tableOf("current")];
    field("pseudocount").disabled = !hasCounts(now);
    tell("pseudocount");
    byId("shared").hidden = !save(now);
    const asked = reference && current &&
        attempt(() => lossRequest(now, { reference, current }), "current");
    if (!asked)
        view.clear("No result yet: enter two tables with the same bins.");
    return asked;
}

/** Calls the server now; an earlier call is cancelled. */
async function update() {
    clearTimeout(timer);
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const asked = read();
    if (!asked || refused)
        return;
    byId("result").setAttribute("aria-busy", "true");
    try {
        const divergences = await ask(asked, signal);
        const counts = field("referenceSpace").value === "count";
        if (!signal.aborted)
            view.show(asked, divergences, counts ? addPseudocount : null);
    } catch (error) {
        if (!signal.aborted)
            failed(error, asked);
    } finally {
        if (!signal.aborted)
            byId("result").setAttribute("aria-busy", "false");
    }
}

/**
 * @param {unknown} error
 * @param {LossRequest} asked
 */
function failed(error, asked) {
    if (!(error instanceof ApiError))
        throw error;
    refused = error.status === 401;
    const [, tensor, ...at] = (error.errors[0]?.pointer ?? "").split("/");
    const text = error.status === 0 ? "Offline: the server does not respond. "
        : refused ? "Unauthorised: the server requires a token. "
        : `The server refused: ${inFields(error.message)}. `;
    if (tensor === "input" || tensor === "target") {
        const bin = asked.labels[Number(at[at.length - 1])];
        const row = at.length > 1 ? `Row ${Number(at[0]) + 1}. ` : "";
        tell(tensor === "input" ? "reference" : "current",
            `${row}${bin ? `Bin ${isolate(bin)}: ` : ""}${inFields(error.message)}.`);
    }
    view.clear(text, element("button", { type: "button", click: again }, "Try again"));
}

function again() {
    refused = false;
    update();
}

function addPseudocount() {
    put({ pseudocount: "0.5" });
    field("pseudocount").focus();
}

/** @param {string} text */
function note(text) {
    byId("note").textContent = text;
}

/**
 * Takes what was pasted: one table for a side, or both.
 *
 * @param {Table | Pair} found
 * @param {Side} side
 */
function take(found, side) {
    if ("rows" in found) {
        put({ [side]: tableText(found) });
        note(`Pasted into ${side}.`);
        return;
    }
    const { reference, current, said, leftOut = [] } = found;
    put({ reference: tableText(reference), current: tableText(current), ...said });
    const rest = leftOut.length > 0 ? ` Left out: ${leftOut.join(", ")}.` : "";
    note(`Both fields were filled.${rest}`);
}

/** Puts a pasted text with both tables into both fields. @param {ClipboardEvent} event */
function pasted(event) {
    try {
        const found = parse(event.clipboardData?.getData("text") ?? "");
        if (found && !("rows" in found)) {
            event.preventDefault();
            take(found, "current");
        }
    } catch { /* The field says why, once the text is there. */ }
}

/** Reads the clipboard, where the browser lets a page do so. */
async function paste() {
    try {
        const found = parse(await navigator.clipboard.readText());
        if (found)
            take(found, field("reference").value.trim() ? "current" : "reference");
    } catch (error) {
        note(error instanceof Unreadable ? `The clipboard was not read: ${error.message}.`
            : "The browser does not let this page read the clipboard: press Ctrl+V in a field.");
    }
}

function swap() {
    const { reference, current, referenceSpace, currentSpace } = input();
    put({ reference: current, current: reference,
          referenceSpace: currentSpace, currentSpace: referenceSpace });
}

function clear() {
    put({ reference: "", current: "" });
    field("reference").focus();
}

function start() {
    showSettings();
    byId("calculator").hidden = false;
    for (const member of MEMBERS)
        field(member).addEventListener("input", () => {
            clearTimeout(timer);
            timer = setTimeout(update, TYPED_MS);
        });
    field("reference").addEventListener("paste", pasted);
    field("current").addEventListener("paste", pasted);
    for (const [id, action] of Object.entries({ paste, swap, clear, example: () => put(EXAMPLE) }))
        byId(id).addEventListener("click", () => {
            note("");
            action();
        });
    addEventListener("hashchange", () => put(load()));
    addEventListener("online", again);
    put(load());
}

start();
