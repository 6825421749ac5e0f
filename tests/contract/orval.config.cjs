// A client by fetch, for the server at KLDIV_URL. Of several media types orval would send JSON
// without a Content-Type, which fetch then calls text/plain: it is told to know JSON alone.
module.exports = {
    kldiv: {
        input: "../../api/openapi.json",
        output: {
            target: "generated/orval.ts",
            client: "fetch",
            baseUrl: process.env.KLDIV_URL,
            override: { contentType: { include: ["application/json", "application/problem+json"] } },
        },
    },
};
