/* Keys: those that walk through a chart, and those of the whole page. */
import { element } from "./dom.js";

const STEPS = new Map([["ArrowLeft", -1], ["ArrowRight", 1], ["PageUp", -10], ["PageDown", 10],
                       ["Home", -Infinity], ["End", Infinity]]);

/**
 * @param {HTMLElement} node which has the focus
 * @param {(step: number) => void} move
 * @param {() => void} [choose]
 */
export function onArrows(node, move, choose) {
    node.addEventListener("keydown", (event) => {
        const step = STEPS.get(event.key);
        if (step === undefined && !(choose && event.key === "Enter"))
            return;
        event.preventDefault();
        if (step === undefined)
            choose?.();
        else
            move(step);
    });
}

/** Keys of the page, and what they do. */
const KEYS = [["/", "search"], ["j", "the next monitor"], ["k", "the monitor before"], ["Enter", "open it"], ["?", "this list"]];

/** Moves the focus among the links to monitors. @param {number} step */
function walk(step) {
    const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main a.monitor, main .feed a")]);
    const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}

function showKeys() {
    const dialog = element("dialog", { "aria-label": "Keys", close: () => dialog.remove() }, element("h2", {}, "Keys"),
        element("dl", { class: "numbers" }, ...KEYS.map(([key, text]) => element("div", {},
            element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)))),
        element("div", { class: "buttons" }, element("button", { type: "button", click: () => dialog.close() }, "Close")));
    document.body.append(dialog);
    dialog.showModal();
}

/** Listens for the keys of the page, which texts and dialogs have for themselves. */
export function watchKeys() {
    document.addEventListener("keydown", (event) => {
        const target = event.target instanceof Element ? event.target : null;
        if (event.ctrlKey || event.metaKey || event.altKey || target?.closest("input, select, textarea, dialog"))
            return;
        const search = /** @type {HTMLElement | null} */ (document.querySelector("main input[type=search]"));
        if (event.key === "j" || event.key === "k")
            walk(event.key === "j" ? 1 : -1);
        else if (event.key === "?")
            showKeys();
        else if (event.key === "/" && search) {
            event.preventDefault();
            search.focus();
        }
    });
}
