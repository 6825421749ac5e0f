/* The dashboard: shows the view that the address names. */
import { byId, fill } from "./dom.js";
import { overview } from "./overview.js";
import { showSettings } from "./settings.js";

/**
 * A view fills `main` and returns a function that ends it. Its state is in the address, so that a
 * reload, a bookmark and the back button find it again.
 *
 * @typedef {(main: HTMLElement, query: URLSearchParams) => () => void} Show
 */

/**
 * Views other than the overview are loaded when they are first wanted.
 *
 * @param {URLSearchParams} query
 * @returns {Promise<Show>}
 */
async function viewOf(query) {
    if (query.has("monitor"))
        return (await import("./monitor.js")).monitor;
    if (query.has("add"))
        return (await import("./add.js")).add;
    return overview;
}

let leave = () => {};
let shown = "";
let calls = 0;

async function show() {
    const mine = ++calls;
    const query = new URLSearchParams(location.search);
    const main = byId("main");
    const identity = `${query.get("group")} ${query.get("monitor")} ${query.has("add")}`;
    const view = await viewOf(query);
    if (mine !== calls) /* the address has changed since */
        return;
    leave();
    fill(main);
    leave = view(main, query);
    if (shown && shown !== identity) {
        main.focus({ preventScroll: true });
        scrollTo(0, 0);
    }
    shown = identity;
}

/**
 * Follows links between views without loading the page again.
 *
 * @param {MouseEvent} event
 */
function follow(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!link || !plain || link.origin !== location.origin || link.hash || link.download ||
        link.pathname !== location.pathname)
        return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    show();
}

showSettings();
document.addEventListener("click", follow);
document.addEventListener("settings", show);
addEventListener("popstate", show);
show();
