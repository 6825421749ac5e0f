/* Tables of JSON, JSON Lines, TSV, forms, .npz and safetensors: the first byte selects the format, and whether an
 * archive is made of the data. */
#include "tests/tools/fuzz/archive.h"
#include "tests/tools/fuzz/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"application/json",
                                        "application/x-npz",
                                        "application/safetensors",
                                        NULL,
                                        "application/jsonl",
                                        "text/tab-separated-values",
                                        "multipart/form-data; boundary=X",
                                        "application/json"};
    if (size == 0)
        return 0;
    const char *type = types[(data[0] & 3) | (data[0] >> 2 & 4)];
    enum api_table_kind kind = data[0] & 4 ? API_ONE_COLUMN : API_MANY_COLUMNS;
    struct api_buffer archive = {0};
    if (data[0] & 8)
        make_archive(&archive, data + 1, size - 1);
    fuzz_table(data[0] & 8 ? "application/x-npz" : type, kind,
               data[0] & 8 ? (const uint8_t *)archive.data : data + 1,
               data[0] & 8 ? archive.size : size - 1);
    api_buffer_free(&archive);
    return 0;
}
