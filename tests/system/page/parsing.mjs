// Texts that the calculator reads, as people paste them, and texts that it must not take for numbers.
import {parse} from "../../../api/web/dashboard/parse.js";
import {Unreadable} from "../../../api/web/dashboard/tables.js";
import {expectSame} from "./report.mjs";

/** read: texts of one table with its rows, and its labels if it has any. */
const read = [
    ["1 2 3", [[1, 2, 3]]],
    ["1,2,3", [[1, 2, 3]]],
    ["1, 2, 3,", [[1, 2, 3]]],
    ["1;2;3", [[1, 2, 3]]],
    ["1\t2\t3", [[1, 2, 3]]],
    ["\ufeff1\u00a02", [[1, 2]]],
    ["1\n2\n3", [[1, 2, 3]]],
    ["1 2\r\n\r\n3 4\r\n", [[1, 2], [3, 4]]],
    ["-1e-3 +4 .5 5. 1E2", [[-0.001, 4, 0.5, 5, 100]]],
    ["\u22121 \u22122", [[-1, -2]]],
    ["20% 80%", [[0.2, 0.8]]],
    ["nan inf -Infinity", [[NaN, Infinity, -Infinity]]],
    ['"1","2","3"', [[1, 2, 3]]],
    ["0,5 0,25 0,25", [[0.5, 0.25, 0.25]]],
    ["0,25\n0,5\n0,25", [[0.25, 0.5, 0.25]]],
    ["1,5;2,5", [[1.5, 2.5]]],
    ["1,5\t2,5", [[1.5, 2.5]]],
    ["1,5 2,5", [[1, 5, 2, 5]]],
    ["0,12\n1,15\n2,9", [[0, 12], [1, 15], [2, 9]]],
    ["1.5;2,5", [[1.5, 2, 5]]],
    ["a 12\nb 30", [[12, 30]], ["a", "b"]],
    ["a: 12, b: 30", [[12, 30]], ["a", "b"]],
    ["a = 12\nb = 30", [[12, 30]], ["a", "b"]],
    ["a;1,5\nb;2,5", [[1.5, 2.5]], ["a", "b"]],
    ["a\t12\nb\t0,5", [[12, 0.5]], ["a", "b"]],
    ["New York 12\nLos Angeles 30", [[12, 30]], ["New York", "Los Angeles"]],
    ["[0, 10) 5\n[10, 20) 7", [[5, 7]], ["[0, 10)", "[10, 20)"]],
    ["(0.5, 1.0]   12\n(1.0, 2.0]    3\nName: count, dtype: int64", [[12, 3]],
     ["(0.5, 1.0]", "(1.0, 2.0]"]],
    ["label,count\n1,5\n2,7\n3,9", [[5, 7, 9]], ["1", "2", "3"]],
    ['label,count\n"b, ""c""",7\na,5', [[7, 5]], ['b, "c"', "a"]],
    ["label\tcount\nx\t1\ny\t2", [[1, 2]], ["x", "y"]],
    ["label;count\nx;1,5\ny;2", [[1.5, 2]], ["x", "y"]],
    ["count\n3\n4\n5", [[3, 4, 5]]],
    ["a,b,c\n1,2,3\n4,5,6", [[1, 2, 3], [4, 5, 6]], ["a", "b", "c"]],
    ["a,b\n3,4", [[3, 4]], ["a", "b"]],
    ["[1, 2, 3]", [[1, 2, 3]]],
    ["[[1, 2], [3, 4]]", [[1, 2], [3, 4]]],
    ["[NaN, -Infinity, 1]", [[NaN, -Infinity, 1]]],
    ["[1. 2.]", [[1, 2]]],
    ["[[1. 2.\n  3.]\n [4. 5.\n  6.]]", [[1, 2, 3], [4, 5, 6]]],
    ["np.array([[1, 2],\n [3, 4]], dtype=float32)", [[1, 2], [3, 4]]],
    ["tensor([0.1000, 0.9000], device='cuda:0')", [[0.1, 0.9]]],
    ['{"a": 1, "b": "2"}', [[1, 2]], ["a", "b"]],
    ['{"<script>": NaN}', [[NaN]], ["<script>"]],
];

/** pairs: texts with both tables: reference, current, labels. */
const pairs = [
    ["bin,reference,current\na,1,2\nb,3,4", [1, 3], [2, 4], ["a", "b"]],
    ["bin,current,reference\na,1,2\nb,3,4", [2, 4], [1, 3], ["a", "b"]],
    ["p\tq\n1\t2\n3\t4", [2, 4], [1, 3], null],
    ["reference current\n1 2\n3 4", [1, 3], [2, 4], null],
    ["bin reference current\na 1 2\nb 2 3", [1, 2], [2, 3], ["a", "b"]],
    ["a,1,2\nb,3,4", [1, 3], [2, 4], ["a", "b"]],
    ['{"input": [0.1, 0.9], "target": [0.2, 0.8]}', [0.1, 0.9], [0.2, 0.8], null],
    ['{"reference": {"a": 1}, "current": {"a": 2}}', [1], [2], ["a"]],
    ['{"kl": 1, "bins": [{"name": "a", "reference": 0.5, "current": 0.4, "contribution": null}]}',
     [0.5], [0.4], ["a"]],
];

/** refused: texts that are no table, with a part of what is said of them. */
const refused = [
    ["hello", "hello"],
    ["1 2 x", "“x”"],
    ["1 2 3\n4 x 6", "“x”"],
    ["x 1 2 4\ny 2 3 4", "“x”"],
    ["a 12\nb\nc 3", "“b”"],
    ["a 12 b 30", "“a”"],
    ["a=1 b=2", "a=1"],
    ["a\n1 2", "a"],
    ["1,,2", "empty"],
    ["1;2\n;3", "empty"],
    ["1 2 3\n4 5", "3 numbers, and another 2"],
    ["a 1\na 2", "twice"],
    ["1e999 2", "too large"],
    ["1 2 0x10", "0x10"],
    ["[1, \"x\"]", "array"],
    ["[]", "no number"],
    ["{}", "no number"],
    ["{broken", "well-formed"],
    ['{"a": 1e999}', "not a number"],
    ['{"a": true}', "not a number"],
    ['{"a": {"b": 1}}', "not a number"],
    ['{"input": 1, "target": [1]}', "no table"],
];

/** @param {unknown} value  NaN and infinities as texts */
function show(value) {
    return JSON.stringify(value, (_, each) => typeof each === "number" && !Number.isFinite(each)
        ? String(each) : each);
}

/** @param {string} text */
function refusal(text) {
    try {
        return `read as ${show(parse(text))}`;
    } catch (error) {
        if (error instanceof Unreadable) return error.message;
        throw error;
    }
}

/** @param {import("./run.mjs").Room} room */
export async function checkParsing({report}) {
    await report.check("texts of one table", () => {
        for (const [text, rows, labels = null] of read)
            expectSame(show(parse(/** @type {string} */ (text))), show({rows, labels}), show(text));
        return `${read.length} texts`;
    });
    await report.check("texts of both tables", () => {
        for (const [text, reference, current, labels] of pairs) {
            const found = parse(/** @type {string} */ (text));
            const seen = found && "reference" in found ? [found.reference, found.current] : found;
            expectSame(show(seen), show([reference, current].map(row => ({rows: [row], labels}))),
                       show(text));
        }
        return `${pairs.length} texts`;
    });
    await report.check("nothing at all", () => {
        for (const text of ["", " \n\t\n "]) expectSame(parse(text), null, show(text));
    });
    await report.check("texts that are no table are refused, with the reason", () => {
        for (const [text, part] of refused) {
            const said = refusal(text);
            expectSame(said.includes(part) && !said.startsWith("read as"), true, `${text}: ${said}`);
        }
        return `${refused.length} texts`;
    });
}
