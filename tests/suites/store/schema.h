/* Schemas of SQLite as the migrations make them. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* Number of migrations, which is the newest version. */
int64_t schema_newest(void);

/* Runs the first migrations on an empty database, and leaves it a store of that version, by a program that knew no
 * other numbers than that. */
void schema_make(sqlite3 *sqlite, int64_t version);
