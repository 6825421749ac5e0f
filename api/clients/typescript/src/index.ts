/* What the package has. */
export * from "./client.js";
export { ServiceError } from "./errors.js";
export * from "./group.js";
export type { Tensor } from "./tensors.js";
export type { Answer, Call, components, Method, Operation, Path, paths, Raw, Schemas } from "./types.js";
