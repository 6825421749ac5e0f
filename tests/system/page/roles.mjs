// Elements found as a screen reader finds them: by role and name. What cannot be found so does not
// exist for its users, and classes may change as they like.
import {setTimeout as sleep} from "node:timers/promises";

/**
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("puppeteer-core").SerializedAXNode} Node
 * @typedef {import("puppeteer-core").ElementHandle<Element>} Handle
 */

const WAIT_MS = 20_000;

/**
 * Walks a tree in the order of the document.
 * @param {Node} node
 * @returns {Generator<Node>}
 */
function* walk(node) {
    yield node;
    for (const child of node.children ?? []) yield* walk(child);
}

/**
 * All nodes of a role whose names match.
 * @param {Page} page
 * @param {string} role  as ARIA has it; several with | between
 * @param {string | RegExp} name  a text is the whole name
 * @returns {Promise<Node[]>}
 */
export async function findAll(page, role, name = /(?:)/) {
    const root = await page.accessibility.snapshot({interestingOnly: false});
    const roles = role.split("|");
    const fits = (/** @type {string} */ text) =>
        typeof name === "string" ? text === name : name.test(text);
    return root ? [...walk(root)].filter(n => roles.includes(n.role) && fits(n.name ?? "")) : [];
}

/**
 * Waits for a node of a role and name.
 * @param {Page} page
 * @param {string} role
 * @param {string | RegExp} name
 * @returns {Promise<Node>}
 */
export async function find(page, role, name = /(?:)/) {
    for (const end = Date.now() + WAIT_MS; Date.now() < end; await sleep(50)) {
        const [node] = await findAll(page, role, name);
        if (node) return node;
    }
    const there = (await findAll(page, role)).slice(0, 12).map(node => node.name);
    throw new Error(`no ${role} is named ${name}; there are ${JSON.stringify(there)}`);
}

/**
 * @param {Page} page
 * @param {string} role
 * @param {string | RegExp} name
 * @returns {Promise<Handle>}
 */
export async function handleOf(page, role, name) {
    const handle = await (await find(page, role, name)).elementHandle();
    if (!handle) throw new Error(`the ${role} named ${name} went away`);
    return /** @type {Handle} */ (handle);
}

/**
 * Clicks as a mouse does; fails where something else lies over the element.
 * @param {Page} page
 * @param {string} role
 * @param {string | RegExp} name
 */
export async function click(page, role, name) {
    await (await handleOf(page, role, name)).click();
}

/**
 * Clicks a button of the menu "More actions", which is opened first.
 * @param {Page} page
 * @param {string} name
 */
export async function clickMenu(page, name) {
    if (!await page.$(".menu > [aria-expanded=true]"))
        await click(page, "button", "More actions");
    await click(page, "button", name);
}

/**
 * Replaces the text of a field, as a paste would.
 * @param {Page} page
 * @param {string | RegExp} name
 * @param {string} text
 */
export async function fill(page, name, text) {
    const field = await handleOf(page, "textbox|searchbox|combobox|spinbutton", name);
    await field.evaluate(element => {
        if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement)
            element.select();
    });
    await field.press("Backspace");
    await page.keyboard.sendCharacter(text);
}

/**
 * Chooses the option of a list by its value.
 *
 * @param {Page} page
 * @param {string | RegExp} name
 * @param {string} value
 */
export async function choose(page, name, value) {
    const chosen = await (await handleOf(page, "combobox", name)).select(value);
    if (chosen[0] !== value)
        throw new Error(`the list ${name} has no option ${value}`);
}

/** All text that the page shows, without marks of direction. @param {Page} page */
export function textOf(page) {
    return page.evaluate(() => document.body.innerText.replace(/[\u2066-\u2069]/g, ""));
}

/**
 * Waits until the page shows a text, and returns what matched.
 * @param {Page} page
 * @param {RegExp} pattern
 */
export async function waitForText(page, pattern) {
    let text = "";
    for (const end = Date.now() + WAIT_MS; Date.now() < end; await sleep(50)) {
        text = await textOf(page);
        const found = pattern.exec(text);
        if (found) return found;
    }
    throw new Error(`no text like ${pattern}; there is: ${text.slice(0, 400)}`);
}

/** Role and name of what has the focus. @param {Page} page */
export async function focused(page) {
    const root = await page.accessibility.snapshot({interestingOnly: false});
    const nodes = root ? [...walk(root)].filter(node => node.focused) : [];
    return nodes.at(-1) ?? null;
}
