/* JSON as the service reads and writes it, with numbers that JSON has not. */

/** JSON with NaN and infinities as texts, bigint with all digits, typed arrays as arrays, and members of any name. */
export function toJson(value: unknown): string {
    if (typeof value === "number")
        return Number.isFinite(value) ? String(value) : `"${value}"`;
    if (typeof value === "bigint")
        return String(value);
    if (value instanceof Date)
        return JSON.stringify(dateText(value));
    if (Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value))
        return `[${Array.from(value as ArrayLike<unknown>, toJson).join()}]`;
    if (typeof value !== "object" || value === null)
        return JSON.stringify(value) ?? "null";
    if ("toJSON" in value && typeof value.toJSON === "function")
        return toJson(value.toJSON());
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join()}}`;
}

/** A date as RFC 3339; a TypeError for one that is none. */
export function dateText(date: Date): string {
    if (Number.isNaN(date.getTime()))
        throw new TypeError("a Date is invalid");
    return date.toISOString();
}

/** Reads JSON, also with bare NaN and Infinity, which Triton's protocol writes. */
export function fromJson(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch (error) {
        const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (token) => (token[0] === '"' ? token : `"\\u0000${token}"`));
        if (marked === text)
            throw error;
        return JSON.parse(marked, (_, value) => (typeof value === "string" && value[0] === "\0" ? Number(value.slice(1)) : value));
    }
}
