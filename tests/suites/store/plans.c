/* Statements of the store find their rows by an index, however many windows a monitor has. */
#include "api/store/sql.h"
#include "tests/suites/store/schema.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sqlite3 *make_schema(void)
{
    sqlite3 *sqlite;
    cr_assert_eq(sqlite3_open(":memory:", &sqlite), SQLITE_OK);
    schema_make(sqlite, schema_newest());
    return sqlite;
}

/* Expects that a step of a plan does not go through all windows or counts of a monitor, or of all. */
static void expect_step(size_t statement, const char *step)
{
    static const char *const large[] = {" kldiv_windows", " w "};
    bool is_large = false;
    for (size_t i = 0; i < COUNT(large); i++)
        is_large |= strstr(step, large[i]) != NULL;
    bool whole = strncmp(step, "SCAN", 4) == 0 || strstr(step, "(monitor=?)");
    cr_expect(!is_large || !whole, "%s\n%s", api_sql[statement], step);
}

/* Statements that order a monitor's windows by their start take as many as they are limited to. A revision
 * that is gone is looked for in what is left of it. */
static bool may_take_all(size_t statement)
{
    static const enum api_statement may[] = {API_SQL_WINDOW_LATEST, API_SQL_WINDOWS_RECENT,
                                             API_SQL_REVISIONS_PRUNE};
    for (size_t i = 0; i < COUNT(may); i++)
        if (may[i] == statement)
            return true;
    return false;
}

Test(store_plans, statements_find_windows_by_an_index)
{
    sqlite3 *sqlite = make_schema();
    for (size_t i = 0; i < API_SQL_FORMER_WINDOWS; i++) {
        sqlite3_stmt *plan = NULL;
        char *text = NULL;
        if (i == API_SQL_LOCK) /* of PostgreSQL alone */
            continue;
        cr_assert_gt(asprintf(&text, "EXPLAIN QUERY PLAN %s", api_sql[i]), 0);
        cr_assert_eq(sqlite3_prepare_v2(sqlite, text, -1, &plan, NULL), SQLITE_OK, "%s", text);
        while (sqlite3_step(plan) == SQLITE_ROW)
            if (!may_take_all(i))
                expect_step(i, (const char *)sqlite3_column_text(plan, 3));
        sqlite3_finalize(plan);
        free(text);
    }
    sqlite3_close(sqlite);
}
