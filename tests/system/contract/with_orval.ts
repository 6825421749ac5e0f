// The functions that orval makes: losses, inferences, monitors, and their errors. Answers are unions
// of what each status brings. Of several media types orval names none, and fetch calls its JSON
// text/plain: the server reads it all the same.
import assert from "node:assert/strict";
import { infer, klDiv, listWindows, observe, putMonitor, readyz } from "./generated/orval.js";

const input = [[-1, -0.5], [-2, -0.25]], target = [[0.25, 0.75], [0.5, 0.5]];
const expected = 0.247258;

const good = await klDiv({ input, target }, { reduction: "batchmean" });
assert(good.status === 200 && typeof good.data.loss === "number");
assert(Math.abs(good.data.loss - expected) < 1e-6);

const rows = await klDiv(
    { input, target },
    { reduction: "none", dim: [0, 1], gradient: ["input", "target"] },
);
assert(rows.status === 200);
assert.deepEqual(rows.data.shape, []);
assert.deepEqual(rows.data.gradient?.input, [[-0.25, -0.75], [-0.5, -0.5]]);

const wrong = await klDiv({ input, target: [[1]] });
assert(wrong.status === 422);
assert.equal(wrong.data.code, "shape_mismatch");

const inference = await infer({ inputs: [
    { name: "input", datatype: "FP64", shape: [2, 2], data: input },
    { name: "target", datatype: "FP64", shape: [2, 2], data: target },
] }, { reduction: "batchmean" });
assert(inference.status === 200);
assert(Math.abs(inference.data.outputs[0]!.data![0]! - expected) < 1e-6);

const refused = await infer({ inputs: [] });
assert(refused.status === 422);
assert.match(refused.data.error, /input/);

await putMonitor("orval", "age", { bins: { edges: [0, 1, 2] }, reference: { counts: [5, 5] } });
const observed = await observe("orval", "age", { counts: [10, 90] });
assert(observed.status === 200);
const history = await listWindows("orval", "age");
assert(history.status === 200);
assert.equal(history.data.windows[0]?.n, 100);

assert.equal((await readyz()).status, 200);
