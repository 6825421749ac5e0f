/* The calculator: reads the fields, asks the server as one types, and shows what it says. */
import { ask } from "./answers.js";
import { ApiError } from "./api.js";
import { byId, element } from "./dom.js";
import { inFields } from "./explain.js";
import { isolate } from "./format.js";
import { EMPTY, EXAMPLE, load, save } from "./memory.js";
import { parse } from "./parse.js";
import { hasCounts, Problem, question, SIDES, summary, tableOf } from "./question.js";
import { ResultView } from "./result.js";
import { showSettings } from "./settings.js";
import { tableText, Unreadable } from "./tables.js";

/**
 * @typedef {import("./question.js").Input} Input
 * @typedef {import("./question.js").Side} Side
 * @typedef {import("./question.js").Field} Field
 * @typedef {import("./question.js").Question} Question
 * @typedef {import("./tables.js").Pair} Pair
 */

/** Milliseconds without a key before the server is asked. */
const TYPED_MS = 250;

/** Names of the fields' elements, by the members that they hold. */
const IDS = /** @type {Record<keyof Input, string>} */ ({
    reference: "reference", current: "current", referenceSpace: "reference-space",
    currentSpace: "current-space", base: "base", pseudocount: "pseudocount",
});
const MEMBERS = /** @type {(keyof Input)[]} */ (Object.keys(IDS));

/** A pseudocount that is usual. */
const USUAL = "0.5";

const view = new ResultView();
let asking = new AbortController();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let refused = false;

/** @param {keyof Input} member */
function field(member) {
    return /** @type {HTMLInputElement} */ (byId(IDS[member]));
}

/** @returns {Input} */
function input() {
    return /** @type {Input} */ (
        Object.fromEntries(MEMBERS.map((member) => [member, field(member).value])));
}

/** @param {Partial<Input>} values */
function put(values) {
    for (const [member, value] of Object.entries(values))
        field(/** @type {keyof Input} */ (member)).value = value;
    answer();
}

/** @param {Field} name @param {string} text */
function tell(name, text) {
    byId(`${name}-problem`).textContent = text;
    field(name).setAttribute("aria-invalid", String(text !== ""));
}

/** @param {string} text */
function note(text) {
    byId("note").textContent = text;
}

/**
 * Runs a step; a fault of a field is told there.
 *
 * @template T
 * @param {() => T} step
 */
function attempt(step) {
    try {
        return step();
    } catch (error) {
        if (!(error instanceof Problem))
            throw error;
        tell(error.field, error.message);
        return null;
    }
}

/** The question that the fields ask; null if they ask none. */
function read() {
    const now = input();
    field("pseudocount").disabled = !hasCounts(now);
    tell("pseudocount", "");
    const [reference, current] = SIDES.map((side) => {
        tell(side, "");
        const table = attempt(() => tableOf(side, now[side]));
        byId(`${side}-summary`).textContent = table ? summary(table, now[`${side}Space`]) : "";
        return table;
    });
    byId("shared").hidden = !save(now);
    if (!reference || !current) {
        view.clear(now.reference.trim() && now.current.trim() ? "No result: see the fields."
            : "Paste numbers into both fields: counts of bins, or probabilities; one row, or several.");
        return null;
    }
    const asked = attempt(() => question(now, { reference, current }));
    if (!asked)
        view.clear("No result: see the fields.");
    return asked;
}

/** Asks at once; what was asked before is forgotten. */
async function answer() {
    clearTimeout(timer);
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const asked = read();
    if (!asked || refused)
        return;
    byId("result").setAttribute("aria-busy", "true");
    try {
        const said = await ask(asked, signal);
        if (!signal.aborted)
            view.show(asked, said, input().referenceSpace === "count" ? cure : null);
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
 * @param {Question} asked
 */
function failed(error, asked) {
    if (!(error instanceof ApiError))
        throw error;
    refused = error.status === 401;
    const place = error.errors.map((each) => placeOf(each.pointer ?? "", asked)).find(Boolean);
    if (place)
        tell(place.side, `${place.where}${inFields(error.message)}.`);
    const text = error.status === 0 ? "Offline: the server does not answer."
        : refused ? "Unauthorised: the server wants a token."
        : `The server refuses: ${error.message} (${error.code}).`;
    view.clear(place ? "No result: see the fields." : text, " ",
        !place && element("button", { type: "button", click: again }, "Try again"));
}

function again() {
    refused = false;
    answer();
}

/**
 * The field and the bin that a JSON Pointer of a problem names.
 *
 * @param {string} pointer
 * @param {Question} asked
 */
function placeOf(pointer, asked) {
    const [, tensor, ...at] = pointer.split("/");
    const side = tensor === "input" ? "reference" : tensor === "target" ? "current" : null;
    const several = asked.current.length > 1;
    const bin = asked.labels[Number(at[several ? 1 : 0] ?? NaN)];
    const row = several && at.length > 0 ? `Row ${Number(at[0]) + 1}: ` : "";
    return side && { side: /** @type {Side} */ (side),
                     where: row + (bin === undefined ? "" : `Bin ${isolate(bin)}: `) };
}

/** @param {Pair} pair */
function putPair({ reference, current, referenceSpace, currentSpace, base, leftOut = [] }) {
    put({
        reference: tableText(reference), current: tableText(current),
        ...(referenceSpace && currentSpace ? { referenceSpace, currentSpace } : {}),
        ...(base ? { base } : {}),
    });
    note(`Both fields were filled.${leftOut.length > 0 ? ` Left out: ${leftOut.join(", ")}.` : ""}`);
}

/** Puts a pasted text with both tables into both fields. @param {ClipboardEvent} event */
function pasted(event) {
    try {
        const found = parse(event.clipboardData?.getData("text/plain") ?? "");
        if (!found || "rows" in found)
            return;
        event.preventDefault();
        putPair(found);
    } catch (error) {
        if (!(error instanceof Unreadable)) /* of those the field tells, once the text is there */
            throw error;
    }
}

/** Reads the clipboard, where the browser lets a page do so. */
async function paste() {
    try {
        const found = parse(await navigator.clipboard.readText());
        if (!found)
            note("The clipboard is empty.");
        else if ("rows" in found) {
            const side = input().reference.trim() ? "current" : "reference";
            put({ [side]: tableText(found) });
            note(`Pasted into “${side === "current" ? "Current" : "Reference"}”.`);
        } else
            putPair(found);
    } catch (error) {
        note(error instanceof Unreadable ? `The clipboard has no numbers: ${error.message}.`
            : "The browser keeps the clipboard to itself: paste into a field (Ctrl+V), JSON too.");
    }
}

function cure() {
    put({ pseudocount: USUAL });
    field("pseudocount").focus();
}

function swap() {
    const now = input();
    put({ reference: now.current, current: now.reference,
          referenceSpace: now.currentSpace, currentSpace: now.referenceSpace });
    note("Reference and current were exchanged.");
}

/** @param {string} id @param {() => void} action */
function onClick(id, action) {
    byId(id).addEventListener("click", () => {
        note("");
        action();
    });
}

function start() {
    showSettings();
    byId("calculator").hidden = false;
    for (const member of MEMBERS)
        field(member).addEventListener("input", () => {
            clearTimeout(timer);
            timer = setTimeout(answer, TYPED_MS);
        });
    for (const side of SIDES)
        field(side).addEventListener("paste", pasted);
    onClick("paste", paste);
    onClick("swap", swap);
    onClick("example", () => put(EXAMPLE));
    onClick("clear", () => {
        put(EMPTY);
        field("reference").focus();
    });
    addEventListener("hashchange", () => put(load()));
    addEventListener("online", again);
    put(load());
}

start();
