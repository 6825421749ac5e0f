/* Tensors as safetensors: a header in JSON, then the bytes of each, little-endian as on every machine that has a browser. */

/** An array with its shape, row-major. Uint16Array holds 16 bits of float16 or bfloat16: `dtype` says which. */
export type Tensor =
    | { data: Float32Array | Float64Array; shape: number[]; dtype?: "F32" | "F64" }
    | { data: Uint16Array; shape: number[]; dtype: "F16" | "BF16" };

export type Numbers =
    | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
    | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

/** What a file has for each tensor. */
export type Entry = { data: Numbers; shape: number[]; dtype?: string };

const dtypes = new Map<Function, string>([
    [Float32Array, "F32"], [Float64Array, "F64"], [Int8Array, "I8"], [Int16Array, "I16"], [Int32Array, "I32"],
    [BigInt64Array, "I64"], [Uint8Array, "U8"], [Uint16Array, "U16"], [Uint32Array, "U32"], [BigUint64Array, "U64"],
]);
const arrays = { F32: Float32Array, F64: Float64Array, F16: Uint16Array, BF16: Uint16Array };

export function isNumbers(value: unknown): value is Numbers {
    return dtypes.has((value as object | null | undefined)?.constructor as Function);
}

/** A file of these tensors, made of their memory without a copy. */
export function encode(tensors: Record<string, Entry>): Blob {
    const header: Record<string, unknown> = {};
    let end = 0;
    for (const [name, { data, shape, dtype = dtypes.get(data.constructor) }] of Object.entries(tensors))
        header[name] = { dtype, shape, data_offsets: [end, (end += data.byteLength)] };
    const text = new TextEncoder().encode(JSON.stringify(header));
    const size = new BigUint64Array([BigInt(text.length)]);
    return new Blob([size, text, ...Object.values(tensors).map(({ data }) => data as BlobPart)]);
}

/** The tensors of a file, and the strings of its metadata. */
export function decode(file: ArrayBuffer): { tensors: Record<string, Tensor>; metadata: Record<string, string> } {
    const size = Number(new DataView(file).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, size)));
    const { __metadata__: metadata = {}, ...entries } = header;
    const tensors: Record<string, Tensor> = {};
    for (const [name, entry] of Object.entries<any>(entries)) {
        const dtype = entry.dtype as keyof typeof arrays;
        const [begin, end] = entry.data_offsets.map((offset: number) => 8 + size + offset);
        tensors[name] = { data: new arrays[dtype](file.slice(begin, end)), shape: entry.shape, dtype } as Tensor;
    }
    return { tensors, metadata };
}
