/* The divergences that the calculator shows: KL of all, of each row, of each bin; reverse KL and JS. */
import { address, call } from "./api.js";

/**
 * Divergences: numbers are infinite or NaN as the server says; `bins` holds the losses of each row's
 * bins, `reference` and `current` their probabilities.
 *
 * @typedef {import("./loss-request.js").LossRequest} LossRequest
 * @typedef {{ code: string, message: string, index?: number[] }} Finding
 * @typedef {{
 *     kl: number, findings: Finding[], bins: number[][], rows: number[], reverse: number,
 *     js: number, reference: number[][], current: number[][]
 * }} Divergences
 */

/** One row goes as a flat array, so that command lines stay short. @param {number[][]} rows */
function tensor(rows) {
    const plain = rows.map((row) =>
        row.map((value) => (Number.isFinite(value) ? value : String(value))));
    return plain.length === 1 ? plain[0] : plain;
}

/**
 * The call that gives KL, or with `options` a related divergence. With `compat=math` a bin of p = 0
 * contributes 0.
 *
 * @param {LossRequest} request
 * @param {import("./api.js").Query} [options]
 */
export function klCall(request, options = { dim: -1 }) {
    const url = address(["kl_div"], {
        compat: "math", input_space: request.referenceSpace, target_space: request.currentSpace,
        base: request.base, ...options,
    });
    const { reference, current } = request;
    return { url, body: JSON.stringify({ input: tensor(reference), target: tensor(current) }) };
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
    const max = space === "logit" ? row.reduce((a, b) => Math.max(a, b)) : 0;
    const powers = row.map((value) => Math.exp(value - max));
    const sum = space === "logit" ? powers.reduce((a, b) => a + b) : 1;
    return powers.map((power) => power / sum);
}

/**
 * Requests all divergences. The first call reports errors; the others then run together. Jensen-Shannon
 * is the mean KL of both from their middle.
 *
 * @param {LossRequest} request
 * @param {AbortSignal} signal
 * @returns {Promise<Divergences>}
 */
export async function ask(request, signal) {
    /** @param {LossRequest} of @param {import("./api.js").Query} options */
    const post = async (of, options) => {
        const { url, body } = klCall(of, options);
        const response = await call("POST", url, { body, type: "application/json", signal });
        return { findings: response.warnings, numbers: [response.loss].flat(2).map(Number) };
    };
    const { referenceSpace, currentSpace } = request;
    const whole = await post(request, { dim: -1, diagnose: "true" });
    const reference = request.reference.map((row) => fractions(row, referenceSpace));
    const current = request.current.map((row) => fractions(row, currentSpace));
    const middle = current.map((row, i) => row.map((p, bin) => (p + reference[i][bin]) / 2));
    const [bins, rows, reverse, js] = (await Promise.all([
        post(request, { reduction: "none" }),
        current.length > 1 ? post(request, { dim: -1, reduction: "none" }) : whole,
        post({ ...request, reference: request.current, current: request.reference,
               referenceSpace: currentSpace, currentSpace: referenceSpace }, { dim: -1 }),
        post({ ...request, reference: [...middle, ...middle], current: [...reference, ...current],
               referenceSpace: "prob", currentSpace: "prob" }, { dim: -1 }),
    ])).map(({ numbers }) => numbers);
    const size = request.labels.length;
    return {
        kl: whole.numbers[0], findings: whole.findings, rows, reverse: reverse[0], js: js[0],
        reference, current, bins: current.map((_, i) => bins.slice(i * size, (i + 1) * size)),
    };
}
