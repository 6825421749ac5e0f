// JavaScript with fetch, in Node and in browsers: JSON, and safetensors.
async function post(url, body, type) {
    const answer = await fetch(url, {method: "POST", headers: {"Content-Type": type}, body});
    const json = await answer.json();
    if (!answer.ok) throw new Error(json.detail);
    return json.loss;
}

// tensors: name -> {shape, values}, of Float32Arrays
function safetensors(tensors) {
    const header = {};
    let size = 0;
    for (const [name, {shape, values}] of Object.entries(tensors)) {
        header[name] = {dtype: "F32", shape, data_offsets: [size, size + values.byteLength]};
        size += values.byteLength;
    }
    const text = new TextEncoder().encode(JSON.stringify(header));
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(text.length), true);
    return new Blob([length.buffer, text, ...Object.values(tensors).map(t => t.values)]);
}

export async function example(url) {
    const input = [[-1, -0.5], [-2, -0.25]], target = [[0.25, 0.75], [0.5, 0.5]];
    const body = JSON.stringify({input, target, reduction: "batchmean"});
    const file = safetensors({input: {shape: [2, 2], values: new Float32Array(input.flat())},
                              target: {shape: [2, 2], values: new Float32Array(target.flat())}});
    return [await post(url, body, "application/json"),
            await post(url + "?reduction=batchmean", file, "application/vnd.safetensors")];
}

if (globalThis.process?.argv[2])
    for (const loss of await example(process.argv[2])) console.log(loss);
