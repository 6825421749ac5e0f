/* The reference of a monitor: its size, and its bins as those of a result. */

/** Number of values that a reference counts, missing ones among them. @param {import("./types.js").Config} config */
export function referenceSize({ reference = {} }) {
    const { counts = [], underflow = 0, overflow = 0, other = 0, missing = 0 } = reference;
    return [...counts, underflow, overflow, other, missing].reduce((sum, each) => sum + each, 0);
}

/**
 * Bins of a config with its reference, as a result would have them.
 *
 * @param {import("./types.js").Config} config
 * @returns {import("./types.js").Bin[]}
 */
export function referenceBins(config) {
    const reference = config.reference ?? {};
    const { counts = [], underflow = 0, overflow = 0, other = 0, missing = 0 } = reference;
    const n = referenceSize(config);
    const part = (/** @type {number} */ of) => (n > 0 ? of / n : 0);
    const labels = config.bins.presence ? ["present"] : config.bins.labels ?? [], edges = (config.bins.edges ?? []).map(Number);
    const inner = counts.map((of, i) => labels.length > 0
        ? bin(labels[i], "label", part(of))
        : { ...bin(intervalName(edges, i), "interval", part(of)), lower: edges[i], upper: edges[i + 1] });
    return labels.length > 0
        ? [...inner, bin("other", "other", part(other)), bin("missing", "missing", part(missing))]
        : [{ ...bin("underflow", "underflow", part(underflow)), upper: edges[0] }, ...inner,
           { ...bin("overflow", "overflow", part(overflow)), lower: edges[edges.length - 1] },
           bin("missing", "missing", part(missing))];
}

/**
 * Name of an interval, as the API gives it; the last one is closed.
 *
 * @param {number[]} edges
 * @param {number} i
 */
function intervalName(edges, i) {
    return `[${edges[i]}, ${edges[i + 1]}${i + 2 < edges.length ? ")" : "]"}`;
}

/**
 * A bin of the reference alone.
 *
 * @param {string} name
 * @param {import("./types.js").Bin["kind"]} kind
 * @param {number} reference
 * @returns {import("./types.js").Bin}
 */
function bin(name, kind, reference) {
    return { name, kind, lower: null, upper: null, reference, current: 0, contribution: 0, share: 0 };
}
