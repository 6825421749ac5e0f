/* What an answer means, in sentences. */
import { isolate, list, number, plural } from "./format.js";
import { blame } from "./sentences.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./answers.js").Finding} Finding
 * @typedef {import("./question.js").Question} Question
 * @typedef {import("./types.js").Bin} Bin
 */

/** Bins that a sentence names at most. */
const NAMED = 5;

/**
 * Says why KL is infinite: bins with p > 0 and q = 0.
 *
 * @param {Bin[]} bins of one row
 */
export function whyInfinite(bins) {
    const without = bins.filter((bin) => bin.contribution === null);
    const names = without.slice(0, NAMED).map((bin) => isolate(bin.name));
    const rest = without.length > NAMED ? [`${without.length - NAMED} more`] : [];
    return without.length === 1
        ? `Bin ${names[0]} has something in the current data (p > 0) and nothing in the reference ` +
          "(q = 0), so that its p log(p/q) is infinite."
        : `Bins ${list([...names, ...rest])} have something in the current data (p > 0) and nothing ` +
          "in the reference (q = 0), so that their p log(p/q) is infinite.";
}

/**
 * The sentence below the figure.
 *
 * @param {Bin[]} bins of one row
 */
export function sentenceOf(bins) {
    if (bins.some((bin) => Number.isNaN(bin.contribution)))
        return "";
    if (bins.some((bin) => bin.contribution === null))
        return whyInfinite(bins);
    return blame({ bins, infinite: false, unseen_ratio: null });
}

/** @type {Record<string, import("./question.js").Side>} */
const SIDE_OF = { input: "reference", target: "current" };

/** The fields in sentences. */
const NAMES = { reference: "the reference", current: "the current data" };

/**
 * @param {Finding} finding
 * @param {Question} question
 * @param {Answer} answer
 */
function notNormalized({ code, count = 1, index = [] }, question, answer) {
    const side = SIDE_OF[code.split("_")[0]];
    const [rows, row] = [question[side].length, question[side].length > 1 ? index[0] ?? 0 : 0];
    const sum = answer.fractions[side][row].reduce((total, p) => total + p, 0);
    const help = (side === "reference" ? question.referenceSpace : question.currentSpace) === "prob"
        ? "“Counts” divides them by their sum." : "If they are no logarithms of probabilities, choose what they are.";
    const which = rows === 1 ? `The probabilities of ${NAMES[side]} sum to ${number(sum)}`
        : `In ${plural(count, "row")} of ${NAMES[side]} the probabilities sum not to 1 (row ${row + 1}: ` +
          `${number(sum)})`;
    return `${which}${rows === 1 ? ", and not to 1" : ""}: what is shown is the sum over them as they ` +
        `are. ${help}`;
}

/**
 * @param {Finding} finding
 * @param {Question} question
 */
function notFinite({ message, index = [] }, question) {
    const label = question.labels[index[index.length - 1] ?? -1];
    const row = question.current.length > 1 ? ` in row ${(index[0] ?? 0) + 1}` : "";
    return `KL is not a number${label === undefined ? "" : `, because of bin ${isolate(label)}${row}`}: ` +
        `${message.split(": ").pop()}.`;
}

/**
 * What the server says, with the names of the fields.
 *
 * @param {string} text
 */
export function inFields(text) {
    return text.replace(/\binput\b/g, NAMES.reference).replace(/\btarget\b/g, NAMES.current);
}

/** @typedef {(finding: Finding, question: Question, answer: Answer) => string} Sentence */

/** @type {Record<string, Sentence>} */
const SENTENCES = {
    input_not_normalized: notNormalized,
    target_not_normalized: notNormalized,
    input_not_log_probabilities: () =>
        "The reference holds numbers above 0, and logarithms of probabilities never are.",
    target_looks_like_log_probabilities: () =>
        "The current data look like logarithms of probabilities.",
    arguments_look_swapped: () =>
        "They look swapped: the reference like probabilities, the current data like logarithms.",
    loss_not_finite: (finding, question, { kl }) => (Number.isNaN(kl) ? notFinite(finding, question) : ""),
};

/**
 * A finding of the server in the words of the page, whose fields are the server's tensors; empty if the
 * page says it elsewhere.
 *
 * @type {Sentence}
 */
export function findingOf(finding, question, answer) {
    return SENTENCES[finding.code]?.(finding, question, answer) ?? inFields(finding.message);
}
