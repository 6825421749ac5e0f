/* Values of a column of a reference, of which bins are made. */
#pragma once

#include "api/monitors/model/counting.h"

/* api_sample: values of a column of a reference, in a first pass. Text columns need a second
 * one, for their labels. */
struct api_label_table;
struct api_sample {
    const struct api_table *table;
    size_t column;
    struct api_buffer numbers; /* doubles */
    size_t n_numbers, n_texts, n_missing;
    struct api_unreadable unreadable;
    bool text_for_certain;          /* a string of JSON or numpy was among them */
    bool is_text;                   /* after api_sample_decide */
    bool truths_alone;              /* all are true or false */
    struct api_label_table *labels; /* of the second pass */
};

/* Empties a sample of a column, and makes room for the numbers of all rows. */
void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column);
void api_sample_free(struct api_sample *sample);

/* Collects a value, in the second pass its label, which fails with labels_too_large for a long text. */
bool api_sample_cell(struct api_sample *sample, const struct api_cell *cell,
                     struct api_problem *problem);
bool api_sample_numbers(struct api_sample *sample, enum kl_dtype dtype, const void *values,
                        size_t n, struct api_problem *problem);

/* Decides after the first pass; true if a second one is needed, which collects labels. A column is
 * numeric if at least half of its values that are not missing are numbers, and none is a string but for
 * those that stand for infinite numbers. */
bool api_sample_decide(struct api_sample *sample);

/* True if there is no value from which bins can be made. */
bool api_sample_is_empty(const struct api_sample *sample);

/* Makes bins by the settings, and the reference's counts. Fails with labels_too_large for labels that are
 * too long together. */
bool api_sample_bins(struct api_sample *sample, const struct api_monitor_settings *settings,
                     struct api_bins *bins, struct api_weights *reference,
                     struct api_problem *problem);
