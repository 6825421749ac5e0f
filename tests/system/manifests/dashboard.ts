// Types of Grafana's own generator, put together for the panels that the dashboard has. A JSON schema is made of
// `Checked`; there Grafana's types leave panels' options open, as they are those of any plugin.
import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from "@grafana/grafana-foundation-sdk/dashboard";
import type { Dataquery } from "@grafana/grafana-foundation-sdk/prometheus";
import type * as stat from "@grafana/grafana-foundation-sdk/stat";
import type * as statetimeline from "@grafana/grafana-foundation-sdk/statetimeline";
import type * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";

interface PanelOf<Type extends string, Options, Custom> extends Omit<Panel, "type" | "targets" | "options" | "fieldConfig"> {
    type: Type;
    title: string;
    description: string;
    targets: Omit<Dataquery, "_implementsDataqueryVariant">[];
    options: Options;
    fieldConfig: Omit<FieldConfigSource, "defaults"> & {
        defaults: Omit<FieldConfig, "custom"> & { custom?: Custom };
    };
}

type AnyPanel =
    | PanelOf<"timeseries", timeseries.Options, timeseries.FieldConfig>
    | PanelOf<"stat", stat.Options, undefined>
    | PanelOf<"state-timeline", statetimeline.Options, statetimeline.FieldConfig>;

export interface Checked extends Omit<Dashboard, "panels"> {
    panels: (RowPanel | AnyPanel)[];
}
