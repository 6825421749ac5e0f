/* What other servers count. A server that shares its store has monitors and open windows in memory; of changes that only count
 * values they are not told, but by the number of the server that wrote last: if that is another, a transaction reads again what it
 * touches (api_pending_of), and the numbers of all are learned by the second. A server takes a new number with each connection, which no other ever had. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Notes which server wrote last, at the beginning of a transaction, with which an epoch begins if it was another; and that it was this
 * one, before the end of one. */
void api_others_note(struct api_monitors *monitors, int64_t writer);
bool api_others_write(struct api_monitors *monitors);

/* Reads the numbers of all monitors, unless that was too short a while ago; the registry has them. */
bool api_others_learn(struct api_monitors *monitors);
