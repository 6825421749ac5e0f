#include "api/web/files.h"

#include "build/assets/list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EMBED(n, path)                                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global api_file_" #n ", api_file_" #n "_end\n"                                       \
            "api_file_" #n ": .incbin \"build/assets/" path ".gz\"\n"                              \
            "api_file_" #n "_end: .byte 0\n"                                                       \
            ".popsection\n");                                                                      \
    extern const unsigned char api_file_##n[], api_file_##n##_end[];
ASSETS(EMBED)

#define ROW(n, path) {path, api_file_##n, api_file_##n##_end},
static const struct api_file files[] = {ASSETS(ROW){0}};

const struct api_file *api_file_find(const char *path)
{
    for (const struct api_file *file = files; file->path; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    return NULL;
}

const char *api_file_type(const struct api_file *file)
{
    static const struct {
        const char *extension, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"}};
    const char *extension = strrchr(file->path, '.');
    for (size_t i = 0; extension && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].extension, extension) == 0)
            return types[i].type;
    return "text/plain; charset=utf-8";
}

static uint32_t little_endian(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void api_file_etag(const struct api_file *file, char to[API_FILE_ETAG])
{
    snprintf(to, API_FILE_ETAG, "\"%08x-%x\"", little_endian(file->end - 8),
             little_endian(file->end - 4));
}
