#include "server/config/text_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 256 << 10 };

bool srv_file_fail(struct srv_file_error *error, const char *option, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error->option = option;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

bool srv_text_read(struct srv_text *text, const char *option, const char *path,
                   struct srv_file_error *error)
{
    FILE *file = fopen(path, "re");
    *text = (struct srv_text){0};
    if (!file)
        return srv_file_fail(error, option, "cannot read %s: %s", path, strerror(errno));
    setvbuf(file, NULL, _IONBF, 0); /* no copy of a secret stays in a buffer */
    text->data = malloc(MAX_TEXT + 1);
    text->size = text->data ? fread(text->data, 1, MAX_TEXT + 1, file) : 0;
    int reason = !text->data ? ENOMEM : ferror(file) ? errno : text->size > MAX_TEXT ? EFBIG : 0;
    fclose(file);
    if (reason) {
        srv_text_free(text);
        return srv_file_fail(error, option, "cannot read %s: %s", path, strerror(reason));
    }
    return true;
}

void srv_text_free(struct srv_text *text)
{
    if (text->data)
        explicit_bzero(text->data, text->size);
    free(text->data);
    *text = (struct srv_text){0};
}
