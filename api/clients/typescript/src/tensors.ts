/* Tensors as safetensors: a header in JSON, then the bytes of each, little-endian as on every machine that has a browser. */

/** What Float16Array has, which not all compilers and browsers know. */
export interface Halves extends ArrayLike<number> {
    readonly BYTES_PER_ELEMENT: number;
    readonly buffer: ArrayBufferLike;
    readonly byteLength: number;
    readonly byteOffset: number;
    readonly [Symbol.toStringTag]: "Float16Array";
}

/** An array with its shape, row-major. Uint16Array holds 16 bits of float16 or bfloat16: `dtype` says which. */
export type Tensor =
    | { readonly data: Float32Array | Float64Array; readonly shape: readonly number[]; readonly dtype?: "F32" | "F64" }
    | { readonly data: Uint16Array; readonly shape: readonly number[]; readonly dtype: "F16" | "BF16" };

/** A tensor that is sent. */
export type GivenTensor = Tensor | { readonly data: Halves; readonly shape: readonly number[]; readonly dtype?: "F16" };

export type Numbers =
    | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
    | Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array | BigUint64Array | Halves;

/** What a file has for each tensor. */
export type Entry = { readonly data: Numbers; readonly shape: readonly number[]; readonly dtype?: string | undefined };

const dtypes = new Map([
    ["Float16Array", "F16"], ["Float32Array", "F32"], ["Float64Array", "F64"], ["Int8Array", "I8"], ["Int16Array", "I16"],
    ["Int32Array", "I32"], ["BigInt64Array", "I64"], ["Uint8Array", "U8"], ["Uint8ClampedArray", "U8"],
    ["Uint16Array", "U16"], ["Uint32Array", "U32"], ["BigUint64Array", "U64"],
]);
const arrays = { F32: Float32Array, F64: Float64Array, F16: Uint16Array, BF16: Uint16Array };

/** What a value is: the name of its class, which is that of its kind also in another window's realm. */
export function kindOf(value: unknown): string {
    if (value === null || typeof value !== "object")
        return value === null || value === undefined ? String(value) : typeof value;
    const tag = Object.prototype.toString.call(value).slice(8, -1);
    return tag === "Object" ? value.constructor?.name ?? tag : tag;
}

export function isNumbers(value: unknown): value is Numbers {
    return ArrayBuffer.isView(value) && dtypes.has(kindOf(value));
}

/** Bytes, copied where other threads may write: fetch refuses those, and Node 18 ends. */
export function unshared(view: ArrayBufferView): Uint8Array {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    return kindOf(view.buffer) === "SharedArrayBuffer" ? bytes.slice() : bytes;
}

/** A file of these tensors, made of their memory without a copy. */
export function encode(tensors: readonly (readonly [string, Entry])[]): Blob {
    let end = 0;
    const header = Object.fromEntries(tensors.map(([name, { data, shape, dtype = dtypes.get(kindOf(data)) }]) => {
        if (!isNumbers(data))
            throw new TypeError(`the data of '${name}' is of kind ${kindOf(data)}: typed arrays are taken`);
        return [name, { dtype, shape, data_offsets: [end, (end += data.byteLength)] }];
    }));
    const text = new TextEncoder().encode(JSON.stringify(header));
    const size = new BigUint64Array([BigInt(text.length)]);
    return new Blob([size, text, ...tensors.map(([, { data }]) => unshared(data as ArrayBufferView) as BlobPart)]);
}

/** The tensors of a file, and the strings of its metadata. */
export function decode(file: ArrayBuffer): { tensors: Record<string, Tensor>; metadata: Record<string, string> } {
    const size = Number(new DataView(file).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, size)));
    const { __metadata__: metadata = {}, ...entries } = header;
    const tensors = Object.fromEntries(Object.entries<any>(entries).map(([name, entry]) => {
        const dtype = entry.dtype as keyof typeof arrays;
        const [begin, end] = entry.data_offsets.map((offset: number) => 8 + size + offset);
        return [name, { data: new arrays[dtype](file.slice(begin, end)), shape: entry.shape, dtype } as Tensor];
    }));
    return { tensors, metadata };
}
