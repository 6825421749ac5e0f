/* READMEs: the maps name every folder, and what is named exists. Their commands are run by tests/system/journey. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* maps: sources, and the page that names the folder they are in, as `FOLDER/` or [FOLDER/], from the room on;
 * programs of bench/ and suites of page/ are linked one by one. */
static const struct map {
    const char *files, *page;
} maps[] = {
    {"lib/*/*.c", "ARCHITECTURE.md"},
    {"api/*/*.c", "ARCHITECTURE.md"},
    {"api/*/*/*.[cj]*", "ARCHITECTURE.md"},
    {"tests/*/*/*.[cpms]*", "tests/README.md"},
};
static const struct map linked[] = {
    {"tests/tools/bench/*.[cp]*", "tests/tools/bench/README.md"},
    {"tests/system/page/*.mjs", "tests/system/page/README.md"},
};

static void check_folder(const char *page, const char *text, const char *file)
{
    char folder[120], code[124], link[124];
    const char *room = strchr(file, '/') + 1;
    if (strstr(file, "/node_modules/"))
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(file, '/') + 1 - room), room);
    snprintf(code, sizeof code, "`%s`", folder);
    snprintf(link, sizeof link, "[%s]", folder);
    cr_expect(strstr(text, code) || strstr(text, link), "%s names no %s", page, folder);
}

static void check_link(const char *page, const char *text, const char *file)
{
    char link[120];
    snprintf(link, sizeof link, "](%s)", strrchr(file, '/') + 1);
    cr_expect(strstr(text, link), "%s does not link %s", page, file);
}

static void on_maps(const struct map *list, size_t n,
                    void (*check_file_of)(const char *page, const char *text, const char *file))
{
    for (size_t i = 0; i < n; i++) {
        size_t size;
        char *text = read_file(list[i].page, &size);
        glob_t found;
        cr_assert_eq(glob(list[i].files, 0, NULL, &found), 0, "%s", list[i].files);
        for (size_t j = 0; j < found.gl_pathc; j++)
            check_file_of(list[i].page, text, found.gl_pathv[j]);
        globfree(&found);
        free(text);
    }
}

Test(readme, maps_name_every_folder)
{
    on_maps(maps, COUNT(maps), check_folder);
    on_maps(linked, COUNT(linked), check_link);
}

/* Expects an option's default in the help, [1000], to begin the last column of the operators' row of it. */
static void check_limit(const char *row, const char *help)
{
    char name[40], flag[48], value[20];
    cr_assert_eq(sscanf(row, "| `%39[^`]`", name), 1);
    snprintf(flag, sizeof flag, "\n    %s ", name);
    const char *line = strstr(help, flag);
    cr_assert(line, "%s is no option", name);
    const char *open = memrchr(line + 1, '[', strcspn(line + 1, "\n"));
    cr_assert(open && sscanf(open, "[%19[^]]]", value) == 1, "%s has no default", name);
    const char *end = row + strcspn(row, "\n"), *cell = end - 2;
    while (*cell != '|')
        cell--;
    size_t n = strlen(value);
    cr_expect(strncmp(cell + 2, value, n) == 0 && !isalnum((unsigned char)cell[2 + n]),
              "%s: the page says %.*s, the help %s", name, (int)(end - cell), cell, value);
}

Test(readme, limits_of_operators_are_those_of_the_server)
{
    size_t size, n = 0;
    char *page = read_file("docker/README.md", &size), *help = read_file("server/README.md", &size);
    for (const char *row = strstr(page, "\n| `--max-body`"); row && row[1] == '|';
         row = strchr(row + 1, '\n'), n++)
        check_limit(row + 1, help);
    cr_expect_geq(n, 10);
    for (const char *option = help; (option = strstr(option, "\n    --max-")); option++) {
        char row[40];
        snprintf(row, sizeof row, "\n| `%.*s`", (int)strcspn(option + 5, " "), option + 5);
        cr_expect(strstr(page, row), "docker/README.md has no%s", row);
    }
    free(page);
    free(help);
}

/* pages: every page of the project. */
static const char *const pages[] = {"*.md", "*/*.md", "*/*/*.md", "{api,tests}/*/[!n]*/*.md"};

static void on_pages(void (*check_page)(const char *page, const char *text))
{
    for (size_t i = 0; i < COUNT(pages); i++) {
        size_t size;
        glob_t found;
        cr_assert_eq(glob(pages[i], GLOB_BRACE, NULL, &found), 0, "%s", pages[i]);
        for (size_t j = 0; j < found.gl_pathc; j++) {
            char *text = read_file(found.gl_pathv[j], &size);
            check_page(found.gl_pathv[j], text);
            free(text);
        }
        globfree(&found);
    }
}

/* Writes a heading as its renderers make an anchor of it: "A, `b`" is a-b. */
static void write_anchor(char *to, size_t room, const char *heading)
{
    size_t used = 0;
    for (; *heading && *heading != '\n' && used + 1 < room; heading++)
        if (*heading == ' ' || *heading == '-')
            to[used++] = '-';
        else if (isalnum((unsigned char)*heading) || *heading == '_')
            to[used++] = (char)tolower((unsigned char)*heading);
    to[used] = '\0';
}

static bool has_anchor(const char *page, const char *anchor)
{
    size_t size;
    char *text = read_file(page, &size), own[120];
    bool found = false;
    for (const char *line = text; line && !found; line = strstr(line, "\n#")) {
        line += strspn(line, "\n#");
        write_anchor(own, sizeof own, line + 1);
        found = strcmp(own, anchor) == 0;
    }
    free(text);
    return found;
}

/* A link with a colon leads elsewhere. */
static void check_links(const char *page, const char *text)
{
    const char *slash = strrchr(page, '/');
    int folder = slash ? (int)(slash + 1 - page) : 0;
    for (const char *link = strstr(text, "]("); link; link = strstr(link, "](")) {
        char path[300], anchor[120] = "";
        link += 2;
        int length = (int)strcspn(link, ")#");
        if (memchr(link, ':', (size_t)length))
            continue;
        snprintf(path, sizeof path, "%.*s%.*s", length ? folder : (int)strlen(page), page, length,
                 link);
        cr_expect(access(path, F_OK) == 0, "%s: %s", page, path);
        if (link[length] == '#' && access(path, F_OK) == 0) {
            snprintf(anchor, sizeof anchor, "%.*s", (int)strcspn(link + length + 1, ")"),
                     link + length + 1);
            cr_expect(has_anchor(path, anchor), "%s: %s has no #%s", page, path, anchor);
        }
    }
}

Test(readme, links_lead_somewhere) { on_pages(check_links); }

/* Files that are named as `lib/a/b.c`; capitals stand for a name, stars for many, and hidden ones are the reader's. */
static void check_files(const char *page, const char *text)
{
    static const char *const folders[] = {"lib/", "api/", "server/", "tests/", "docker/"};
    for (const char *name = strchr(text, '`'); name; name = strchr(name + 1, '`'))
        for (size_t i = 0; i < COUNT(folders); i++) {
            char path[200];
            size_t length = strcspn(name + 1, "` \n");
            if (strncmp(name + 1, folders[i], strlen(folders[i])) != 0 || name[length + 1] != '`')
                continue;
            snprintf(path, sizeof path, "%.*s", (int)length, name + 1);
            cr_expect(strstr(path, "/.") || strpbrk(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZ*") ||
                          access(path, F_OK) == 0,
                      "%s: %s", page, path);
        }
}

Test(readme, files_that_are_named_exist) { on_pages(check_files); }

/* True if a rule makes the target at the start of a text. */
static bool is_target(const char *name, size_t length)
{
    char rule[80];
    glob_t found;
    bool is_made = false;
    snprintf(rule, sizeof rule, "\n%.*s:", (int)length, name);
    cr_assert_eq(glob("{Makefile,*/*.mk,*/*/*.mk}", GLOB_BRACE, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && !is_made; i++) {
        size_t size;
        char *text = read_file(found.gl_pathv[i], &size);
        is_made = strstr(text, rule) != NULL;
        free(text);
    }
    globfree(&found);
    return is_made;
}

/* Targets that are named as `make TARGET`. */
static void check_targets(const char *page, const char *text)
{
    for (const char *at = strstr(text, "`make "); at; at = strstr(at + 1, "`make ")) {
        size_t length = strspn(at + 6, "abcdefghijklmnopqrstuvwxyz-");
        cr_expect(length == 0 || is_target(at + 6, length), "%s: there is no target %.*s", page,
                  (int)length, at + 6);
    }
}

Test(readme, targets_that_are_named_exist) { on_pages(check_targets); }

/* libraries: what the linker, people and pkg-config call each. */
static const struct library {
    const char *flag, *name, *package;
} libraries[] = {
    {"sqlite3", "SQLite", "sqlite3"},
    {"pq", "libpq", "libpq"},
    {"jansson", "jansson", "jansson"},
    {"zip", "libzip", "libzip"},
    {"z", "zlib", "zlib"},
    {"curl", "libcurl", "libcurl"},
    {"gnutls", "GnuTLS", "gnutls"},
    {"seccomp", "libseccomp", "libseccomp"},
};

/* lists: where the libraries of a variable of the Makefile stand: in the text from `begin` to `end`. */
static const struct {
    const char *variable, *page, *begin, *end;
} lists[] = {
    {"\nAPI_LIBS =", "ARCHITECTURE.md", "| [api/]", "\n"},
    {"\nSERVER_LIBS =", "ARCHITECTURE.md", "| [server/]", "\n"},
};

/* Copies the text from `begin` to `end`. */
static void copy_part(char *to, size_t room, const char *text, const char *begin, const char *end)
{
    const char *start = strstr(text, begin),
               *stop = start ? strstr(start + strlen(begin), end) : NULL;
    cr_assert(stop, "no %s", begin);
    snprintf(to, room, "%.*s", (int)(stop - start), start);
}

static void expect_library(const char *flag, const char *page, const char *list,
                           const char *packages)
{
    size_t i = 0;
    while (i < COUNT(libraries) && strcmp(libraries[i].flag, flag) != 0)
        i++;
    cr_assert_lt(i, COUNT(libraries), "-l%s has no name here", flag);
    cr_expect(strstr(list, libraries[i].name), "%s does not name %s", page, libraries[i].name);
    cr_expect(strstr(packages, libraries[i].package), "make run does not look for %s",
              libraries[i].package);
}

Test(readme, lists_of_libraries_are_those_of_the_makefile)
{
    size_t size;
    char *makefile = read_file("Makefile", &size), packages[300], list[600], flags[200], *rest;
    copy_part(packages, sizeof packages, makefile, "pkg-config --exists", "&&");
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *page = read_file(lists[i].page, &size);
        copy_part(list, sizeof list, page, lists[i].begin, lists[i].end);
        copy_part(flags, sizeof flags, makefile, lists[i].variable, "\n");
        strtok_r(strstr(flags, "-l"), " ", &rest);
        for (char *flag = strstr(flags, "-l"); flag; flag = strtok_r(NULL, " ", &rest))
            expect_library(flag + 2, lists[i].page, list, packages);
        free(page);
    }
    free(makefile);
}

Test(readme, the_first_page_is_short)
{
    size_t size, lines = 0;
    char *text = read_file("README.md", &size);
    for (const char *line = text; (line = strchr(line, '\n')); line++)
        lines++;
    cr_expect_leq(lines, 190);
    free(text);
}

Test(readme, the_changelog_has_this_version)
{
    size_t size;
    char *text = read_file("CHANGELOG.md", &size);
    cr_expect(strstr(text, "\n## [" KLDIV_VERSION "] - 20"));
    free(text);
}
