/* READMEs: the quoted answers of curl are real, and each source is named in its room's README. */
#include "tests/monitors_support.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Extracts the text between `before` and the next character of `after`, in place. NULL if
 * `before` is absent. */
static char *between(char *text, const char *before, const char *after)
{
    char *start = strstr(text, before);
    if (!start)
        return NULL;
    start += strlen(before);
    start[strcspn(start, after)] = '\0';
    return start;
}

/* Runs `$ curl [-s] [--unix-socket PATH] URL[?QUERY] [-d 'BODY']` and compares the answer with the next line. */
static void check(const struct api_service *service, char *command, const char *answer)
{
    char *data = strstr(command, " -d "), *body = NULL, *query = NULL;
    if (data) {
        *data = '\0';
        body = between(data + 1, "-d '", "'");
    }
    char *path = between(
        command, strstr(command, "localhost") ? "http://localhost" : "http://127.0.0.1:8080", "' ");
    cr_assert(path && *path == '/', "%s", command);
    query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    const struct question question = {
        .method = body ? "POST" : "GET", .path = path, .query = query};
    struct answer ours = ask_question(&question, service, body, body ? strlen(body) : 0);
    size_t size = ours.reply.body.size;
    const char *text = ours.reply.body.data;
    size -= size > 0 && text[size - 1] == '\n';
    cr_expect(size == strlen(answer) && strncmp(text, answer, size) == 0, "%s %s: %.*s", path, body,
              (int)size, text);
    answer_free(&ours);
}

/* Commands about monitors are run by tests/journey. */
static size_t check_file(const struct api_service *service, const char *file)
{
    size_t size, n = 0;
    char *text = read_file(file, &size), *rest = text, *command = NULL;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        line += strspn(line, " ");
        if (command) {
            check(service, command, line);
            n++;
        }
        command = strncmp(line, "$ curl ", 7) == 0 && !strstr(line, "/monitors") ? line : NULL;
    }
    free(text);
    return n;
}

Test(readme, answers_are_those_that_come)
{
    struct api_service service = monitors_new(10);
    cr_expect_geq(check_file(&service, "README.md"), 4);
    cr_expect_geq(check_file(&service, "api/README.md"), 7);
    monitors_end(&service);
}

/* room: a pattern of files, and the README that links each as "](NAME)", relative to its own
 * folder. */
static const struct room {
    const char *files, *map;
} rooms[] = {
    {"api/*.c", "api/README.md"},
    {"api/*/*.c", "api/README.md"},
    {"api/web/*/*.js", "api/web/README.md"},
    {"server/*.c", "server/README.md"},
    {"tests/*.c", "tests/README.md"},
    {"tests/bench/*.[cp]*", "tests/bench/README.md"},
    {"tests/page/*.mjs", "tests/page/README.md"},
};

Test(readme, maps_name_every_source)
{
    for (size_t i = 0; i < COUNT(rooms); i++) {
        size_t size, folder = (size_t)(strrchr(rooms[i].map, '/') + 1 - rooms[i].map);
        char *map = read_file(rooms[i].map, &size), link[120];
        glob_t found;
        cr_assert_eq(glob(rooms[i].files, 0, NULL, &found), 0, "%s", rooms[i].files);
        for (size_t j = 0; j < found.gl_pathc; j++) {
            snprintf(link, sizeof link, "](%s)", found.gl_pathv[j] + folder);
            cr_expect(strstr(map, link), "%s does not name %s", rooms[i].map, found.gl_pathv[j]);
        }
        globfree(&found);
        free(map);
    }
}

/* Maps link to files that exist; a link with a colon leads elsewhere. */
Test(readme, links_of_maps_lead_somewhere)
{
    for (size_t i = 0; i < COUNT(rooms); i++) {
        size_t size, folder = (size_t)(strrchr(rooms[i].map, '/') + 1 - rooms[i].map);
        char *map = read_file(rooms[i].map, &size), path[200];
        for (char *link = strstr(map, "]("); link; link = strstr(link, "](")) {
            link += 2;
            int length = (int)strcspn(link, ")#");
            snprintf(path, sizeof path, "%.*s%.*s", (int)folder, rooms[i].map, length, link);
            cr_expect(memchr(link, ':', (size_t)length) || access(path, F_OK) == 0, "%s: %s",
                      rooms[i].map, path);
        }
        free(map);
    }
}
