/* Verdicts of windows, and the state of a monitor that they add up to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* api_verdict: of a window, or the state of a monitor; the greater, the worse. The store holds their
 * numbers. */
enum api_verdict { API_INSUFFICIENT, API_OK, API_WARNING, API_CRITICAL };
#define API_VERDICTS 4

extern const char *const api_verdict_names[API_VERDICTS];

/* The verdict that the store holds as a number; insufficient for one that a damaged file holds. */
enum api_verdict api_verdict_of(int64_t number);

/* State after a window, from the state before it and the verdicts of up to `n` windows in order, this
 * one last, none of them insufficient. The first window makes the state ok, or worse at once if
 * fire_after is 1; it rises to what each of the last fire_after windows reached, and falls to what
 * none of the last clear_after exceeded. */
enum api_verdict api_state_after(enum api_verdict before, const enum api_verdict *verdicts,
                                 size_t n, size_t fire_after, size_t clear_after);
