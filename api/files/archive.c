#include "api/files/archive.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* DIRECTORY_EACH: bytes of the directory for each entry that is allowed. An entry takes 46 bytes and its
 * name; libzip allocates about 250 for it. */
enum { DIRECTORY_EACH = 4096 };

/* MAX_INFLATION: maximum of bytes that deflate makes of one. */
enum { MAX_INFLATION = 1032 };

static bool malformed(struct api_problem *problem, const char *what)
{
    return api_fail(problem, "npz_malformed", "the body is not a valid .npz file: %s", what);
}

static uint64_t little_endian(const char *bytes, size_t size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | (unsigned char)bytes[size];
    return value;
}

static bool small_directory(uint64_t entries, uint64_t size, size_t max)
{
    return entries <= max && size <= (uint64_t)max * DIRECTORY_EACH;
}

/* Checks the end record at `at` against the limits. The ZIP64 record, which its locator
 * precedes, replaces numbers that do not fit (APPNOTE.TXT 4.3.14 to 4.3.16). */
static bool directory_fits_at(const char *body, size_t at, size_t max)
{
    enum { LOCATOR = 20, LONG_RECORD = 56 };
    uint64_t entries = little_endian(body + at + 10, 2), size = little_endian(body + at + 12, 4);
    if (at >= LOCATOR && memcmp(body + at - LOCATOR, "PK\6\7", 4) == 0) {
        uint64_t record = little_endian(body + at - LOCATOR + 8, 8);
        if (record > at || at - record < LONG_RECORD)
            return false;
        if (!small_directory(little_endian(body + record + 32, 8),
                             little_endian(body + record + 40, 8), max))
            return false;
        return small_directory(entries == 0xffff ? 0 : entries, size == 0xffffffff ? 0 : size, max);
    }
    return small_directory(entries, size, max);
}

/* Checks every position that libzip may accept as the end of the archive. */
static bool directory_fits(const char *body, size_t size, size_t max)
{
    enum { END_RECORD = 22, MAX_COMMENT = 65535 };
    size_t first = size > END_RECORD + MAX_COMMENT ? size - END_RECORD - MAX_COMMENT : 0;
    for (size_t at = first; at + END_RECORD <= size; at++)
        if (memcmp(body + at, "PK\5\6", 4) == 0 && !directory_fits_at(body, at, max))
            return false;
    return true;
}

/* True if libzip failed for want of memory, which it may report as another error: malloc leaves it in
 * errno. */
static bool is_oom(zip_error_t *error)
{
    return errno == ENOMEM || zip_error_code_zip(error) == ZIP_ER_MEMORY;
}

/* Accepts entries that are stored or deflated, and not encrypted. */
static bool check_method(const zip_stat_t *stat, struct api_problem *problem)
{
    if (stat->encryption_method != ZIP_EM_NONE)
        return api_fail(problem, "npz_malformed", "entry %.100s is encrypted", stat->name);
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return api_fail(problem, "npz_malformed",
                        "entry %.100s is compressed by method %d; only stored and deflated entries "
                        "are supported",
                        stat->name, stat->comp_method);
    if (stat->size > stat->comp_size * MAX_INFLATION + MAX_INFLATION)
        return api_fail(problem, "npz_malformed",
                        "entry %.100s claims a larger size than deflate can produce from it",
                        stat->name);
    return true;
}

static bool fail_to_read(struct api_archive *archive, zip_file_t *file, struct api_problem *problem)
{
    zip_error_t *error = file ? zip_file_get_error(file) : zip_get_error(archive->zip);
    if (is_oom(error))
        return api_fail_oom(problem);
    return api_fail(
        problem, "npz_malformed", "entry %.100s cannot be read: %s", archive->entry.name,
        zip_error_code_zip(error) == ZIP_ER_OK ? "its size differs from the archive's directory"
                                               : zip_error_strerror(error));
}

bool api_archive_read(struct api_archive *archive, char *to, size_t *size,
                      struct api_problem *problem)
{
    char more;
    bool is_all = *size >= archive->entry.size;
    *size = is_all ? archive->entry.size : *size;
    errno = 0;
    zip_file_t *file = zip_fopen_index(archive->zip, archive->entry.index, 0);
    bool good = (file && zip_fread(file, to, *size) == (zip_int64_t)*size &&
                 (!is_all || zip_fread(file, &more, 1) == 0)) ||
                fail_to_read(archive, file, problem);
    if (file)
        zip_fclose(file);
    return good;
}

bool api_archive_inflate(struct api_archive *archive, struct api_buffer *to,
                         struct api_problem *problem)
{
    if (!api_buffer_reserve(to, archive->entry.size + 1))
        return api_fail_oom(problem);
    to->size = archive->entry.size;
    return api_archive_read(archive, to->data, &to->size, problem);
}

/* Sets the name of the current entry's array; false if it is no .npy file, or the name has no room. */
static bool find_name(struct api_archive *archive)
{
    static const char suffix[] = ".npy";
    const char *name = archive->entry.name;
    size_t length = strlen(name), stem = length - (sizeof suffix - 1);
    if (length < sizeof suffix - 1 || strcmp(name + stem, suffix) != 0 || stem >= API_ENTRY_NAME)
        return false;
    memcpy(archive->name, name, stem);
    archive->name[stem] = '\0';
    return true;
}

bool api_archive_next(struct api_archive *archive, struct api_problem *problem)
{
    zip_stat_t *entry = &archive->entry;
    if (archive->next == archive->n)
        return false;
    if (zip_stat_index(archive->zip, archive->next++, 0, entry) != 0)
        return malformed(problem, zip_strerror(archive->zip));
    if (!find_name(archive))
        return api_fail(problem, archive->stray, "entry '%.100s' is not the .npy of an array",
                        entry->name);
    if (entry->size > archive->room)
        return api_fail(problem, "body_too_large",
                        "entry %.100s makes the arrays larger than this server accepts",
                        entry->name);
    archive->room -= entry->size;
    return check_method(entry, problem);
}

static bool fail_to_open(const struct api_archive *archive, zip_error_t *error,
                         struct api_problem *problem)
{
    if (is_oom(error))
        return api_fail_oom(problem);
    switch (zip_error_code_zip(error)) {
    case ZIP_ER_EXISTS:
        return api_fail(problem, archive->repeated, "two entries have the same name");
    case ZIP_ER_NOENT:
        return malformed(problem, "an entry has impossible sizes");
    default:
        return malformed(problem, zip_error_strerror(error));
    }
}

bool api_archive_open(struct api_archive *archive, size_t max, struct api_problem *problem)
{
    zip_error_t error;
    errno = 0;
    if (archive->size == 0) /* libzip would create an archive */
        return malformed(problem, "it is empty");
    if (!directory_fits(archive->body, archive->size, max))
        return malformed(problem, "its directory is too large or broken");
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(archive->body, archive->size, 0, &error);
    if (source)
        archive->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (archive->zip)
        archive->n = (size_t)zip_get_num_entries(archive->zip, 0);
    else {
        fail_to_open(archive, &error, problem);
        zip_source_free(source);
    }
    zip_error_fini(&error);
    return archive->zip != NULL;
}

void api_archive_close(struct api_archive *archive)
{
    if (archive->zip)
        zip_discard(archive->zip);
    archive->zip = NULL;
}
