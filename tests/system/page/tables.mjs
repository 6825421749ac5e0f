// Tables of random values that are the same in every run, and their CSV.

/**
 * Generator mulberry32: uniform numbers of [0, 1), 32 bits of state.
 * @param {number} seed
 * @returns {() => number}
 */
export function randomNumbers(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
}

/**
 * One number of the standard normal distribution, by Box and Muller.
 * @param {() => number} random
 */
export function normal(random) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    return radius * Math.cos(2 * Math.PI * random());
}

/**
 * @typedef {string | number | null} Cell  null: missing
 * @typedef {Record<string, Cell[]>} Table  columns of equal length by their names
 */

/** @param {Cell} cell */
function field(cell) {
    const text = cell === null ? "" : String(cell);
    return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * A table as RFC 4180 has it.
 * @param {Table} table
 */
export function toCsv(table) {
    const names = Object.keys(table);
    const n = table[names[0]].length;
    const lines = [names.map(field).join(",")];
    for (let row = 0; row < n; row++)
        lines.push(names.map(name => field(table[name][row])).join(","));
    return lines.join("\n") + "\n";
}

/**
 * Cells made one by one.
 * @param {number} n
 * @param {(i: number) => Cell} make
 */
export function column(n, make) {
    return Array.from({length: n}, (_, i) => make(i));
}
