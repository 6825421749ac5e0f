/* A sample to try the monitors with: payments, of which a batch has two columns that drift. */

/** Rows of the reference, and of the batch. */
const ROWS = 2000;
const BATCH = 500;

/** Numbers in (0, 1), the same in every run (xorshift). @param {number} seed */
function randomNumbers(seed) {
    let state = seed;
    return () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return ((state >>> 0) + 0.5) / 4294967296;
    };
}

/** A normal value (Box and Muller). @param {() => number} random */
function normal(random) {
    return Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
}

/**
 * @param {() => number} random
 * @param {[string, number][]} parts labels and their parts of 1
 */
function label(random, parts) {
    let rest = random();
    return (parts.find(([, part]) => (rest -= part) < 0) ?? parts[0])[0];
}

/**
 * @param {number} seed
 * @param {number} rows
 * @param {boolean} drifts
 */
function table(seed, rows, drifts) {
    const random = randomNumbers(seed);
    /** @type {[string, number][]} */
    const countries = drifts ? [["DE", 0.43], ["FR", 0.26], ["IT", 0.18], ["NG", 0.13]]
        : [["DE", 0.5], ["FR", 0.3], ["IT", 0.2]];
    const lines = Array.from({ length: rows }, () => [
        drifts && random() < 0.12 ? "" : Math.exp(3.5 + normal(random)).toFixed(2),
        label(random, countries), Math.round(41 + 12 * normal(random)),
        label(random, [["mobile", 0.6], ["desktop", 0.3], ["tablet", 0.1]]),
    ].join(","));
    return ["amount,country,age,device", ...lines].join("\n");
}

/** Normal payments. */
export function sampleReference() {
    return new File([table(1, ROWS, false)], "sample.csv", { type: "text/csv" });
}

/** Payments of a bad day: amounts that are missing, and a country that was never seen. */
export function sampleBatch() {
    return new File([table(2, BATCH, true)], "sample-batch.csv", { type: "text/csv" });
}
