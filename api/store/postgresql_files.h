/* Files that libpq reads when it connects. */
#pragma once

/* api_postgresql_files: paths, NULL at the end. */
enum { API_POSTGRESQL_FILES = 16 };
struct api_postgresql_files {
    char *paths[API_POSTGRESQL_FILES + 1];
};

/* Lists those that a URI names, that the environment does, and those of the system by which hosts are
 * found and certificates are checked. Some may be missing. */
void api_postgresql_files_list(struct api_postgresql_files *files, const char *location);
void api_postgresql_files_free(struct api_postgresql_files *files);
