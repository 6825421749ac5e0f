/* Tables as they travel: columns of numbers as bytes, others as JSON. */
import { encode, isNumbers, kindOf, unshared, type Numbers } from "./tensors.js";
import type { Raw } from "./types.js";

export type Cell = number | string | boolean | bigint | Date | null | undefined;

/** A table: its columns by name, its rows, or a file of CSV, JSON, .npz or safetensors. Missing are null, undefined and NaN;
 *  dates become seconds since 1970. Rows are objects whose members are cells. */
export type Table = { readonly [column: string]: readonly Cell[] | Numbers } | readonly object[] | Raw;

const isLarge = (value: unknown) => typeof value === "bigint" && (value > 2n ** 53n || value < -(2n ** 53n));

/** The decimals that a narrow float was made of: 0.1, not 0.10000000149011612. */
function decimals(column: Numbers, digits: number): number[] {
    const probe = (column as Float32Array).slice(0, 1);
    return Array.from(column as Float32Array, (value) => {
        for (let n = digits; n < 9; n++) {
            const decimal = Number(value.toPrecision(n));
            probe[0] = decimal;
            if (probe[0] === value)
                return decimal;
        }
        return value;
    });
}

function cellOf(name: string, cell: unknown, asTexts: boolean): unknown {
    if (cell instanceof Date)
        cell = cell.getTime() / 1000;
    if (cell === undefined || Number.isNaN(cell))
        return null;
    if (typeof cell === "function" || typeof cell === "symbol")
        throw new TypeError(`column '${name}' holds a ${typeof cell}: numbers, texts, booleans, dates and null are taken`);
    return asTexts && typeof cell === "bigint" ? String(cell) : cell;
}

/** A column for JSON. Whole numbers that float64 has not are texts: labels, which differ. */
export function columnOf(name: string, column: unknown): unknown[] {
    if (!Array.isArray(column) && !isNumbers(column))
        throw new TypeError(`column '${name}' is of kind ${kindOf(column)}: arrays and typed arrays are taken`);
    const kind = kindOf(column);
    if (kind === "Float32Array" || kind === "Float16Array")
        return decimals(column as Numbers, kind === "Float32Array" ? 6 : 3).map((cell) => cellOf(name, cell, false));
    const cells: unknown[] = Array.from(column as ArrayLike<unknown>), asTexts = cells.some(isLarge);
    return cells.map((cell) => cellOf(name, cell, asTexts));
}

function columnsOf(rows: readonly unknown[]): [string, unknown[]][] {
    const columns = new Map<string, unknown[]>();
    rows.forEach((row, i) => {
        const members = Object.entries(Object(row));
        if (Array.isArray(row) || ArrayBuffer.isView(row) || (members.length === 0 && kindOf(row) !== "Object"))
            throw new TypeError(`row ${i} is of kind ${kindOf(row)}: objects with members are taken`);
        for (const [name, cell] of members) {
            let column = columns.get(name);
            if (!column)
                columns.set(name, column = new Array(rows.length).fill(null));
            column[i] = cell;
        }
    });
    return [...columns];
}

/** A body that is sent as it is; undefined if it is none. */
export function rawBody(body: unknown): string | Blob | Uint8Array | undefined {
    const kind = kindOf(body);
    if (typeof body === "string" || kind === "Blob" || kind === "File")
        return body as string | Blob;
    if (kind === "ArrayBuffer" || kind === "SharedArrayBuffer")
        return unshared(new Uint8Array(body as ArrayBuffer));
    return ArrayBuffer.isView(body) ? unshared(body) : undefined;
}

/** Columns that are all typed arrays travel as bytes. What is no table is a TypeError. */
export function bodyOf(table: unknown): unknown {
    const kind = kindOf(table);
    if (isNumbers(table) && !kind.startsWith("Uint8"))
        throw new TypeError(`a ${kind} is no table: { name: array } is one of a column`);
    const raw = rawBody(table);
    if (raw !== undefined)
        return raw;
    const columns: [string, unknown][] = Array.isArray(table) ? columnsOf(table) : Object.entries(Object(table));
    if (typeof table !== "object" || table === null || (columns.length === 0 && kind !== "Object" && kind !== "Array"))
        throw new TypeError(`a table is columns, rows, a text, a file or bytes, and not of kind ${kind}`);
    const isBytes = columns.length > 0 && columns.every(([name, column]) =>
        isNumbers(column) && name !== "__metadata__" && !(kindOf(column).startsWith("Big")
                                                          && (column as BigInt64Array).some(isLarge)));
    if (!isBytes)
        return { columns: Object.fromEntries(columns.map(([name, column]) => [name, columnOf(name, column)])) };
    return encode(columns.map(([name, column]) => [name, { data: column as Numbers, shape: [(column as Numbers).length] }]));
}
