/* Sentences that answer: is anything wrong, since when, because of what. */
import {
    binName, binTitle, count, isolate, sentenceText, lasting, list, namedBins, nats, number, percent, plural, probability, withBefore,
} from "./format.js";
import { LOOKED, lookOf, word } from "./states.js";

/**
 * @typedef {import("./types.js").Listed} Listed
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./types.js").Bin} Bin
 */

/**
 * Says how many monitors drift, of all in some groups.
 *
 * @param {Record<import("./states.js").Look, number>} counts of monitors by what they look like
 * @param {number} all
 * @param {boolean} more true if there are others
 */
export function glance(counts, all, more) {
    const states = LOOKED.map((state) => ({ state, n: counts[state] })).filter(({ n }) => n > 0);
    const told = (/** @type {typeof states} */ some) =>
        list(some.map(({ state, n }) => `${count(n)} ${word(state)}`));
    const bad = states.filter(({ state }) => LOOKED.indexOf(state) <= LOOKED.indexOf("silent"));
    if (all === 0)
        return "No monitor matches.";
    if (bad.length === 1 && bad[0].state === "silent")
        return `Nothing is known to drift, but ${count(bad[0].n)} of ${more ? "more than " : ""}` +
            `${plural(all, "monitor")} ${bad[0].n === 1 ? "is" : "are"} silent.`;
    return bad.length === 0 ? `Nothing drifts: ${told(states)}${more ? ", and more" : ""}.`
        : `${told(bad)} of ${more ? "more than " : ""}${plural(all, "monitor")}.`;
}

/**
 * Since when a monitor has its state, and what moved.
 *
 * @param {Listed} monitor
 */
export function since(monitor) {
    if (lookOf(monitor) === "silent")
        return monitor.last_observation ? `, silent: no values for ${lasting(monitor.last_observation)}.` : ", silent.";
    const when = monitor.severity_since ? ` for ${lasting(monitor.severity_since)}` : "";
    return `, ${word(monitor.state)}${when}${because(monitor)}`;
}

/** @param {number} n of bins */
function verb(n) {
    return n === 1 ? "accounts" : "account";
}

/** @param {Listed} monitor */
function because(monitor) {
    if (monitor.sentence)
        return `; now: ${sentenceText(monitor.sentence)}`;
    return monitor.infinite ? "; KL is infinite." : ".";
}

/** A probability below which a sentence has no digits. */
const TINY = 1e-9;

/** The share of a shift that the top bins make up, and how many of them a sentence names. */
const TOP_SHARE = 0.8;
const MAX_NAMED = 5;

/**
 * The fewest bins that account for four fifths of the shift; of more than MAX_NAMED only three are named.
 *
 * @param {Bin[]} bins
 */
function topBins(bins) {
    const sorted = bins.filter((bin) => bin.share).sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
    let share = 0;
    const n = sorted.findIndex((bin) => (share += bin.share ?? 0) >= TOP_SHARE) + 1 || sorted.length;
    return { n, share, named: sorted.slice(0, n <= MAX_NAMED ? n : 3) };
}

/**
 * "3 bins account for 82 % of the shift: a 10 % → 25 %, ...".
 *
 * @param {Pick<Result, "bins" | "infinite" | "unseen_ratio">} result
 */
export function blame(result) {
    const bins = result.bins ?? [];
    if (result.infinite) {
        const unseen = bins.filter((bin) => bin.contribution === null);
        return `${percent(result.unseen_ratio ?? 0)} of the values are in bins where the reference has ` +
            `none: ${list(unseen.slice(0, 5).map((bin) => isolate(binTitle(bin))))}` +
            `${unseen.length > 5 ? ` and ${unseen.length - 5} more` : ""}.`;
    }
    const { n, share, named } = topBins(bins);
    if (n === 0)
        return "No bin differs from the reference.";
    const each = named.map((bin) =>
        `${isolate(binTitle(bin))} ${percent(bin.reference)} → ${percent(bin.current)}`);
    return `${plural(n, "bin")} ${verb(n)} for ${percent(share)} of the shift: ` +
        `${n > named.length ? "first " : ""}${each.join(", ")}.`;
}

/**
 * What moved, in the server's words, or in ours where it has none.
 *
 * @param {Pick<Result, "bins" | "infinite" | "unseen_ratio" | "sentence">} result
 */
export function whatMoved(result) {
    return result.sentence ? sentenceText(result.sentence) : blame(result);
}

/**
 * Why a divergence above the warning threshold is no alarm; "" for any other.
 *
 * @param {Pick<Result, "verdict" | "kl" | "noise_floor" | "thresholds">} result
 */
export function mayBeChance({ verdict, kl, noise_floor: noise, thresholds }) {
    return verdict === "ok" && noise !== null && (kl ?? 0) >= thresholds.warning
        ? `May be chance: so few values show about ${nats(noise)} without drift` : "";
}

/**
 * The number of values that a verdict needs.
 *
 * @param {Config} config
 */
function needed(config) {
    const intervals = Math.max(0, (config.bins.edges?.length ?? 1) - 1);
    return config.min_observations ?? Math.max(50, 5 * intervals);
}

/**
 * Why a window has its verdict, by the windows that decided it.
 *
 * @param {Result} result
 * @param {Config} config
 */
export function reason(result, config) {
    const counts = reasonOfCounts(result, config);
    const rows = result.volume ? rowsOf(result.volume, result.n) : "";
    return (result.volume?.level === "ok" ? [counts, rows] : [rows, counts]).filter(Boolean).join(" ");
}

/**
 * The number of rows beside what is usual.
 *
 * @param {import("./types.js").Volume} volume
 * @param {number} n
 */
function rowsOf({ usual, windows, level, p_value: p }, n) {
    const median = `${count(Math.round(usual))} (median of ${plural(windows, "window")})`;
    return level === "ok" ? `${plural(n, "row")}, usually ${median}.`
        : `The number of rows is ${level}: usually it is ${median}; without a change the probability of this is ${chance(p)}.`;
}

/** A probability in a sentence, where one that is tiny has no digits. @param {number} p */
function chance(p) {
    return p < TINY ? `below ${TINY}` : probability(p);
}

/** True if the number of rows decided a verdict. @param {Pick<Result, "verdict" | "volume">} result */
export function isOfRows({ verdict, volume }) {
    return Boolean(volume) && volume?.level !== "ok" && volume?.level === verdict;
}

/**
 * What decided a verdict beside this window's own values: the number of rows, or windows before; "" if nothing did.
 *
 * @param {Result} result
 */
export function decidedBy(result) {
    const { volume, pooled } = result;
    if (volume && isOfRows(result))
        return `by the number of rows, usually ${count(Math.round(volume.usual))}`;
    return pooled && pooled.windows > 1 ? withBefore(pooled.windows - 1) : "";
}

/**
 * What the counts of the bins say, by the windows that decided.
 *
 * @param {Result} result
 * @param {Config} config
 */
function reasonOfCounts(result, config) {
    if (result.verdict === "insufficient_data" || (result.volume && !result.pooled))
        return result.n < needed(config)
            ? `${count(result.n)} of ${count(needed(config))} values that a verdict needs.`
            : "There is nothing to compare with yet.";
    const pooled = result.pooled ?? { windows: 1, n: result.n, kl: result.kl, noise_floor: result.noise_floor,
                                      p_value: result.g_test?.p_value ?? 1 };
    const who = pooled.windows > 1
        ? `${plural(pooled.windows, "window")} together, ${plural(pooled.n, "value")}: ` : "";
    return who + (pooled.ratio ? `${ratioOf(pooled.ratio, result, config)} ` : "") + comparison(pooled, result.thresholds, config.pool ?? 1);
}

/**
 * The bin that was judged by its share alone.
 *
 * @param {NonNullable<import("./types.js").Pooled["ratio"]>} ratio
 * @param {Result} result
 * @param {Config} config
 */
function ratioOf({ bin, reference, current, ratio, p_value: p }, result, config) {
    const { bins = [], verdict } = result;
    const found = namedBins(result)[bins.findIndex(({ name }) => name === bin)];
    const limit = verdict === "warning" || verdict === "critical" ? config.ratio?.[verdict] : undefined;
    const times = ratio === null || reference === 0 ? "" : `, ${number(ratio)} times`;
    return `${isolate(found ? binTitle(found) : binName(bin))} ${percent(reference)} → ${percent(current)}${times}` +
        `${limit ? ` (a bin is ${verdict} from ${number(limit)} times its share)` : ""}; without drift the probability of this is ${chance(p)}.`;
}

/**
 * How the divergence of the windows that decided compares with the thresholds, and with chance.
 *
 * @param {import("./types.js").Pooled} pooled
 * @param {import("./types.js").Thresholds} thresholds
 * @param {number} pool
 */
function comparison({ kl, p_value: p, noise_floor: noise }, thresholds, pool) {
    const { warning, critical, significance } = thresholds;
    const tests = Math.log2(pool) + 1;
    const needs = significance / tests;
    if (kl === null)
        return "KL is infinite.";
    if (kl < warning)
        return `KL ${nats(kl)} is below the warning threshold, ${number(warning)}` +
            `${noise !== null && kl <= noise ? `, and no more than the noise of so few values` : ""}.`;
    const name = kl >= critical ? "critical" : "warning";
    const limit = thresholds[name];
    if (limit === 0 && kl === 0)
        return "KL is 0: the window is like the reference.";
    const times = limit > 0 ? `${number(kl / limit)} times ` : "above ";
    return `KL ${nats(kl)} is ${times}the ${name} threshold, ${number(limit)}` +
        (significance === 1 || p < needs
            ? `; without drift the probability of this is ${chance(p)}.`
            : `, but without drift the probability of this is ${chance(p)}: an alarm needs less than ` +
              `${probability(needs)}${tests > 1 ? ` (${number(significance)} for ${tests} sums of windows)` : ""}.`);
}
