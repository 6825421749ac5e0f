/* Dialogs that change something: fields, what they would do, the curl line that does the same. */
import { ApiError } from "./api.js";
import { command } from "./commands.js";
import { element, fill, freshId } from "./dom.js";

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {string} [hint]
 * @property {string} [value]
 * @property {string} [type] of an input; "select" takes its `options`
 * @property {[value: string, text: string][]} [options]
 * @property {{ [name: string]: unknown }} [attributes]
 *
 * @typedef {Record<string, string>} Values
 *
 * @typedef {object} Dialog
 * @property {string} title
 * @property {string} [text]
 * @property {Field[]} fields
 * @property {string} button
 * @property {boolean} [dangerous]
 * @property {(values: Values) => string} command the curl line
 * @property {(values: Values) => Promise<unknown>} run
 * @property {(values: Values) => Promise<import("./dom.js").Child[]>} [preview] what it would do
 */

/** Milliseconds without a key before a preview is asked for. */
const TYPED_MS = 300;

/** @param {Field} field */
function inputOf(field) {
    const id = freshId();
    const { options = [], value = "", type = "text", attributes = {} } = field;
    const input = type === "select"
        ? element("select", { id, name: field.name, ...attributes }, ...options.map(([each, text]) =>
            element("option", { value: each, selected: each === value }, text)))
        : element("input", { id, name: field.name, type, value, autocomplete: "off", ...attributes });
    return element("div", {}, element("label", { for: id }, field.label), input,
        field.hint && element("p", { class: "hint" }, field.hint));
}

/**
 * Opens a dialog. Resolves to true once it has done its work, to false if the reader left it.
 *
 * @param {Dialog} of
 * @returns {Promise<boolean>}
 */
export function openDialog(of) {
    const title = freshId();
    const effect = element("div", { class: "effect", "aria-live": "polite" });
    const line = element("div");
    const problem = element("p", { class: "problem", role: "alert" });
    const submit = element("button", { type: "submit", class: of.dangerous ? "danger" : "primary" }, of.button);
    const form = element("form", {},
        element("h2", { id: title }, of.title), of.text && element("p", {}, of.text),
        element("div", { class: "grid" }, ...of.fields.map(inputOf)), effect, problem,
        element("div", { class: "buttons" }, submit,
            element("button", { type: "button", click: () => dialog.close() }, "Cancel")),
        line);
    const dialog = element("dialog", { class: "wide", "aria-labelledby": title }, form);
    const values = () => /** @type {Values} */ (Object.fromEntries(
        /** @type {any} */ (new FormData(form))));
    const previews = follow(form, of, values, effect, line);
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
        form.addEventListener("submit", async (event) => {
            event.preventDefault();
            submit.disabled = true;
            problem.textContent = "";
            try {
                await of.run(values());
                dialog.close("done");
            } catch (error) {
                problem.textContent = messageOf(error);
            }
            submit.disabled = false;
        });
        dialog.addEventListener("close", () => {
            clearTimeout(previews.timer);
            dialog.remove();
            resolve(dialog.returnValue === "done");
        });
    });
}

/**
 * Keeps the curl line and the preview like the fields.
 *
 * @param {HTMLFormElement} form
 * @param {Dialog} of
 * @param {() => Values} values
 * @param {HTMLElement} effect
 * @param {HTMLElement} line
 */
function follow(form, of, values, effect, line) {
    /** @type {{ timer?: ReturnType<typeof setTimeout> }} */
    const state = {};
    let asked = 0;
    const preview = async () => {
        const mine = ++asked;
        const shown = await of.preview?.(values()).catch((error) => [messageOf(error)]) ?? [];
        if (mine === asked)
            fill(effect, ...shown);
    };
    const changed = () => {
        fill(line, command(of.command(values()), "The same by curl"));
        clearTimeout(state.timer);
        if (of.preview)
            state.timer = setTimeout(preview, TYPED_MS);
    };
    form.addEventListener("input", changed);
    changed();
    return state;
}

/**
 * What an error says, with what is needed where the token lacks a right.
 *
 * @param {unknown} error
 */
export function messageOf(error) {
    if (!(error instanceof ApiError))
        throw error;
    const needs = error.code === "scope_missing" ? " This needs a token with the scope “write”." : "";
    return `${error.message}.${needs}`;
}
