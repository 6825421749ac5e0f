// A client by fetch, for the server at KLDIV_URL.
module.exports = {
    kldiv: {
        input: "../../../api/openapi.json",
        output: { target: "generated/orval.ts", client: "fetch", baseUrl: process.env.KLDIV_URL },
    },
};
