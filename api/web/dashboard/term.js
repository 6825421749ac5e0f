/* Words that say what they mean, on hover and on focus. */
import { element, freshId } from "./dom.js";

/** Pixels between a tip and the edge of the window. */
const EDGE = 8;

/**
 * @param {string} name
 * @param {string} means
 * @param {() => void} [click] what the word does, if it does something
 */
export function term(name, means, click) {
    const id = freshId();
    const tip = element("span", { role: "tooltip", id, hidden: true }, means);
    const button = element("button", { type: "button", "aria-describedby": id, click }, name);
    const hide = () => {
        tip.hidden = true;
        document.removeEventListener("keydown", escape);
    };
    const show = () => {
        tip.hidden = false;
        document.addEventListener("keydown", escape);
        const { left, bottom } = button.getBoundingClientRect();
        const room = document.documentElement.clientWidth - tip.offsetWidth - EDGE;
        tip.style.left = `${Math.max(Math.min(left, room), EDGE)}px`;
        tip.style.top = `${bottom + 4}px`;
    };
    const escape = (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Escape")
            hide();
    };
    return element("span", {
        class: "term", mouseenter: show, mouseleave: hide, focusin: show, focusout: hide,
    }, button, tip);
}
