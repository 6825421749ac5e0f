#include "api/store/postgresql_files.h"

#include <postgresql/libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(struct api_postgresql_files *files, const char *path)
{
    size_t n = 0;
    while (files->paths[n])
        n++;
    if (n < API_POSTGRESQL_FILES)
        files->paths[n] = strdup(path);
}

static bool names_file(const char *keyword)
{
    static const char *const keywords[] = {"passfile",    "sslcert", "sslkey",
                                           "sslrootcert", "sslcrl",  "servicefile"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keyword, keywords[i]) == 0)
            return true;
    return false;
}

/* Adds what options name, and frees them; NULL is fine. */
static void add_options(struct api_postgresql_files *files, PQconninfoOption *options)
{
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && option->val[0] == '/' && names_file(option->keyword))
            add(files, option->val);
    PQconninfoFree(options);
}

/* Adds a file of the home folder, if it is there. */
static void add_of_home(struct api_postgresql_files *files, const char *name)
{
    char path[500];
    const char *home = getenv("HOME");
    snprintf(path, sizeof path, "%s/%s", home ? home : "", name);
    if (home && access(path, R_OK) == 0)
        add(files, path);
}

void api_postgresql_files_list(struct api_postgresql_files *files, const char *location)
{
    *files = (struct api_postgresql_files){.paths = {NULL}};
    add(files, "/etc/resolv.conf");
    add(files, "/usr/lib/ssl/openssl.cnf");
    add(files, "/etc/ssl/certs/ca-certificates.crt");
    add_options(files, PQconninfoParse(location, NULL));
    add_options(files, PQconndefaults());
    add_of_home(files, ".pgpass");
    add_of_home(files, ".postgresql/root.crt");
}

void api_postgresql_files_free(struct api_postgresql_files *files)
{
    for (size_t i = 0; files->paths[i]; i++)
        free(files->paths[i]);
    files->paths[0] = NULL;
}
