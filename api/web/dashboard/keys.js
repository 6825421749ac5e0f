/* Keys that walk through a chart. */

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
