/* The memory budget: large blocks are kept, and freed if the limit demands it. */
#include "api/memory/budget.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MIB = 1 << 20 };

static size_t used(struct api_budget *budget) { return atomic_load(&budget->used); }

static size_t idle(struct api_budget *budget) { return atomic_load(&budget->idle); }

Test(budget, large_blocks_are_kept_and_used_again)
{
    struct api_budget budget = {0};
    size_t size = 10 * MIB, smaller = 9 * MIB, other = 100 * MIB;
    char *first = api_block_resize(&budget, NULL, 0, &size);
    cr_assert(first);
    cr_expect_eq(used(&budget), size);
    memset(first, 1, size);
    api_block_free(&budget, first, size);
    cr_expect_eq(used(&budget), 0);
    cr_expect_eq(idle(&budget), size);

    char *unlike = api_block_resize(&budget, NULL, 0, &other);
    cr_expect_neq(unlike, first);
    char *again = api_block_resize(&budget, NULL, 0, &smaller);
    cr_expect_eq(again, first);
    cr_expect_eq(smaller, size, "it has what the block has");
    cr_expect_eq(idle(&budget), 0);
    api_block_free(&budget, again, smaller);
    api_block_free(&budget, unlike, other);
    cr_expect_eq(idle(&budget), size + other);
    api_budget_trim(&budget, INT64_C(3600000000000));
    cr_expect_eq(idle(&budget), size + other, "not yet");
    api_budget_trim(&budget, 0);
    cr_expect_eq(idle(&budget), 0);
}

Test(budget, kept_blocks_make_room)
{
    struct api_budget budget = {.limit = 20 * MIB};
    size_t size = 12 * MIB, large = 16 * MIB, too_large = 5 * MIB;
    api_block_free(&budget, api_block_resize(&budget, NULL, 0, &size), size);
    cr_expect_eq(idle(&budget), size);
    void *block = api_block_resize(&budget, NULL, 0, &large);
    cr_expect(block);
    cr_expect_eq(idle(&budget), 0);
    cr_expect_null(api_block_resize(&budget, NULL, 0, &too_large));
    cr_expect_eq(used(&budget), large);
    api_block_free(&budget, block, large);
    api_budget_trim(&budget, 0);
}

Test(budget, contents_stay_through_every_size)
{
    struct api_budget budget = {0};
    size_t have = 1;
    unsigned char *block = api_block_resize(&budget, NULL, 0, &have);
    cr_assert(block);
    block[0] = 0;
    static const size_t sizes[] = {2,        1000,     256 << 10, 300 << 10, 3 * MIB, 5 * MIB,
                                   40 * MIB, 50 * MIB, 6 * MIB,   2 * MIB,   1000,    10};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t size = sizes[i], kept = have < size ? have : size;
        block = api_block_resize(&budget, block, have, &size);
        cr_assert(block);
        cr_expect_geq(size, sizes[i]);
        cr_expect_eq(used(&budget), size);
        for (size_t j = 0; j < kept; j++)
            if (block[j] != j % 251)
                cr_assert(false, "byte %zu after %zu bytes became %zu", j, have, size);
        have = size;
        for (size_t j = 0; j < have; j++)
            block[j] = (unsigned char)(j % 251);
    }
    api_block_free(&budget, block, have);
    cr_expect_eq(used(&budget), 0);
    api_budget_trim(&budget, 0);
}

Test(budget, as_many_blocks_are_kept_as_it_has_places)
{
    struct api_budget budget = {0};
    void *blocks[API_IDLE_BLOCKS + 3];
    size_t size = MIB;
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = api_block_resize(&budget, NULL, 0, &size);
    for (size_t i = 0; i < COUNT(blocks); i++)
        api_block_free(&budget, blocks[i], size);
    cr_expect_eq(used(&budget), 0);
    cr_expect_eq(idle(&budget), API_IDLE_BLOCKS * size);
    api_budget_trim(&budget, 0);
    cr_expect_eq(idle(&budget), 0);
}
