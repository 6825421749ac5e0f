/* Changes to Swagger UI: forms that send what was filled in and no more, and a token that the
 * dashboard shares. */
import { forgetToken, keepToken } from "../dashboard/token.js";

/**
 * @typedef {{ get(name: string): any, has(name: string): boolean }} Schema an Immutable Map
 * @typedef {object} FieldProps
 * @property {Schema} schema
 * @property {string} description the field's name
 * @property {unknown} value
 * @property {boolean} [dispatchInitialValue] given for fields of a form alone
 * @property {(value: unknown) => void} onChange
 * @typedef {{ React: { createElement: Function } }} System
 */

/** @param {Schema} schema */
function mayBeFile(schema) {
    const forms = schema.get("anyOf")?.toJS() ?? [];
    return forms.some((/** @type {{ format?: string }} */ form) => form.format === "binary");
}

/**
 * A field that begins with its example, or empty. Swagger UI would fill each with a sample of its
 * schema and send all of them. One that may be text or a file has an input for each.
 *
 * @param {unknown} Original
 * @param {System} system
 */
function formField(Original, { React }) {
    return (/** @type {FieldProps} */ props) => {
        const { schema, description, value, onChange, dispatchInitialValue } = props;
        if (dispatchInitialValue === undefined)
            return React.createElement(Original, props);
        const begins = dispatchInitialValue && schema.has("example");
        const begun = { ...props, dispatchInitialValue: begins };
        if (!mayBeFile(schema))
            return React.createElement(Original, begun);
        const isFile = value instanceof File;
        return React.createElement(
            "div",
            {},
            React.createElement(
                Original,
                { ...begun, value: isFile ? "" : value, disabled: isFile },
            ),
            React.createElement("input", {
                type: "file",
                "aria-label": `${description} as a file`,
                onChange: (/** @type {{ target: HTMLInputElement }} */ event) =>
                    onChange(event.target.files?.[0] ?? ""),
            }),
        );
    };
}

/**
 * The name of an operation without its link, which lies in a button; that of a tag keeps it.
 *
 * @param {unknown} Original
 * @param {System} system
 */
function deepLink(Original, { React }) {
    return (/** @type {{ path: string, text: string }} */ props) =>
        props.path.includes("/") ? React.createElement("span", {}, props.text)
            : React.createElement(Original, props);
}

/**
 * A part of the page as a landmark, with a name.
 *
 * @param {string} label
 */
function landmark(label) {
    return (/** @type {unknown} */ Original, /** @type {System} */ { React }) => (/** @type {object} */ props) =>
        React.createElement("section", { "aria-label": label }, React.createElement(Original, props));
}

/**
 * The box whose words choose operations. That of Swagger UI says that it filters by tag.
 *
 * @param {unknown} _
 * @param {System} system
 */
function filterBox(_, { React }) {
    return (/** @type {any} */ { layoutSelectors, layoutActions }) => {
        const filter = layoutSelectors.currentFilter();
        return React.createElement("section", { "aria-label": "Filter", className: "filter wrapper" },
            React.createElement("input", {
                className: "operation-filter-input", type: "search", "aria-label": "Filter operations",
                placeholder: "Find: mute, windows, /kl_div …", value: typeof filter === "string" && filter !== "true" ? filter : "",
                onChange: (/** @type {{ target: HTMLInputElement }} */ { target }) => layoutActions.updateFilter(target.value || "true"),
            }));
    };
}

/**
 * The operations below a heading: those of their tags are a level deeper.
 *
 * @param {unknown} Original
 * @param {System} system
 */
function operations(Original, { React }) {
    return (/** @type {object} */ props) => React.createElement("div", {},
        React.createElement("h2", { className: "heard" }, "Operations"), React.createElement(Original, props));
}

/** @typedef {(argument: any) => unknown} Action */

const actions = {
    authorize: (/** @type {Action} */ original) => (/** @type {any} */ given) => {
        if (given.bearer)
            keepToken(given.bearer.value);
        return original(given);
    },
    logout: (/** @type {Action} */ original) => (/** @type {string[]} */ names) => {
        if (names.includes("bearer"))
            forgetToken();
        return original(names);
    },
};

/**
 * Operations of which path, summary or description has the words; Swagger UI would look at the names of tags alone.
 *
 * @param {any} tagged operations by tag, Immutable
 * @param {string} phrase
 */
function opsFilter(tagged, phrase) {
    const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (/** @type {any} */ operation) => {
        const text = [operation.get("method"), operation.get("path"), operation.getIn(["operation", "summary"]),
                      operation.getIn(["operation", "description"])].join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
    };
    return tagged.map((/** @type {any} */ tag) => tag.update("operations", (/** @type {any} */ all) => all.filter(has)))
        .filter((/** @type {any} */ tag) => tag.get("operations").size > 0);
}

/**
 * What a request sends: a text as it is, anything else as a file.
 *
 * @param {any} request Immutable
 */
function partsOf(request) {
    const body = request.get("body");
    return { url: request.get("url"), method: request.get("method"), headers: request.get("headers")?.toJS() ?? {},
             body: typeof body === "string" ? JSON.stringify(body) : body ? null : undefined };
}

/** @param {any} request */
function python(request) {
    const { url, method, headers, body } = partsOf(request);
    const data = body === undefined ? "" : `,\n    data=${body ?? 'open("FILE", "rb")'}`;
    return `import requests\n\nresponse = requests.request(\n    ${JSON.stringify(method)}, ${JSON.stringify(url)},\n` +
        `    headers=${JSON.stringify(headers)}${data})\nprint(response.status_code, response.text)`;
}

/** @param {any} request */
function javascript(request) {
    const { url, method, headers, body } = partsOf(request);
    const data = body === undefined ? "" : `,\n    body: ${body ?? "file"}`;
    return `const response = await fetch(${JSON.stringify(url)}, {\n    method: ${JSON.stringify(method)},\n` +
        `    headers: ${JSON.stringify(headers)}${data},\n});\nconsole.log(response.status, await response.text());`;
}

export const plugin = {
    fn: { opsFilter, requestSnippetGenerator_python: python, requestSnippetGenerator_javascript: javascript },
    components: { ParameterIncludeEmpty: () => null, ServersContainer: () => null }, /* there is one server: this */
    wrapComponents: { JsonSchemaForm: formField, DeepLink: deepLink, InfoContainer: landmark("About"), FilterContainer: filterBox, operations },
    statePlugins: { auth: { wrapActions: actions } },
};
