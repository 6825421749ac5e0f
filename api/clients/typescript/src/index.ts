/* What the package has. */
export * from "./client.js";
export { ServiceError } from "./errors.js";
export * from "./group.js";
export type { Cell, Table } from "./tables.js";
export type { GivenTensor, Halves, Numbers, Tensor } from "./tensors.js";
export type { ClientOptions } from "./transport.js";
export type { Answer, Call, components, Control, Loose, Method, Operation, Path, paths, Raw, Reply, Schemas } from "./types.js";
