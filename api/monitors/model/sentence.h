/* Because of what a window drifts, as one sentence: "“NG”, never seen before, is 13 %; missing: 0 % → 12 %". */
#pragma once

#include "api/monitors/model/unseen.h"
#include "api/monitors/model/window.h"

/* API_SENTENCE: bytes of a sentence at most, with the NUL. */
enum { API_SENTENCE = 320 };

/* Writes the sentence: how many windows before it speaks of, if the scores are of a sum of `windows`, else 1; mean and standard deviation, where both sides are known; the cell that was judged by its ratio; and,
 * unless that decided alone, the bins that contribute most to the divergence: the largest, and up to two more that make
 * up a twentieth each; of an infinite divergence those that are infinite. "" if there is none. Labels are quoted, cut
 * at 40 bytes where a character ends, and have blanks for control characters. A pure function. */
void api_sentence_write(const struct api_bins *bins, const struct api_scores *scores,
                        const struct kl_drift_bin *of_bins, const struct api_unseen *unseen,
                        size_t windows, char to[API_SENTENCE]);
