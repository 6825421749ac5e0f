/* What the server says to a question: KL as a whole, of each row, of each bin, and other divergences. */
import { address, call } from "./api.js";

/**
 * Answer: numbers are infinite or NaN as the server says; `bins` holds the losses of each row's bins,
 * `reference` and `current` their probabilities.
 *
 * @typedef {import("./question.js").Question} Question
 * @typedef {{ code: string, message: string, index?: number[] }} Finding
 * @typedef {{
 *     kl: number, findings: Finding[], bins: number[][], rows: number[], reverse: number, js: number,
 *     reference: number[][], current: number[][]
 * }} Answer
 */

/** One row goes as a flat array, so that command lines stay short. @param {number[][]} rows */
function tensor(rows) {
    const plain = rows.map((row) =>
        row.map((value) => (Number.isFinite(value) ? value : String(value))));
    return plain.length === 1 ? plain[0] : plain;
}

/**
 * The call that gives KL, or with `options` something near it. By `compat=math` a bin of p = 0 adds 0.
 *
 * @param {Question} question
 * @param {import("./api.js").Query} [options]
 */
export function klCall(question, options = { dim: -1 }) {
    const url = address(["kl_div"], {
        compat: "math", input_space: question.referenceSpace, target_space: question.currentSpace,
        base: question.base, ...options,
    });
    const body = JSON.stringify({ input: tensor(question.reference), target: tensor(question.current) });
    return { url, body };
}

/**
 * Probabilities that a row stands for; the server makes its own of what it is given.
 *
 * @param {number[]} row
 * @param {string} space
 */
function fractions(row, space) {
    if (space === "prob")
        return row;
    const most = space === "logit" ? row.reduce((a, b) => Math.max(a, b)) : 0;
    const powers = row.map((value) => Math.exp(value - most));
    const sum = space === "logit" ? powers.reduce((a, b) => a + b) : 1;
    return powers.map((power) => power / sum);
}

/**
 * Asks. The first call says what is wrong, if anything is; the rest follow together. Jensen-Shannon is
 * the mean KL of both from their middle.
 *
 * @param {Question} question
 * @param {AbortSignal} signal
 * @returns {Promise<Answer>}
 */
export async function ask(question, signal) {
    /** @param {Question} about @param {import("./api.js").Query} options */
    const post = async (about, options) => {
        const { url, body } = klCall(about, options);
        const { loss, warnings } = await call("POST", url, { body, type: "application/json", signal });
        return { findings: warnings, numbers: [loss].flat(2).map(Number) };
    };
    const { referenceSpace, currentSpace } = question;
    const whole = await post(question, { dim: -1, diagnose: "true" });
    const reference = question.reference.map((row) => fractions(row, referenceSpace));
    const current = question.current.map((row) => fractions(row, currentSpace));
    const middle = current.map((row, i) => row.map((p, bin) => (p + reference[i][bin]) / 2));
    const [bins, rows, reverse, js] = (await Promise.all([
        post(question, { reduction: "none" }),
        current.length > 1 ? post(question, { dim: -1, reduction: "none" }) : whole,
        post({ ...question, reference: question.current, current: question.reference,
               referenceSpace: currentSpace, currentSpace: referenceSpace }, { dim: -1 }),
        post({ ...question, reference: [...middle, ...middle], current: [...reference, ...current],
               referenceSpace: "prob", currentSpace: "prob" }, { dim: -1 }),
    ])).map(({ numbers }) => numbers);
    const size = question.labels.length;
    return {
        kl: whole.numbers[0], findings: whole.findings, rows, reverse: reverse[0], js: js[0],
        reference, current, bins: current.map((_, i) => bins.slice(i * size, (i + 1) * size)),
    };
}
