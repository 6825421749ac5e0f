#include "tests/suites/store/schema.h"

#include "api/store/sql.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

int64_t schema_newest(void)
{
    int64_t n = 0;
    while (api_migrations[n].text)
        n++;
    return n;
}

/* With the words of SQLite. */
static void migrate(sqlite3 *sqlite, const char *migration)
{
    static const char mark[] = "{clustered}", words[] = " WITHOUT ROWID";
    struct api_buffer text = {0};
    for (const char *next; (next = strstr(migration, mark)); migration = next + strlen(mark)) {
        api_append(&text, migration, (size_t)(next - migration));
        api_append_text(&text, words);
    }
    api_append(&text, migration, strlen(migration) + 1);
    cr_assert_eq(sqlite3_exec(sqlite, text.data, NULL, NULL, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(sqlite));
    api_buffer_free(&text);
}

void schema_make(sqlite3 *sqlite, int64_t version)
{
    char set[100];
    for (int64_t i = 0; i < version; i++) {
        migrate(sqlite, api_migrations[i].text);
        if (api_migrations[i].end)
            migrate(sqlite, api_migrations[i].end);
    }
    snprintf(set, sizeof set, "UPDATE kldiv_meta SET value = %lld WHERE name = 'schema'",
             (long long)version);
    cr_assert_eq(sqlite3_exec(sqlite, set, NULL, NULL, NULL), SQLITE_OK);
}
