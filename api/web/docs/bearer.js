/* The token in calls of Swagger UI: the dashboard's, kept in this tab. */
import { root } from "../dashboard/api.js";
import { token } from "../dashboard/token.js";

/**
 * @typedef {{ url: string, headers: Record<string, string> }} Call
 */

/**
 * Adds the token to a call of this server, and of no other.
 *
 * @param {Call} call
 */
export function withToken(call) {
    const bearer = token();
    if (bearer && new URL(call.url, root).origin === root.origin)
        call.headers["Authorization"] = `Bearer ${bearer}`;
    return call;
}
