/* What the server says to a question: KL as a whole, of each row, of each bin, and other divergences. */
import { address, call } from "./api.js";

/**
 * Answer: numbers are infinite or NaN as the server says. `bins` holds the losses of each row's bins.
 *
 * @typedef {import("./question.js").Question} Question
 * @typedef {{ code: string, message: string, count?: number, index?: number[] }} Finding
 * @typedef {{
 *     kl: number, findings: Finding[], bins: number[][], rows: number[], reverse: number, js: number,
 *     fractions: { reference: number[][], current: number[][] }
 * }} Answer
 * @typedef {{ url: URL, body: string }} Call
 */

/** @param {number} value */
function plain(value) {
    return Number.isFinite(value) ? value : String(value);
}

/** One row goes as a flat array, so that command lines stay short. @param {number[][]} rows */
function tensor(rows) {
    const plainRows = rows.map((row) => row.map(plain));
    return plainRows.length === 1 ? plainRows[0] : plainRows;
}

/**
 * The call that gives the KL divergence of the question, or with `options` something near it. In its
 * `compat=math` a bin of p = 0 adds 0.
 *
 * @param {Question} question
 * @param {import("./api.js").Query} [options]
 * @returns {Call}
 */
export function klCall(question, options = { dim: -1 }) {
    const url = address(["kl_div"], {
        compat: "math", input_space: question.referenceSpace,
        target_space: question.currentSpace === "prob" ? null : question.currentSpace,
        base: question.base === "e" ? null : question.base, ...options,
    });
    const body = JSON.stringify({ input: tensor(question.reference), target: tensor(question.current) });
    return { url, body };
}

/**
 * @param {Call} what
 * @param {AbortSignal} signal
 */
function post({ url, body }, signal) {
    return call("POST", url, { body, type: "application/json", signal });
}

/** @param {unknown} loss numbers, some of them as strings @returns {number[]} */
function numbers(loss) {
    return Array.isArray(loss) ? loss.flat().map(Number) : [Number(loss)];
}

/**
 * Probabilities that stand in a row, for the eye: the server makes its own of what it is given.
 *
 * @param {number[]} row
 * @param {string} space
 */
function fractionsOf(row, space) {
    if (space === "prob")
        return row;
    const most = space === "logit" ? row.reduce((a, b) => Math.max(a, b), -Infinity) : 0;
    const powers = row.map((value) => Math.exp(value - most));
    const sum = space === "logit" ? powers.reduce((a, b) => a + b, 0) : 1;
    return powers.map((power) => power / sum);
}

/**
 * The question whose answer is the Jensen-Shannon divergence: the mean KL of both from their middle.
 *
 * @param {Question} question
 * @param {Answer["fractions"]} fractions
 * @returns {Question}
 */
function middle(question, { reference, current }) {
    const mean = current.map((row, i) => row.map((p, bin) => (p + reference[i][bin]) / 2));
    return { ...question, referenceSpace: "prob", currentSpace: "prob",
             reference: [...mean, ...mean], current: [...reference, ...current] };
}

/** @param {Question} question @returns {Question} */
function swapped(question) {
    return { ...question, reference: question.current, current: question.reference,
             referenceSpace: question.currentSpace, currentSpace: question.referenceSpace };
}

/**
 * Asks. The first call says what is wrong, if anything is; the rest follow together.
 *
 * @param {Question} question
 * @param {AbortSignal} signal
 * @returns {Promise<Answer>}
 */
export async function ask(question, signal) {
    const whole = await post(klCall(question, { dim: -1, diagnose: "true" }), signal);
    const fractions = {
        reference: question.reference.map((row) => fractionsOf(row, question.referenceSpace)),
        current: question.current.map((row) => fractionsOf(row, question.currentSpace)),
    };
    const several = question.current.length > 1;
    const rest = await Promise.all([
        post(klCall(question, { reduction: "none" }), signal),
        several ? post(klCall(question, { dim: -1, reduction: "none" }), signal) : whole,
        post(klCall(swapped(question)), signal),
        post(klCall(middle(question, fractions)), signal),
    ]);
    const [bins, rows, [reverse], [js]] = rest.map(({ loss }) => numbers(loss));
    const size = question.labels.length;
    return {
        kl: Number(whole.loss), findings: whole.warnings, rows, reverse, js, fractions,
        bins: question.current.map((_, i) => bins.slice(i * size, (i + 1) * size)),
    };
}
