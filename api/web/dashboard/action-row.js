/* One row of what is done first when something is wrong: whose it is, acknowledge, mute, a link to it. */
import { acknowledge, mute, setOwner, unmute } from "./actions.js";
import { address, call } from "./api.js";
import { copyButton } from "./commands.js";
import { messageOf } from "./dialog.js";
import { element, fill } from "./dom.js";
import { isolate, list } from "./format.js";
import { mutedText, unmuteText } from "./row.js";

/**
 * What a row acts on: a monitor, a group, or the monitors of an incident.
 *
 * @typedef {object} Subject
 * @property {string[][]} paths of monitors ("monitors", group, name), or of one group ("monitors", group)
 * @property {string[]} [owners] who is asked first; left out where there is no such thing
 * @property {import("./types.js").Muted | null | undefined} muted
 * @property {boolean} wrong true if there is something to acknowledge
 * @property {string} [link] the view that shows it, as a query; this page, if it is left out
 */

/**
 * What is done less often, behind a button.
 *
 * @param {...import("./dom.js").Child} actions
 */
export function menu(...actions) {
    const rest = element("span", { hidden: true }, ...actions);
    const button = element("button", { type: "button", "aria-label": "More actions", title: "More actions", "aria-expanded": false, click: () => {
        rest.hidden = !rest.hidden;
        button.setAttribute("aria-expanded", String(!rest.hidden));
    } }, "⋯");
    return element("span", { class: "menu" }, button, rest);
}

/**
 * @param {Subject} subject
 * @param {() => void} changed called after a change
 * @param {import("./dom.js").Child[]} [more] actions that stand in a menu, with those of the row that are done less often
 */
export function actionRow({ paths, owners, muted, wrong, link }, changed, more) {
    const button = (/** @type {string} */ name, /** @type {() => Promise<unknown>} */ action) =>
        element("button", { type: "button", click: async () => {
            if (await action() !== false)
                changed();
        } }, name);
    const href = () => new URL(link ?? "", location.href).href;
    const text = element("code", { hidden: true });
    const rest = [
        owners && button("Owner …", () => setOwner(owners[0] ?? "", ...paths)),
        copyButton("Copy link", href, () => {
            text.hidden = false;
            fill(text, href());
            getSelection()?.selectAllChildren(text);
        }),
        text,
    ];
    return element("div", { class: "buttons actions", role: "group", "aria-label": "Actions" },
        wrong && !muted && button("Acknowledge …", () => acknowledge(...paths)),
        muted ? button(unmuteText(muted), () => unmute(...paths)) : button("Mute …", () => mute(...paths)),
        owners && element("span", {}, owners.length > 0 ? `Owner: ${list(owners.map(isolate))}` : "No owner"),
        ...(more ? [menu(...rest, ...more)] : rest), muted && element("span", { class: "quiet" }, mutedText(muted)));
}

/**
 * Shows other actions; an open menu stays open, and the button that has the focus keeps it, by its name.
 *
 * @param {HTMLElement} parent
 * @param {...HTMLElement} actions
 */
export function renewActions(parent, ...actions) {
    const buttons = () => [...parent.querySelectorAll("button")];
    const focused = buttons().find((each) => each === document.activeElement)?.textContent;
    const open = parent.querySelector(".menu > [aria-expanded=true]");
    fill(parent, ...actions);
    if (open)
        parent.querySelector(".menu > button")?.dispatchEvent(new Event("click"));
    buttons().find(({ textContent }) => textContent === focused)?.focus();
}

/**
 * What a monitor's row acts on.
 *
 * @param {import("./types.js").Config} config
 * @param {string} [link]
 * @returns {Subject}
 */
export function subjectOf({ group, name, annotations, muted, state, stale }, link) {
    const { owner } = /** @type {{ owner?: unknown }} */ (annotations);
    return { paths: [["monitors", group, name]], owners: owner ? [String(owner)] : [], muted, link,
             wrong: stale || state === "critical" || state === "warning" };
}

/**
 * A row as a dialog.
 *
 * @param {string} name of what it acts on
 * @param {() => Promise<Subject>} load
 * @param {() => void} changed called after a change
 */
export function openRow(name, load, changed) {
    const row = element("div", {}, element("p", { class: "loading" }, "Loading …"));
    const dialog = element("dialog", { class: "wide", "aria-label": `Actions on ${name}`, close: () => dialog.remove() },
        element("h2", {}, name), row,
        element("div", { class: "buttons" }, element("button", { type: "button", click: () => dialog.close() }, "Close")));
    const show = async () => {
        try {
            fill(row, actionRow(await load(), () => {
                show();
                changed();
            }));
        } catch (error) {
            fill(row, element("p", { class: "problem", role: "alert" }, messageOf(error)));
        }
    };
    document.body.append(dialog);
    dialog.showModal();
    return show();
}

/**
 * The row of a monitor of a list, as a dialog.
 *
 * @param {string} group
 * @param {string} name
 * @param {string} link
 * @param {() => void} changed called after a change
 */
export function openActions(group, name, link, changed) {
    return openRow(`${isolate(group)} / ${isolate(name)}`,
        async () => subjectOf(await call("GET", address(["monitors", group, name])), link), changed);
}
