/* Words that say what they mean, on hover and on focus. */
import { element, freshId } from "./dom.js";

/**
 * @param {string} name
 * @param {string} means
 */
export function term(name, means) {
    const id = freshId();
    return element("span", { class: "term" },
        element("button", { type: "button", "aria-describedby": id }, name),
        element("span", { role: "tooltip", id }, means));
}
