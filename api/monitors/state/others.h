/* Counts of other servers. A server that shares its store has monitors and open windows in memory; of changes that only count
 * values it is not told. Transactions that write have a number in a row. When others have written since the last one that a server
 * knows, an epoch begins: a transaction reads again what it touches (api_pending_of), and the numbers of all monitors are learned by
 * the second. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Notes the number of the last transaction, at the beginning of one; gives it the next one, if it has written; and notes whether it
 * was committed. */
void api_others_note(struct api_monitors *monitors, int64_t written);
bool api_others_write(struct api_monitors *monitors);
void api_others_end(struct api_monitors *monitors, bool is_committed);

/* Reads the numbers of all monitors into the registry, unless they are those of this epoch, or were read too short a while ago. */
bool api_others_learn(struct api_monitors *monitors);
