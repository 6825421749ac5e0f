/* Swagger UI with the OpenAPI document of this server. */
import { request, root } from "../dashboard/api.js";
import { byId, element, fill } from "../dashboard/dom.js";
import { token } from "../dashboard/token.js";
import { withToken } from "./bearer.js";
import { prepare } from "./document.js";
import { plugin } from "./plugin.js";

const address = new URL("openapi.json", root);

/** The tag whose operations are folded at first: the same loss by another protocol. */
const FOLDED = "inference";

/** Opens Swagger UI's dialog for a token, with the focus in it. */
function authorize(/** @type {any} */ ui) {
    ui.authActions.showDefinitions(ui.authSelectors.definitionsToAuthorize());
    requestAnimationFrame(() => {
        const input = document.querySelector(".dialog-ux input");
        if (input instanceof HTMLElement)
            input.focus();
    });
}

/** @param {any} openapi */
function show(openapi) {
    const { SwaggerUIBundle } = /** @type {any} */ (window);
    const ui = SwaggerUIBundle({
        spec: prepare(openapi, root),
        domNode: byId("swagger"),
        plugins: [() => plugin],
        validatorUrl: null,
        deepLinking: true,
        filter: true,
        requestSnippetsEnabled: true,
        requestSnippets: { generators: { curl_bash: { title: "curl", syntax: "bash" },
                                         python: { title: "Python", syntax: "python" },
                                         javascript: { title: "JavaScript", syntax: "javascript" } } },
        displayRequestDuration: true,
        defaultModelsExpandDepth: 0,
        requestInterceptor: withToken,
        responseInterceptor: (/** @type {{ status: number }} */ response) => {
            if (response.status === 401)
                authorize(ui);
            return response;
        },
        onComplete: () => {
            ui.specActions.updateUrl(address.href);
            if (!location.hash.startsWith(`#/${FOLDED}`))
                ui.layoutActions.show(["operations-tag", FOLDED], false);
            if (token())
                ui.preauthorizeApiKey("bearer", token());
        },
    });
}

async function start() {
    const status = byId("status");
    fill(status, element("p", {}, "Loading the OpenAPI document …"));
    try {
        show(await (await request("GET", address)).json());
        byId("before").remove(); // Swagger UI has a main of its own
    } catch (error) {
        const detail = error instanceof Error ? error.message : String(error);
        fill(
            status,
            element("p", {}, `The OpenAPI document could not be loaded: ${detail}.`),
            element("button", { type: "button", click: () => location.reload() }, "Retry"),
        );
    }
}

start();
