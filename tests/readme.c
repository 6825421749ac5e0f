/* What README.md shows of curl is what comes out. */
#include "tests/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The text between `before` and the next `after`, in place. NULL if there is none. */
static char *between(char *text, const char *before, const char *after)
{
    char *start = strstr(text, before), *end;
    if (!start)
        return NULL;
    start += strlen(before);
    end = strstr(start, after);
    if (!end)
        return NULL;
    *end = '\0';
    return start;
}

/* `$ curl [-s] ['URL[?QUERY]'] -d 'BODY'`, and the line that it answers. */
static void check(char *command, const char *answer)
{
    char *body = strstr(command, "-d '"), *query;
    cr_assert(body, "%s", command);
    body = between(body, "-d '", "'");
    query = between(command, "/kl_div?", "'");
    struct answer ours = ask_loss(query, body);
    size_t size = ours.reply.body.size;
    cr_expect(size == strlen(answer) + 1 && strncmp(ours.reply.body.data, answer, size - 1) == 0,
              "%s: %.*s", body, (int)size, ours.reply.body.data);
    answer_free(&ours);
}

Test(readme, answers_are_those_that_come)
{
    size_t size, n = 0;
    char *text = read_file("README.md", &size), *rest = text, *command = NULL;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        line += strspn(line, " ");
        if (command) {
            check(command, line);
            n++;
        }
        command = strncmp(line, "$ curl ", 7) == 0 ? line : NULL;
    }
    cr_expect_geq(n, 5);
    free(text);
}
