/* Settings of the page, kept in the browser: theme and time zone; and the bar that has them. */
import { byId, element } from "./dom.js";

const THEMES = ["auto", "light", "dark"];
const ZONES = ["local", "utc"];

/**
 * A choice that stays; storage may be refused to the page.
 *
 * @param {string} name
 * @param {string[]} values the first is the default
 */
function load(name, values) {
    try {
        const value = localStorage.getItem(`kldiv.${name}`);
        return value && values.includes(value) ? value : values[0];
    } catch {
        return values[0];
    }
}

/**
 * @param {string} name
 * @param {string} value
 */
function store(name, value) {
    try {
        localStorage.setItem(`kldiv.${name}`, value);
    } catch {
        /* The choice holds until the page is left. */
    }
}

const chosen = { theme: load("theme", THEMES), zone: load("zone", ZONES) };

export function zone() {
    return chosen.zone;
}

function applyTheme() {
    document.documentElement.dataset.theme = chosen.theme;
}

/**
 * @param {string} label
 * @param {string[]} words
 * @param {string[]} values
 * @param {string} value
 * @param {(value: string) => void} choose
 */
function selection(label, words, values, value, choose) {
    const select = element("select", { "aria-label": label, title: label });
    values.forEach((each, i) =>
        select.append(element("option", { value: each, selected: each === value }, words[i])));
    select.addEventListener("change", () => choose(select.value));
    return select;
}

/** Shows the choices in the bar; a change of theme or zone is told by the event "settings". */
export function showSettings() {
    const changed = () => document.dispatchEvent(new Event("settings"));
    applyTheme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
    const print = (/** @type {string} */ theme) => {
        document.documentElement.dataset.theme = theme;
        changed();
    };
    addEventListener("beforeprint", () => print("light"));
    addEventListener("afterprint", () => print(chosen.theme));
    byId("settings").append(
        selection("Time zone", ["Local time", "UTC"], ZONES, chosen.zone, (value) => {
            chosen.zone = value;
            store("zone", value);
            changed();
        }),
        selection("Theme", ["Auto", "Light", "Dark"], THEMES, chosen.theme, (value) => {
            chosen.theme = value;
            store("theme", value);
            applyTheme();
            changed();
        }),
    );
}
