/* Answers of the API, as far as the pages read them. openapi.json has the whole. */

/**
 * @typedef {import("./states.js").State} State
 *
 * @typedef {{ warning: number, critical: number, significance: number }} Thresholds
 *
 * @typedef {{ id: number, start: string, end: string, closed: boolean, restated: boolean }} Window
 *
 * Listed: a monitor of GET /monitors. Null stands for infinity in `recent`, and in `kl` if `infinite`.
 * @typedef {{
 *     group: string, name: string, state: State, kl: number | null, infinite: boolean,
 *     thresholds: Thresholds, n: number | null, window: Window | null,
 *     last_observation: string | null, recent: (number | null)[],
 *     since: string | null, top: string[], top_share: number | null
 * }} Listed
 *
 * @typedef {{
 *     name: string, kind: string, lower: number | null, upper: number | null,
 *     reference: number, current: number, contribution: number | null, share: number | null
 * }} Bin
 *
 * Result: a window with its scores; `bins` only if one was asked for.
 * @typedef {{
 *     window: Window, revision: number, n: number, n_reference: number | null, verdict: State,
 *     state: State, kl: number | null, infinite: boolean, kl_reverse: number | null,
 *     js: number | null, psi: number | null,
 *     g_test: { statistic: number | null, df: number, p_value: number, critical_kl: number } | null,
 *     noise_floor: number | null, unseen_ratio: number | null, missing_ratio: number | null,
 *     top: string[], thresholds: Thresholds, pseudocount: number, bins?: Bin[]
 * }} Result
 *
 * @typedef {{ at: string, from: State, to: State, kl: number | null, infinite: boolean,
 *             window: number }} Change
 *
 * @typedef {{
 *     group: string, name: string, state: State, revision: number,
 *     bins: { edges?: number[], labels?: string[] },
 *     reference?: { counts?: number[], underflow?: number, overflow?: number, other?: number,
 *                   missing?: number },
 *     window: string | { seconds?: number, grace?: number, count?: number },
 *     compare: string | { previous: number }, pseudocount: number,
 *     min_observations: number | null, thresholds: Thresholds, fire_after: number,
 *     clear_after: number, retention_days: number, annotations: object
 * }} Config
 */

export {};
