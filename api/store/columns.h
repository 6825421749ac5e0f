/* The columns of tables, each with the number that it has as a parameter where a row is written. */
#pragma once

/* Columns of a window after its monitor: numbers, then texts and bytes, which may be long. */
#define API_WINDOW_NUMBERS(COLUMN)                                                                 \
    COLUMN(2, id)                                                                                  \
    COLUMN(3, revision)                                                                            \
    COLUMN(4, start_at)                                                                            \
    COLUMN(5, end_at)                                                                              \
    COLUMN(6, closed)                                                                              \
    COLUMN(7, restated)                                                                            \
    COLUMN(8, n)                                                                                   \
    COLUMN(9, kl)                                                                                  \
    COLUMN(10, kl_reverse)                                                                         \
    COLUMN(11, js)                                                                                 \
    COLUMN(12, psi)                                                                                \
    COLUMN(13, p_value)                                                                            \
    COLUMN(14, unseen_ratio)                                                                       \
    COLUMN(15, missing_ratio)                                                                      \
    COLUMN(16, verdict)                                                                            \
    COLUMN(17, state)                                                                              \
    COLUMN(18, top)                                                                                \
    COLUMN(19, top_share)                                                                          \
    COLUMN(20, pooled_windows)                                                                     \
    COLUMN(21, pooled_n)                                                                           \
    COLUMN(22, pooled_kl)                                                                          \
    COLUMN(23, pooled_p_value)                                                                     \
    COLUMN(24, pooled_noise_floor)                                                                 \
    COLUMN(25, pooled_bins)                                                                        \
    COLUMN(26, pooled_ratio)                                                                       \
    COLUMN(27, volume)                                                                             \
    COLUMN(28, moments)                                                                            \
    COLUMN(29, reference_spread)
#define API_WINDOW_LONG(COLUMN)                                                                    \
    COLUMN(30, settings)                                                                           \
    COLUMN(31, reference)                                                                          \
    COLUMN(32, counts)
#define API_WINDOW_COLUMNS(COLUMN) API_WINDOW_NUMBERS(COLUMN) API_WINDOW_LONG(COLUMN)

/* Columns of a monitor after its names: those by which lists are sorted, and which metrics show; then all others. */
#define API_MONITOR_SAMPLE(COLUMN) COLUMN(1, version) API_MONITOR_SAMPLE_REST(COLUMN)
#define API_MONITOR_SAMPLE_REST(COLUMN)                                                            \
    COLUMN(2, state)                                                                               \
    COLUMN(3, since)                                                                               \
    COLUMN(4, stale_after)                                                                         \
    COLUMN(5, last_observation)                                                                    \
    COLUMN(6, missed)                                                                              \
    COLUMN(7, warning)                                                                             \
    COLUMN(8, last_kl)                                                                             \
    COLUMN(9, critical)                                                                            \
    COLUMN(10, observations)                                                                       \
    COLUMN(11, last_js)                                                                            \
    COLUMN(12, last_psi)                                                                           \
    COLUMN(13, last_unseen_ratio)                                                                  \
    COLUMN(14, last_missing_ratio)                                                                 \
    COLUMN(15, last_n)                                                                             \
    COLUMN(16, last_end)                                                                           \
    COLUMN(17, last_volume_ratio)
#define API_MONITOR_OTHERS(COLUMN)                                                                 \
    COLUMN(18, revision)                                                                           \
    COLUMN(19, changed)                                                                            \
    COLUMN(20, last_window)                                                                        \
    COLUMN(21, severity_since)                                                                     \
    COLUMN(22, newest_end)                                                                         \
    COLUMN(23, pool_from)                                                                          \
    COLUMN(24, rose_at)                                                                            \
    COLUMN(25, rose_window)                                                                        \
    COLUMN(26, sentence)                                                                           \
    COLUMN(27, sentence_of)                                                                        \
    COLUMN(28, stale_told)                                                                         \
    COLUMN(29, told)                                                                               \
    COLUMN(30, next_close)                                                                         \
    COLUMN(31, last_id)                                                                            \
    COLUMN(32, last_start)                                                                         \
    COLUMN(33, last_restated)                                                                      \
    COLUMN(34, last_noise_floor)                                                                   \
    COLUMN(35, last_top)                                                                           \
    COLUMN(36, last_top_share)                                                                     \
    COLUMN(37, n_recent)                                                                           \
    COLUMN(38, recent)                                                                             \
    COLUMN(39, significance)                                                                       \
    COLUMN(40, began)                                                                              \
    COLUMN(41, last_top_names)
#define API_MONITOR_COLUMNS(COLUMN) API_MONITOR_SAMPLE(COLUMN) API_MONITOR_OTHERS(COLUMN)

/* Texts of SQL: ", name", ", $number", ", name = $number", ", name = excluded.name", ", NULL". */
#define API_COLUMN_NAME(number, name) ", " #name
#define API_COLUMN_PARAMETER(number, name) ", $" #number
#define API_COLUMN_SET(number, name) ", " #name " = $" #number
#define API_COLUMN_EXCLUDED(number, name) ", " #name " = excluded." #name
#define API_COLUMN_NULL(number, name) ", NULL"
