/* The OpenAPI document as Swagger UI gets it. */

/**
 * @typedef {{ $ref?: string, default?: unknown, description?: string,
 *     properties?: Record<string, Schema> }} Schema
 * @typedef {Record<string, Schema>} Schemas
 * @typedef {{ in: string, description: string, schema: Schema, example?: unknown }} Parameter
 * @typedef {{ schema: Schema, example?: unknown,
 *     examples?: Record<string, { value: unknown }> }} Media
 * @typedef {{ tags: string[], "x-section"?: string, requestBody?: { content: Record<string, Media> } }} Operation
 * @typedef {{ name: string, description: string }} Tag
 * @typedef {object} OpenApi
 * @property {{ url: string }[]} servers
 * @property {Tag[]} tags
 * @property {Tag[]} x-sections parts of the tag "monitors", of which there are too many to read: programs have one tag
 * @property {Record<string, Record<string, Operation>>} paths
 * @property {{ parameters: Record<string, Parameter>, schemas: Schemas }} components
 */

const DAY = 24 * 3600 * 1000; // ms

/**
 * @param {Schema} schema
 * @param {Schemas} schemas
 * @returns {Schema}
 */
function resolve({ $ref, ...own }, schemas) {
    const name = $ref?.split("/").at(-1);
    return name ? { ...schemas[name], ...own } : own;
}

/**
 * Moves the default of a field into its description. Swagger UI would send it, and what is sent as
 * a parameter contradicts the same option in a body.
 *
 * @param {Schema} schema
 * @param {string} description
 */
function putDefaultInWords({ default: value, ...schema }, description) {
    const words = value === undefined || value === null ? "" : ` Default: ${value}.`;
    return { ...schema, description: description + words };
}

/**
 * Moves the example of a parameter into its description, for Swagger UI would send it; a path needs its own.
 *
 * @param {Parameter} parameter changed
 */
function putExampleInWords(parameter) {
    if (parameter.in === "path" || parameter.example === undefined)
        return;
    parameter.description += ` For example ${parameter.example}.`;
    delete parameter.example;
}

/**
 * @param {Media | undefined} media the multipart form of a body
 * @param {Schemas} schemas
 */
function prepareForm(media, schemas) {
    if (!media)
        return;
    const form = resolve(media.schema, schemas);
    const fields = Object.entries(form.properties ?? {}).map(([name, reference]) => {
        const schema = resolve(reference, schemas);
        return [name, putDefaultInWords(schema, schema.description ?? "")];
    });
    media.schema = { ...form, properties: Object.fromEntries(fields) };
}

/**
 * Brings an example to the present. Its fixed time would be refused by a monitor that has windows
 * of today, as older than what the monitor keeps.
 *
 * @param {unknown} example
 */
function putTimeToNow(example) {
    if (typeof example !== "object" || example === null)
        return;
    if ("timestamp" in example)
        delete example.timestamp;
    if ("from" in example && "to" in example) {
        example.from = new Date(Date.now() - DAY).toISOString();
        example.to = new Date(Date.now() + DAY).toISOString();
    }
}

/**
 * Prepares the document to be tried out, and gives the server's full address.
 *
 * @param {OpenApi} openapi changed
 * @param {URL} root
 */
export function prepare(openapi, root) {
    const { servers, tags, paths, components } = openapi;
    tags.splice(tags.findIndex(({ name }) => name === "monitors") + 1, 0, ...openapi["x-sections"]);
    for (const server of servers)
        server.url = new URL(server.url, root).href.replace(/\/$/, "");
    for (const parameter of Object.values(components.parameters)) {
        const schema = resolve(parameter.schema, components.schemas);
        parameter.schema = putDefaultInWords(schema, parameter.description);
        parameter.description = parameter.schema.description ?? "";
        putExampleInWords(parameter);
    }
    for (const operation of Object.values(paths).flatMap(Object.values)) {
        const content = operation.requestBody?.content ?? {};
        operation.tags = [operation["x-section"] ?? operation.tags[0]];
        prepareForm(content["multipart/form-data"], components.schemas);
        for (const { example, examples } of Object.values(content)) {
            putTimeToNow(example);
            Object.values(examples ?? {}).forEach(({ value }) => putTimeToNow(value));
        }
    }
    return openapi;
}
