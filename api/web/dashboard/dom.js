/* Elements made without HTML text, so that no name or label is ever read as markup. */

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {{ [name: string]: unknown }} Properties
 */

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that people are told. */
const TOLD = ["title", "aria-label"];

/** Controls of direction, by which a text shows as another one; those of `isolate` are in sentences by intent. */
const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066\u2067]/g;
const ISOLATES = /[\u2068\u2069]/g;

/** @param {string} control */
function escape(control) {
    return `\\u${control.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`;
}

/** A name with controls of direction written out. @param {string} name */
export function visible(name) {
    return name.replace(CONTROLS, escape).replace(ISOLATES, escape);
}

/**
 * @param {Element} node
 * @param {Properties} properties
 */
function set(node, properties) {
    for (const [name, value] of Object.entries(properties)) {
        if (value === null || value === undefined || value === false)
            continue;
        if (typeof value === "function")
            node.addEventListener(name, /** @type {EventListener} */ (value));
        else
            node.setAttribute(name, value === true ? "" : TOLD.includes(name) ? String(value).replace(CONTROLS, escape) : String(value));
    }
}

/**
 * Makes an element. Functions among the properties listen to the event of that name, the rest are
 * attributes; null and false are left out.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    set(node, properties);
    fill(node, ...children);
    return node;
}

/** Characters of a name that are never cut. */
const SHORT = 20;

/** The last part of a name: the value of a segment, or what stands after the last separator. */
const LAST_PARTS = [/\[[^[]*\]$/u, /[-_. /:][^-_. /:]{1,24}$/u];

/**
 * A name on one line. Where it is too long, its begin is cut: its last part tells it from others.
 *
 * @param {string} name
 */
export function oneLine(name) {
    const at = name.length > SHORT ? LAST_PARTS.map((part) => name.search(part)).find((place) => place > 0) : null;
    return at ? element("bdi", { class: "one-line" }, element("span", {}, name.slice(0, at)), element("span", {}, name.slice(at)))
        : element("bdi", {}, name);
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, properties = {}, ...children) {
    const node = document.createElementNS(SVG, tag);
    set(node, properties);
    fill(node, ...children);
    return node;
}

/**
 * @param {Child[]} children
 * @param {(text: string) => string} shown
 * @returns {(string | Node)[]}
 */
function nodes(children, shown) {
    /** @type {(string | Node)[]} */
    const kept = [];
    for (const child of children)
        if (child !== null && child !== undefined && child !== false)
            kept.push(child instanceof Node ? child : shown(String(child)));
    return kept;
}

/**
 * Replaces all that a node holds.
 *
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
    parent.replaceChildren(...nodes(children, parent.localName === "bdi" ? visible
        : (text) => text.replace(CONTROLS, escape)));
}

/**
 * Replaces all that a node holds, unless its text is the same already: a reader who is told of changes
 * hears nothing then.
 *
 * @param {Element} parent
 * @param {...Child} children
 */
export function renew(parent, ...children) {
    const next = /** @type {Element} */ (parent.cloneNode());
    fill(next, ...children);
    if (parent.textContent !== next.textContent)
        fill(parent, ...next.childNodes);
}

/**
 * Finds an element that is there by construction.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
    const node = document.getElementById(id);
    if (!node)
        throw new Error(`no element #${id}`);
    return node;
}

let ids = 0;

/** An id that no other element of the page has. */
export function freshId() {
    return `e${++ids}`;
}
