/* Answers of the API, as far as the pages read them; openapi.json has the whole. Null stands for
 * infinity where `infinite` is true, and in `recent`. */

export type State = "critical" | "warning" | "insufficient_data" | "ok";

export interface Thresholds {
    warning: number;
    critical: number;
    significance: number;
}

export interface Window {
    id: number;
    start: string;
    end: string;
    closed: boolean;
    restated: boolean;
}

/** A monitor of GET /monitors. */
export interface Listed {
    group: string;
    name: string;
    state: State;
    kl: number | null;
    infinite: boolean;
    noise_floor: number | null;
    thresholds: Thresholds;
    n: number | null;
    window: Window | null;
    last_observation: string | null;
    recent: (number | null)[];
    since: string | null;
    severity_since: string | null;
    began: string | null;
    stale: boolean;
    muted?: Muted | null;
    top: string[];
    top_share: number | null;
    sentence: string;
}

export interface Muted {
    until: string | null;
    reason: string;
    by?: string;
    scope?: "monitor" | "group";
}

/** What settings would have done, of a PATCH that stores nothing. */
export interface Preview {
    from: string;
    to: string;
    windows: number;
    alarms: number;
    changes: Change[];
}

/** A group of GET /groups, and of GET /groups/{group} with what follows `muted`. */
export interface Group {
    group: string;
    segment_of: string | null;
    state: State;
    monitors: number;
    states: Record<State, number>;
    stale: number;
    stale_states: Record<State, number>;
    share: number | null;
    since: string | null;
    last_observation: string | null;
    muted: Muted | null;
    drifting?: Drifting[];
    silent?: { name: string; last_observation: string | null }[];
    absent?: { name: string; last_observation: string | null }[];
    new?: string[];
    history?: { start: string; end: string; drifting: number; monitors: number }[];
}

/** A monitor of a group that is not ok. */
export interface Drifting {
    name: string;
    state: State;
    since: string | null;
    sentence: string;
    muted: Muted | null;
}

export interface Bin {
    name: string;
    kind: "underflow" | "interval" | "overflow" | "label" | "other" | "missing";
    lower: number | null;
    upper: number | null;
    reference: number;
    current: number;
    contribution: number | null;
    share: number | null;
}

/** The windows that decided a verdict. */
export interface Pooled {
    windows: number;
    n: number;
    kl: number | null;
    p_value: number;
    noise_floor: number | null;
    bins?: number | null;
    ratio?: { bin: string; reference: number; current: number; ratio: number | null; p_value: number } | null;
}

/** A number of rows beside what is usual. */
export interface Volume {
    usual: number;
    windows: number;
    ratio: number;
    p_value: number;
    level: string;
}

/** A window with its scores; `bins` are there only if one window was asked for. */
export interface Result {
    window: Window;
    revision: number;
    pooled?: Pooled | null;
    counts?: number[] | null;
    unseen?: { label: string; count: number }[];
    sentence?: string;
    n: number;
    n_reference: number | null;
    mean?: number | null;
    sd?: number | null;
    mean_reference?: number | null;
    sd_reference?: number | null;
    verdict: State;
    state: State;
    kl: number | null;
    infinite: boolean;
    kl_reverse: number | null;
    js: number | null;
    psi: number | null;
    g_test: {
        statistic: number | null;
        df: number;
        p_value: number;
        critical_kl: number;
    } | null;
    noise_floor: number | null;
    unseen_ratio: number | null;
    missing_ratio: number | null;
    volume?: Volume | null;
    top: string[];
    thresholds: Thresholds;
    pseudocount: number;
    bins?: Bin[];
}

/** Two periods beside each other; against the reference if `against` is null. */
export interface Comparison extends Result {
    windows: number;
    against: { from: string; to: string; windows: number } | null;
}

/** An event of the API: a change of state by a window; or the begin or the end of a silence, without one. */
export interface Event {
    group?: string;
    name?: string;
    at: string;
    from: State | "stale";
    to: State | "stale";
    kl: number | null;
    infinite: boolean;
    window: number | null;
}

export interface Change extends Event {
    from: State;
    to: State;
    window: number;
}

export interface Config {
    group: string;
    name: string;
    state: State;
    revision: number;
    bins: { edges?: number[]; labels?: string[]; presence?: true };
    reference?: {
        counts?: number[];
        underflow?: number;
        overflow?: number;
        other?: number;
        missing?: number;
        choosing?: number;
    };
    window: string | { seconds?: number; grace?: number; count?: number };
    compare: string | { previous: number; period?: number | "month" };
    pool: number;
    ratio: { warning: number; critical: number } | null;
    volume: { warning: number; critical: number } | null;
    since: string | null;
    severity_since: string | null;
    began: string | null;
    stale: boolean;
    stale_after: number | null;
    muted?: Muted | null;
    pseudocount: number;
    min_observations: number | null;
    thresholds: Thresholds;
    fire_after: number;
    clear_after: number;
    timezone: string;
    retention_days: number;
    annotations: object;
}

/** A note on a monitor, or on a group, where `name` is null; of GET …/notes. */
export interface Note {
    group: string;
    name: string | null;
    id: number;
    from: string;
    to: string;
    text: string;
    created: string;
}

/** Where changes of state are told, of GET /notifications. */
export interface Receiver {
    name: string;
    format: string;
    pending: number;
    last_success: string | null;
    failing_since: string | null;
    failure: string | null;
}
