/* Values of a column of a reference, of which bins are made. */
#pragma once

#include "api/monitors/model/counting.h"
#include "api/monitors/model/labels.h"
#include "api/text/date.h"

/* api_sample_pass: what a pass over a table collects of a column. */
enum api_sample_pass {
    API_SAMPLE_NUMBERS, /* the first one */
    API_SAMPLE_TEXTS, /* which texts are seen among numbers, where that decides the kind of column */
    API_SAMPLE_LABELS,
};

/* api_sample: values of a column of a reference. */
struct api_sample {
    const struct api_table *table;
    size_t column;
    enum api_sample_pass pass;
    struct api_buffer numbers; /* doubles */
    size_t n_numbers, n_texts, n_missing;
    size_t n_marks;  /* of the texts, those that are missing in a column of numbers */
    size_t n_styled; /* of the texts, numbers that have groups or a decimal comma: see api_style */
    enum api_style style;        /* plain in the first pass, unless the table knows it */
    const struct api_zone *zone; /* set by the caller: of dates without one */
    struct api_style_tally styles;
    bool tallies_all;  /* else no plain numbers after the first that only a point explains */
    bool has_code;     /* a whole number begins with 0, as in 00501 */
    size_t n_labelled; /* rows that the pass for labels has seen */
    struct api_unreadable unreadable;
    bool only_rises, only_falls; /* whole numbers, none below, or none above, the one before */
    double last;                 /* number */
    size_t n_rises,
        n_falls; /* numbers above and below the one before: distinct ones, while all are */
    struct api_date_tally dates; /* of texts */
    size_t n_dates; /* after api_sample_table: dates and times, if nine tenths are, else 0 */
    struct api_cell
        too_long; /* the first text that is too long for a label, without its bytes; size 0: none */
    size_t n_cut; /* after api_sample_bins: distinct texts that got no label */
    size_t n_chosen;  /* likewise: labels, if they were chosen in one half of the rows */
    bool is_excluded; /* set by the caller: the column is not read */
    bool is_included; /* likewise: it has bins also if it holds dates, which are numbers then */
    bool had_labels;  /* likewise: numbers become labels by the method auto */
    bool text_for_certain;         /* a string of JSON or numpy was among them */
    bool is_text;                  /* after api_sample_table */
    bool is_labelled;              /* likewise: texts, or numbers that become labels */
    bool booleans_alone;           /* all are true or false, or these texts in any case */
    struct api_label_table labels; /* of the last pass, if it is labelled */
};

/* True for a row, from 0, of the half that chooses labels: those that are chosen by their counts in a sample look too
 * frequent in it (regression to the mean), so that the other half is counted. It is the top bit of splitmix64 (Steele, Lea
 * and Flood, "Fast splittable pseudorandom number generators", 2014): no order of rows puts a label into one half alone. */
static inline bool api_row_chooses(size_t row)
{
    uint64_t z = ((uint64_t)row + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) >> 63;
}

/* Empties a sample of a column, and makes room for the numbers of all rows. */
void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column);
void api_sample_free(struct api_sample *sample);

/* Collects the values of the columns from `first` to `end` of a table, whose samples are at the same places, for bins by
 * a method; reads those of labels again. Fails once *stop is true; it may be NULL. */
bool api_sample_table(struct api_sample *samples, size_t first, size_t end, struct api_table *table,
                      enum api_method method, const atomic_bool *stop, struct api_problem *problem);

/* True if there is no value from which bins can be made. */
bool api_sample_is_empty(const struct api_sample *sample);

/* True for an id or free text: more than half of at least MANY values are distinct, and they are texts, or whole numbers
 * that only rise or only fall. Bins of them tell nothing about later values. */
bool api_sample_is_nearly_unique(const struct api_sample *sample);

/* True for texts of which none is seen often enough that a monitor could tell of a change: not 5 times among at least MANY,
 * not twice among fewer, but for four at most. */
bool api_sample_repeats_nothing(const struct api_sample *sample);

/* How many values of a text column are numbers that are written as people do: see api_text_is_formatted_number. */
size_t api_sample_formatted_numbers(const struct api_sample *sample);

/* Makes bins by the settings, and the reference's counts. Fails with labels_too_large for a long text, and for
 * labels that are too long together. */
bool api_sample_bins(struct api_sample *sample, const struct api_monitor_settings *settings,
                     struct api_bins *bins, struct api_weights *reference,
                     struct api_problem *problem);
