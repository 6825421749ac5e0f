// The classes that openapi-typescript-codegen makes: losses, inferences, monitors, and their errors.
import assert from "node:assert/strict";
import { ApiError, InferenceService, InferenceTensor, LossService, MonitorsService, OpenAPI, Reduction }
    from "./generated/codegen/index.js";

OpenAPI.BASE = process.argv[2]!;
const input = [[-1, -0.5], [-2, -0.25]], target = [[0.25, 0.75], [0.5, 0.5]];
const expected = 0.247258;

const good = await LossService.klDiv({ requestBody: { input, target }, reduction: Reduction.BATCHMEAN });
assert(typeof good.loss === "number");
assert(Math.abs(good.loss - expected) < 1e-6);
assert.deepEqual(good.warnings, []);

await assert.rejects(
    LossService.klDiv({ requestBody: { input, target: [[1]] } }),
    (error: ApiError) => error.status === 422 && error.body.code === "shape_mismatch",
);

const { name, datatype } = InferenceTensor;
const inference = await InferenceService.infer({
    requestBody: {
        inputs: [
            { name: name.INPUT, datatype: datatype.FP64, shape: [2, 2], data: input },
            { name: name.TARGET, datatype: datatype.FP64, shape: [2, 2], data: target },
        ],
        parameters: { reduction: "batchmean" },
    },
});
const output: number | undefined = inference.outputs[0]?.data?.[0];
assert(output !== undefined && Math.abs(output - expected) < 1e-6);

const path = { group: "codegen", name: "age" }; // it leaves a slash in a name as it is
await MonitorsService.putMonitor({
    ...path,
    requestBody: { bins: { edges: [0, 1, 2] }, reference: { counts: [5, 5] } },
});
const observed = await MonitorsService.observe({ ...path, requestBody: { counts: [10, 90] } });
assert.equal(observed.top[0], "[0, 1)");
const history = await MonitorsService.listWindows(path);
assert.equal(history.windows[0]?.n, 100);
